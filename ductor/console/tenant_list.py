"""Pages over all tenants, and what belongs to the platform itself."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ductor.console.paging import PAGE_SIZE, cut, id_from
from ductor.console.site import show
from tenants.acts import list_acts
from tenants.identity import SYSTEM_TENANT_ID
from tenants.people.operators import list_operators
from tenants.policy import frozen_names
from tenants.standings import list_standings


@require_safe
def tenants(request: HttpRequest) -> HttpResponse:
    """List tenants by slug."""
    return show(request, "tenants.html", {"title": "Tenants", **_standings(request)})


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """List what every tenant may use, beside what it uses."""
    return show(request, "policies.html", {"title": "Policies", **_standings(request)})


def _standings(request: HttpRequest) -> dict[str, Any]:
    prefix = request.GET.get("slug", "").strip().lower()[:48]
    after = request.GET.get("after", "")[:48]
    rows, following = cut(
        request, list_standings(after=after, prefix=prefix, limit=PAGE_SIZE + 1), "after", lambda row: row.slug
    )
    standings = [(row, frozen_names(row.frozen or 0)) for row in rows]
    return {"standings": standings, "next": following, "prefix": prefix, "after": after}


@require_safe
def platform_audit(request: HttpRequest) -> HttpResponse:
    """List acts on the platform itself: operators made and removed, queues."""
    found = list_acts(tenant_id=SYSTEM_TENANT_ID, before=id_from(request, "before"), limit=PAGE_SIZE + 1)
    acts, following = cut(request, found, "before", lambda act: act.id)
    return show(request, "audit.html", {"title": "Audit of the platform", "acts": acts, "next": following})


@require_safe
def operators(request: HttpRequest) -> HttpResponse:
    """List who may sign in here. They are made and removed by `manage.py ductor operators`."""
    return show(request, "operators.html", {"title": "Operators", "operators": list_operators()})
