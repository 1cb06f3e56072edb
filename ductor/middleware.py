"""What every request passes first: its id and its log line.

Whatever happens inside, the answer is a problem (a document, or a page for people) or the view's own, it carries the
request id, and no cache may keep it.
"""

import re
import time
from collections.abc import Callable

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from ductor import error_pages, problems
from ductor.surfaces import is_page
from tenants.api.errors import BodyTooLarge
from tenants.api.parsing import MAX_BODY_BYTES
from tenants.identity import new_id

GetResponse = Callable[[HttpRequest], HttpResponseBase]

_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})

log = structlog.get_logger("ductor.requests")


class RequestMiddleware:
    """Gives each request its id and one line in the log, and turns every refusal into a problem."""

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
        return error_pages.answer_error(request, error)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        try:
            _measure_body(request)
        except BodyTooLarge as error:
            return error_pages.answer_error(request, error)
        response = self.get_response(request)
        if response.status_code < 400 or is_page(request.path_info) or not _is_framework_page(response):
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
