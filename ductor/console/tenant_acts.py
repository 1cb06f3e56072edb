"""Acts on a tenant: making one, its policy, its freezes, an invitation, a key."""

from datetime import timedelta

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from ductor.console.access import act_page, opened_act_page, principal_of
from ductor.console.acts import Act, Values, perform
from ductor.console.forms import FreezeForm, InviteForm, KeyForm, PolicyForm, TenantForm
from ductor.console.site import show
from ductor.invitation_mail import mail_invitation
from tenants.errors import PolicyMissing, VersionMismatch
from tenants.invitations import VALID_SECONDS, invite
from tenants.keys import create_api_key
from tenants.policy import DEFAULT_MAX_LEASES, DEFAULT_MAX_OUTSTANDING, frozen_names, set_freeze, set_tenant_policy
from tenants.provisioning import create_tenant
from tenants.queries import PolicyView, TenantView, get_policy

_METHODS = ["GET", "HEAD", "POST"]
_LIMITS = {
    "max_outstanding": "unfinished tasks",
    "max_leases": "leases",
    "weight": "weight",
    "guaranteed_leases": "guaranteed leases",
}


@require_http_methods(_METHODS)
def create_tenant_page(request: HttpRequest) -> HttpResponseBase:
    """Make a tenant and its first policy, in one transaction."""

    def effects(values: Values) -> list[str]:
        return [
            f"Makes the tenant {values['slug']}. Its slug can never be used again, not even after its end.",
            f"It may have {values['max_outstanding']} unfinished tasks, and {values['max_leases']} at work at once.",
            "It has no member and no key yet: invite its first owner next.",
        ]

    def run(values: Values) -> HttpResponseBase:
        principal, reason = principal_of(request), values["reason"]
        with transaction.atomic():
            named = {name: values[name] for name in ("slug", "name", "service_class")}
            tenant = create_tenant(**named, principal=principal, reason=reason)
            set_tenant_policy(
                tenant_id=tenant.id,
                max_outstanding=values["max_outstanding"],
                max_leases=values["max_leases"],
                principal=principal,
                reason=reason,
            )
        messages.success(request, f"The tenant {tenant.slug} is made. Invite its first owner.")
        return _to("admin:tenant", tenant)

    back = reverse("admin:tenants")
    return perform(request, Act("New tenant", "Make the tenant", TenantForm, effects, run, back))


@require_http_methods(_METHODS)
@act_page
def policy_page(request: HttpRequest, tenant: TenantView) -> HttpResponseBase:
    """Set a tenant's limits, after a look at what that does to its present use."""
    now = _policy_or_none(tenant)

    def run(values: Values) -> HttpResponseBase:
        if values["version"] != (now.version if now else 0):
            raise VersionMismatch("The policy has changed since this page was opened; look at it again.")
        limits = {name: values[name] for name in _LIMITS}
        set_tenant_policy(tenant_id=tenant.id, **limits, principal=principal_of(request), reason=values["reason"])
        messages.success(request, f"The policy of {tenant.slug} is set.")
        return _to("admin:tenant", tenant)

    initial = {name: getattr(now, name) for name in _LIMITS} if now else _FIRST
    act = Act(
        title=f"Policy of {tenant.slug}",
        button="Set the policy",
        form=PolicyForm,
        effects=lambda values: _policy_effects(now, values),
        run=run,
        back=reverse("admin:tenant", args=[tenant.slug]),
        tenant=tenant,
        initial={**initial, "version": now.version if now else 0},
    )
    return perform(request, act)


_FIRST = {
    "max_outstanding": DEFAULT_MAX_OUTSTANDING,
    "max_leases": DEFAULT_MAX_LEASES,
    "weight": 1,
    "guaranteed_leases": 0,
}


def _policy_effects(now: PolicyView | None, values: Values) -> list[str]:
    if now is None:
        return ["This is the tenant's first policy: from now on it admits tasks."]
    told = [
        f"{text.capitalize()}: {getattr(now, name):,} → {values[name]:,}."
        for name, text in _LIMITS.items()
        if getattr(now, name) != values[name]
    ]
    if now.outstanding > values["max_outstanding"]:
        over = now.outstanding - values["max_outstanding"]
        told.append(f"{over} more tasks are unfinished than allowed then. None is cancelled; starts are refused until")
        told[-1] += " the tenant is below its limit."
    if now.leased > values["max_leases"]:
        over = now.leased - values["max_leases"]
        told.append(f"{over} more tasks run than allowed then. They run to their end; no new one is claimed till then.")
    if now.own_max_outstanding or now.own_max_leases:
        told.append("The tenant has set lower limits for itself; of the two, the lower one holds.")
    return told or ["Nothing changes: these are the present limits."]


