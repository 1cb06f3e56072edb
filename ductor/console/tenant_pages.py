"""One tenant: what the platform keeps about it; and, behind the door, its members, keys and audit."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ductor.console.access import open_seconds, opened_page, tenant_page
from ductor.console.paging import PAGE_SIZE, cut, id_from
from ductor.console.site import show
from tenants.acts import list_acts
from tenants.errors import PolicyMissing
from tenants.identity import SYSTEM_TENANT_ID
from tenants.invitations import list_invitations
from tenants.members import FIRST, list_members
from tenants.policy import frozen_names
from tenants.queries import PolicyView, TenantView, get_policy, list_keys, list_usage


@require_safe
@tenant_page
def detail(request: HttpRequest, tenant: TenantView) -> HttpResponse:
    """Show a tenant's limits, use and freezes, and the ways on."""
    policy = _policy(tenant)
    context = {
        "title": f"Tenant {tenant.slug}",
        "tenant": tenant,
        "policy": policy,
        "frozen": frozen_names(policy.frozen) if policy else [],
        "usage": list_usage(tenant_id=tenant.id),
        "opened": open_seconds(request, tenant.id) // 60,
        "is_system": tenant.id == SYSTEM_TENANT_ID,
    }
    return show(request, "tenant.html", context)


@require_safe
@opened_page
def members(request: HttpRequest, tenant: TenantView) -> HttpResponse:
    """List who acts in the tenant, and who is invited."""
    after = id_from(request, "after") or FIRST
    found = list_members(tenant_id=tenant.id, after=after, limit=PAGE_SIZE + 1)
    shown, following = cut(request, found, "after", lambda member: member.id)
    invitations = list_invitations(tenant_id=tenant.id, limit=PAGE_SIZE)
    context = {"tenant": tenant, "members": shown, "next": following, "invitations": invitations}
    return show(request, "members.html", {"title": f"Members of {tenant.slug}", **context})


@require_safe
@opened_page
def keys(request: HttpRequest, tenant: TenantView) -> HttpResponse:
    """List the tenant's API keys."""
    found = list_keys(tenant_id=tenant.id, before=id_from(request, "before"), limit=PAGE_SIZE + 1)
    shown, following = cut(request, found, "before", lambda key: key.id)
    context = {"title": f"Keys of {tenant.slug}", "tenant": tenant, "keys": shown, "next": following}
    return show(request, "keys.html", context)


@require_safe
@opened_page
def audit(request: HttpRequest, tenant: TenantView) -> HttpResponse:
    """List the acts on a tenant's things, of its own people and of operators."""
    wanted = {name: request.GET.get(name, "").strip()[:128] for name in ("act", "target_kind", "target_id")}
    found = list_acts(
        tenant_id=tenant.id,
        act=wanted["act"] or None,
        target_kind=wanted["target_kind"] or None,
        target_id=wanted["target_id"] or None,
        before=id_from(request, "before"),
        limit=PAGE_SIZE + 1,
    )
    acts, following = cut(request, found, "before", lambda act: act.id)
    context = {"tenant": tenant, "acts": acts, "next": following, "wanted": wanted}
    return show(request, "audit.html", {"title": f"Audit of {tenant.slug}", **context})


def _policy(tenant: TenantView) -> PolicyView | None:
    try:
        return get_policy(tenant_id=tenant.id)
    except PolicyMissing:
        return None
