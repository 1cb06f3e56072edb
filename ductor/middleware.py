"""What every request passes: its id, its log line and its tenant.

`RequestMiddleware` is the outer one: whatever happens inside, its answer is a problem document or the view's own, it
carries the request id, and no cache may keep it. `TenantMiddleware` turns the presented key into an attached tenant,
from before the view's first line until the last chunk of the body has been sent (DESIGN D2).
"""

import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase

from ductor import problems
from tenants.api.errors import BodyTooLarge
from tenants.api.parsing import MAX_BODY_BYTES
from tenants.authentication import Authenticated, authenticate
from tenants.errors import DuctorError, NotFound, Unauthenticated
from tenants.identity import new_id
from tenants.scope import attach

GetResponse = Callable[[HttpRequest], HttpResponseBase]

# What answers without an API key. /metrics asks for a token of its own and exists on the operator surface only.
PUBLIC_PATHS = frozenset({"/health/live", "/health/ready", "/metrics"})
PUBLIC_PREFIXES = ("/problems/",)

_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)
_BEARER = re.compile(r"Bearer ([\x21-\x7e]{1,256})", re.ASCII | re.IGNORECASE)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})

log = structlog.get_logger("ductor.requests")


def is_public(path: str) -> bool:
    """Say whether a path answers without a credential."""
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)


class RequestMiddleware:
    """Gives each request its id and one line in the log, and turns every refusal into a problem document."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = accepted_request_id(request.headers.get("X-Request-Id", ""))
        request.request_id = request_id  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            started = time.perf_counter()
            response = self._answer(request)
            response["X-Request-Id"] = request_id
            response.headers.setdefault("Cache-Control", "no-store")
            log.info(
                "request",
                method=request.method if request.method in _METHODS else "other",
                view=request.resolver_match.view_name if request.resolver_match else "",
                status=response.status_code,
                milliseconds=round((time.perf_counter() - started) * 1000, 1),
                service_class=getattr(getattr(request, "authenticated", None), "service_class", ""),
            )
            return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase:
        """Answer what a view raised."""
        return problems.response_of(error)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        try:
            _measure_body(request)
        except BodyTooLarge as error:
            return problems.response_of(error)
        response = self.get_response(request)
        if response.status_code < 400 or not _is_framework_page(response):
            return response
        problem = problems.response(problems.of_status(response.status_code))
        if response.has_header("Allow"):
            problem["Allow"] = response["Allow"]
        return problem


def accepted_request_id(presented: str) -> str:
    """Return the client's request id if it is 8 to 64 of letters, digits and hyphens, else a new one."""
    return presented if _REQUEST_ID.fullmatch(presented) else str(new_id())


def _measure_body(request: HttpRequest) -> None:
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise BodyTooLarge
    if not length and request.method in _WITH_BODY:
        # A chunked body has no length, and REST framework takes a body without a length for no body.
        body = request.body
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLarge
        request.META["CONTENT_LENGTH"] = str(len(body))


def _is_framework_page(response: HttpResponseBase) -> bool:
    return not response.streaming and (response.get("Content-Type") or "text/html").startswith("text/html")


class TenantMiddleware:
    """Attaches the tenant of the presented API key; the host can only refuse it, where it is another tenant's domain.

    Not used on the operator surface, which knows no tenants' keys.
    """

    def __init__(self, get_response: GetResponse) -> None:
        if settings.DUCTOR_ROLE == "operator":
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if is_public(request.path_info):
            return self.get_response(request)
        try:
            found = self._authenticated(request)
        except (DuctorError, DatabaseError, InterfaceError) as error:
            return problems.response_of(error)
        request.authenticated = found  # type: ignore[attr-defined]
        with attach(found.tenant_id), structlog.contextvars.bound_contextvars(service_class=found.service_class):
            response = self.get_response(request)
        if response.streaming:
            _keep_attached(response, found.tenant_id)
        return response

    def _authenticated(self, request: HttpRequest) -> Authenticated:
        credential = _BEARER.fullmatch(request.headers.get("Authorization", ""))
        if credential is None:
            raise Unauthenticated
        found = authenticate(credential[1], host=split_domain_port(request.get_host())[0])
        if found is None:
            raise Unauthenticated
        if not found.host_allowed:
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