@require_http_methods(_METHODS)
@act_page
def freeze_page(request: HttpRequest, tenant: TenantView) -> HttpResponseBase:
    """Freeze some of a tenant's doings, or lift freezes."""
    now = get_policy(tenant_id=tenant.id)
    frozen = frozen_names(now.frozen)

    def effects(values: Values) -> list[str]:
        wanted = values["frozen"]
        stops = [f"Freezes {name}." for name in wanted if name not in frozen]
        lifts = [f"Lifts the freeze of {name}." for name in frozen if name not in wanted]
        told = stops + lifts or ["Nothing changes."]
        if "claims" in wanted:
            told.append(f"{now.leased} tasks that run now go on to their end; {now.outstanding} are unfinished in all.")
        return told

    def run(values: Values) -> HttpResponseBase:
        chosen = frozenset(values["frozen"])
        set_freeze(tenant_id=tenant.id, freeze=chosen, principal=principal_of(request), reason=values["reason"])
        messages.success(request, f"Frozen for {tenant.slug}: {', '.join(values['frozen']) or 'nothing'}.")
        return _to("admin:tenant", tenant)

    back = reverse("admin:tenant", args=[tenant.slug])
    initial = {"frozen": frozen}
    title = f"Freeze {tenant.slug}"
    act = Act(title, "Set the freezes", FreezeForm, effects, run, back, tenant, initial, danger=True)
    return perform(request, act)


@require_http_methods(_METHODS)
@act_page
def invite_page(request: HttpRequest, tenant: TenantView) -> HttpResponseBase:
    """Invite somebody into a tenant: its first owner above all."""

    def effects(values: Values) -> list[str]:
        days = VALID_SECONDS // 86_400
        return [
            f"Sends a link to {values['email']}. Whoever has it joins {tenant.slug} as {values['role']}.",
            f"The link works once, for this address only, and for {days} days.",
        ]

    def run(values: Values) -> HttpResponseBase:
        invitation, token = invite(
            tenant_id=tenant.id,
            email=values["email"],
            role=values["role"],
            principal=principal_of(request),
            reason=values["reason"],
        )
        if mail_invitation(invitation=invitation, token=token, tenant=tenant.name or tenant.slug):
            messages.success(request, f"An invitation is on its way to {invitation.email}.")
        else:
            messages.error(request, f"No mail reached {invitation.email}: mend the mail server and invite again.")
        return _to("admin:tenant", tenant)

    back = reverse("admin:tenant", args=[tenant.slug])
    return perform(
        request, Act(f"Invite into {tenant.slug}", "Send the invitation", InviteForm, effects, run, back, tenant)
    )


@require_http_methods(_METHODS)
@opened_act_page
def create_key_page(request: HttpRequest, tenant: TenantView) -> HttpResponseBase:
    """Make an API key of the tenant; its plain text is shown this once."""

    def effects(values: Values) -> list[str]:
        days = values["days"]
        lasts = f"It expires in {days} days." if days else "It never expires."
        return [
            f"Makes a key of {tenant.slug} that may: {', '.join(values['scopes'])}. {lasts}",
            "The key is shown once. Whoever has it acts as the tenant.",
        ]

    def run(values: Values) -> HttpResponseBase:
        days = values["days"]
        view, plaintext = create_api_key(
            tenant_id=tenant.id,
            name=values["name"],
            scopes=values["scopes"],
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            principal=principal_of(request),
            reason=values["reason"],
        )
        context = {"title": f"Key {view.name}", "tenant": tenant, "key": view, "plaintext": plaintext}
        return show(request, "key_made.html", context)

    back = reverse("admin:keys", args=[tenant.slug])
    return perform(request, Act(f"New key of {tenant.slug}", "Make the key", KeyForm, effects, run, back, tenant))


def _policy_or_none(tenant: TenantView) -> PolicyView | None:
    try:
        return get_policy(tenant_id=tenant.id)
    except PolicyMissing:
        return None


def _to(page: str, tenant: TenantView) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse(page, args=[tenant.slug]))
