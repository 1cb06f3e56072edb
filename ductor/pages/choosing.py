"""Choosing the tenant that a session acts for."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.request import split_domain_port
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from ductor.pages.access import person_of
from ductor.sessions import choose_tenant, chosen_tenant
from tenants.authentication import find_membership, list_memberships
from tenants.errors import NotFound
from tenants.identity import parse_id


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def choose(request: HttpRequest) -> HttpResponse:
    """Show the tenants of the person who signed in; with one, choose it at once."""
    if request.method == "POST":
        return _act_for(request, request.POST.get("tenant", ""))
    memberships = list_memberships(person_id=person_of(request).id)
    if len(memberships) == 1:
        return _act_for(request, str(memberships[0].tenant_id))
    context = {"memberships": memberships, "chosen": chosen_tenant(request), "next": _next(request)}
    return render(request, "app/choose.html", context)


def _act_for(request: HttpRequest, text: str) -> HttpResponse:
    tenant_id = parse_id(text)
    host = split_domain_port(request.get_host())[0]
    person = person_of(request)
    found = find_membership(person_id=person.id, email=person.email, tenant_id=tenant_id, host=host)
    if found is None or not found.host_allowed:
        raise NotFound
    choose_tenant(request, tenant_id)
    return HttpResponseRedirect(_next(request) or reverse("app-overview"))


def _next(request: HttpRequest) -> str:
    """Return the page that was asked for before, if it is one of this surface's tenant pages."""
    wanted = request.POST.get("next", "") or request.GET.get("next", "")
    ours = wanted.startswith("/app/") and url_has_allowed_host_and_scheme(wanted, None)
    return wanted if ours else ""
