"""From a request's credential to an attached tenant.

It is attached from before the view's first line until the last chunk of the body has been sent (DESIGN D2). The API
takes a key and nothing else, pages take a session and nothing else.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import MiddlewareNotUsed
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from ductor import error_pages
from ductor.sessions import chosen_tenant
from ductor.surfaces import CHOOSE_PAGE, WITHOUT_TENANT, is_page, is_public
from tenants.authentication import Authenticated, authenticate, find_membership
from tenants.errors import DuctorError, NotFound, Unauthenticated
from tenants.scope import attach

GetResponse = Callable[[HttpRequest], HttpResponseBase]

_BEARER = re.compile(r"Bearer ([\x21-\x7e]{1,256})", re.ASCII | re.IGNORECASE)

log = structlog.get_logger("ductor.requests")


class TenantMiddleware:
    """Attaches the tenant of the presented key or, on pages, of the session's membership.

    The host can only refuse it, where it is another tenant's domain. Not used on the operator surface, which knows no
    tenants' keys and members.
    """

    def __init__(self, get_response: GetResponse) -> None:
        if settings.DUCTOR_ROLE == "operator":
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if is_public(request.path_info) or request.path_info.startswith(WITHOUT_TENANT):
            return self.get_response(request)
        try:
            found = _of_session(request) if is_page(request.path_info) else _of_key(request)
        except (DuctorError, DatabaseError, InterfaceError) as error:
            return error_pages.answer_error(request, error)
        if isinstance(found, HttpResponse):
            return found
        request.authenticated = found  # type: ignore[attr-defined]
        with attach(found.tenant_id), structlog.contextvars.bound_contextvars(service_class=found.service_class):
            response = self.get_response(request)
        if response.streaming:
            _keep_attached(response, found.tenant_id)
        return response


def _of_key(request: HttpRequest) -> Authenticated:
    credential = _BEARER.fullmatch(request.headers.get("Authorization", ""))
    if credential is None:
        raise Unauthenticated
    found = authenticate(credential[1], host=_host(request))
    if found is None:
        raise Unauthenticated
    return _allowed(request, found)


def _of_session(request: HttpRequest) -> Authenticated | HttpResponse:
    """Return whom the session acts for, or where to send somebody who has yet to sign in or to choose a tenant."""
    if not request.user.is_authenticated:
        return _redirect(request, redirect_to_login(_page_of(request), reverse("account_login"))["Location"])
    tenant_id = chosen_tenant(request)
    found = tenant_id and find_membership(
        person_id=request.user.pk, email=request.user.email, tenant_id=tenant_id, host=_host(request)
    )
    return _allowed(request, found) if found else _redirect(request, _choosing(request))


def _choosing(request: HttpRequest) -> str:
    """Return the page that chooses a tenant, and that leads back to a page that was only looked at."""
    if request.method != "GET" or getattr(request, "htmx", False):
        return CHOOSE_PAGE
    return f"{CHOOSE_PAGE}?{urlencode({'next': request.get_full_path()})}"


def _page_of(request: HttpRequest) -> str:
    """Return the address in the browser: htmx asks for parts of a page under addresses of their own."""
    htmx = getattr(request, "htmx", None)
    return (htmx.current_url_abs_path if htmx else None) or request.get_full_path()


def _redirect(request: HttpRequest, address: str) -> HttpResponse:
    # htmx would follow a redirect unseen and put the page it leads to into the place of a fragment.
    if getattr(request, "htmx", False):
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)


def _host(request: HttpRequest) -> str:
    return split_domain_port(request.get_host())[0]


def _allowed(request: HttpRequest, found: Authenticated) -> Authenticated:
    if not found.host_allowed:
        log.warning("credential_on_foreign_domain", kind=found.principal.kind, service_class=found.service_class)
        raise NotFound
    principal = found.principal.with_request(request.request_id)  # type: ignore[attr-defined]
    return replace(found, principal=principal)


def _keep_attached(response: Any, tenant_id: UUID) -> None:
    """Attach the tenant around each chunk: a streamed body is made after the middleware has returned."""
    content = response.streaming_content
    if response.is_async:
        response.streaming_content = _attached_async(aiter(content), tenant_id)
    else:
        response.streaming_content = _attached(iter(content), tenant_id)


def _attached(content: Iterator[bytes], tenant_id: UUID) -> Iterator[bytes]:
    while True:
        with attach(tenant_id):
            chunk = next(content, None)
        if chunk is None:
            return
        yield chunk


async def _attached_async(content: AsyncIterator[bytes], tenant_id: UUID) -> AsyncIterator[bytes]:
    while True:
        with attach(tenant_id):
            chunk = await anext(content, None)
        if chunk is None:
            return
        yield chunk
