"""How a page comes to its tenant: by the slug in the address, attached for the whole view (DESIGN D3).

What belongs to the platform (limits, use, freezes) is always open to operators. What is the tenant's own (tasks,
members, keys, audit) opens for half an hour, for a reason that the tenant's auditors can read; each page that is then
looked at leaves a row there too (S19).
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from ductor.console.forms import ReasonForm
from ductor.console.site import View, show
from tenants.errors import TenantNotFound
from tenants.identity import SYSTEM_TENANT_ID
from tenants.principals import Principal
from tenants.queries import TenantView, get_tenant
from tenants.scope import attach, scope_of
from tenants.visits import note_visit, open_tenant

_OPENED = "ductor_opened"
MAX_OPEN = 20


def principal_of(request: HttpRequest) -> Principal:
    """Return who acts: the operator who is signed in."""
    person: Any = request.user
    return Principal.operator(person.pk, person.email, getattr(request, "request_id", ""))


def tenant_page(view: Callable[..., HttpResponseBase]) -> View:
    """A page of what the platform keeps about one tenant."""
    return _attached(view, opened=False, acts=False)


def opened_page(view: Callable[..., HttpResponseBase]) -> View:
    """A page of what is the tenant's own: needs an open door, and leaves a row in the tenant's audit."""
    return _attached(view, opened=True, acts=False)


def act_page(view: Callable[..., HttpResponseBase]) -> View:
    """A page that does something to a tenant. Nobody acts as the system: for it there is no such page."""
    return _attached(view, opened=False, acts=True)


def opened_act_page(view: Callable[..., HttpResponseBase]) -> View:
    """A page that does something to what is the tenant's own."""
    return _attached(view, opened=True, acts=True)


def _attached(view: Callable[..., HttpResponseBase], *, opened: bool, acts: bool) -> View:
    @wraps(view)
    def of_tenant(request: HttpRequest, slug: str, **parts: Any) -> HttpResponseBase:
        tenant = get_tenant(slug=slug)
        if acts and tenant.id == SYSTEM_TENANT_ID:
            raise TenantNotFound
        if opened and not is_open(request, tenant.id):
            door = reverse("admin:open", args=[slug])
            return HttpResponseRedirect(f"{door}?next={quote(request.get_full_path())}")
        if request.method not in ("GET", "HEAD"):
            with attach(tenant.id):
                return view(request, tenant, **parts)
        # One transaction for all that a page reads, and for the row that says that it was looked at.
        with scope_of(tenant.id):
            if opened:
                page = request.resolver_match.url_name if request.resolver_match else ""
                shown = " ".join([page or "", *(str(part) for part in parts.values())])
                note_visit(tenant_id=tenant.id, page=shown, principal=principal_of(request))
            return view(request, tenant, **parts)

    return of_tenant


def is_open(request: HttpRequest, tenant_id: UUID) -> bool:
    """Say whether this session has opened the tenant and its time has not run out."""
    return open_seconds(request, tenant_id) > 0


def open_seconds(request: HttpRequest, tenant_id: UUID) -> int:
    """Return for how many seconds more the tenant is open to this session."""
    until = request.session.get(_OPENED, {}).get(str(tenant_id), 0)
    return max(0, int(until - time.time()))


class DoorForm(ReasonForm):
    """Why an operator needs to see what is a tenant's own."""

    next = forms.CharField(widget=forms.HiddenInput, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def open_door(request: HttpRequest, tenant: TenantView) -> HttpResponseBase:
    """Ask for the reason, open the tenant for a time, and go on to where the operator was heading."""
    form = DoorForm(request.POST or None, initial={"next": request.GET.get("next", "")})
    if request.method != "POST" or not form.is_valid():
        context = {"title": f"Open {tenant.slug}", "tenant": tenant, "form": form}
        return show(request, "door.html", context, status=400 if form.is_bound else 200)
    reason = form.cleaned_data["reason"]
    seconds = open_tenant(tenant_id=tenant.id, principal=principal_of(request), reason=reason)
    now = time.time()
    opened = {key: until for key, until in request.session.get(_OPENED, {}).items() if until > now}
    opened[str(tenant.id)] = int(now + seconds)
    request.session[_OPENED] = dict(sorted(opened.items(), key=lambda pair: -pair[1])[:MAX_OPEN])
    wanted = form.cleaned_data["next"]
    inside = f"{reverse('admin:tenant', args=[tenant.slug])}"
    allowed = wanted.startswith(inside) and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return HttpResponseRedirect(wanted if allowed else inside)
