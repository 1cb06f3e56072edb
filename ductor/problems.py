"""Errors become HTTP here and nowhere else: `application/problem+json` (RFC 9457) on both surfaces.

A typed error brings its own code, status and fields. What the framework or the database raises is named by a short
catalogue. Everything else is a `fault`: the client learns its request id, the log learns the rest. No text of the
server, of PostgreSQL or of an exception reaches a client.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpResponse, UnreadablePostError
from rest_framework.exceptions import APIException

from tenants.errors import DuctorError, Unavailable, leaves
from tenants.store import translate

CONTENT_TYPE = "application/problem+json"
_RESERVED = frozenset({"type", "title", "status", "detail", "code", "request_id", "errors", "retry_after"})

log = structlog.get_logger("ductor.problems")


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal as a client sees it; `retry_after` in seconds."""

    status: int
    code: str
    detail: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[Mapping[str, Any]] = ()
    retry_after: float | None = None

    @property
    def slug(self) -> str:
        """The last part of `type`, where the problem is explained."""
        return self.code.replace("_", "-")

    @property
    def title(self) -> str:
        """The same few words for every problem of this code."""
        return self.code.replace("_", " ").capitalize()


_CATALOGUE = (
    Problem(400, "invalid_request", "The request is not well formed."),
    Problem(401, "unauthenticated", "A valid API key is needed: send `Authorization: Bearer <key>`."),
    Problem(403, "forbidden", "This credential may not do that."),
    Problem(404, "not_found", "Nothing here has this id."),
    Problem(405, "method_not_allowed", "This resource does not have that method."),
    Problem(406, "not_acceptable", "Answers are JSON."),
    Problem(409, "conflict", "The act does not fit the present state."),
    Problem(413, "too_large", "The request is larger than 1 MiB."),
    Problem(415, "unsupported_media_type", "Send `Content-Type: application/json`."),
    Problem(
        428,
        "version_required",
        "Say by `If-Match` which version this change was decided on: the ETag of the answer that showed it.",
    ),
    Problem(429, "rate_limited", "Too many requests.", retry_after=1.0),
    Problem(500, "fault", "Something went wrong on our side. Name the request id when you report it."),
    Problem(
        503,
        "unavailable",
        "The database did not answer or did not confirm the act. Try again; a start with the same key is made once.",
        retry_after=2.0,
    ),
)
_BY_STATUS = {problem.status: problem for problem in _CATALOGUE}
FAULT = _BY_STATUS[500]


def of_status(status: int) -> Problem:
    """Return the catalogue's problem for an HTTP status; an unlisted one gets its family's first."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return replace(_BY_STATUS[400], status=status) if 400 <= status < 500 else FAULT


def explained() -> dict[str, Problem]:
    """Return every problem that Ductor can answer, by slug."""
    known = {problem.slug: problem for problem in _CATALOGUE}
    for leaf in leaves().values():
        problem = _from_typed(leaf())
        known.setdefault(problem.slug, problem)
    return known


def from_exception(error: BaseException) -> Problem:
    """Name what an exception means to a client; unknown ones are logged as a fault."""
    typed = error if isinstance(error, DuctorError) else None
    if isinstance(error, DatabaseError | InterfaceError):
        typed = translate(error)
        if typed is None and isinstance(error, OperationalError | InterfaceError):
            typed = Unavailable()
    problem = _from_typed(typed) if typed is not None else _from_framework(error)
    if problem.status == 500:
        log.error("fault", exc_info=error)
    elif problem.code == "unavailable":
        cause = error.__cause__ or error
        log.warning("unavailable", error=type(cause).__qualname__, sqlstate=getattr(cause, "sqlstate", None))
    return problem


def _from_typed(error: DuctorError) -> Problem:
    if error.http_status == 500:
        return FAULT
    if error.http_status == 404:
        # Another tenant's id, a made-up one and a malformed one get one answer: no class and no field tells them apart.
        return _BY_STATUS[404]
    if isinstance(error, Unavailable):
        return _BY_STATUS[503]
    fields = dict(error.fields)
    errors = fields.pop("errors", ())
    return Problem(error.http_status, error.code, error.message, fields, errors, error.retry_after)


def _from_framework(error: BaseException) -> Problem:
    match error:
        case Http404():
            return of_status(404)
        case PermissionDenied():
            return of_status(403)
        case RequestDataTooBig():
            return of_status(413)
        case SuspiciousOperation() | BadRequest() | UnreadablePostError():
            return of_status(400)
        case APIException():
            return of_status(error.status_code)
        case _:
            return FAULT


def response(problem: Problem) -> HttpResponse:
    """Render a problem."""
    document: dict[str, Any] = {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
        "request_id": structlog.contextvars.get_contextvars().get("request_id", ""),
    }
    document.update((name, value) for name, value in problem.fields.items() if name not in _RESERVED)
    if problem.errors:
        document["errors"] = list(problem.errors)
    answer = HttpResponse(status=problem.status, content_type=CONTENT_TYPE)
    retry_after = _whole_seconds(problem)
    if retry_after is not None:
        document["retry_after"] = retry_after
        answer["Retry-After"] = str(retry_after)
    if problem.status == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="ductor"'
    # ASCII with escapes: what a client sent comes back in pointers, and a lone surrogate has no UTF-8 form.
    answer.content = json.dumps(document, ensure_ascii=True, default=str).encode()
    return answer


def _whole_seconds(problem: Problem) -> int | None:
    if problem.retry_after is None:
        return None
    # The platform's refusals reach all clients at once; the jitter keeps them from coming back at once.
    jitter = random.uniform(1.0, 2.0) if problem.status == 503 else 1.0  # noqa: S311
    return max(1, math.ceil(problem.retry_after * jitter))


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """REST framework's hook (`EXCEPTION_HANDLER`)."""
    return response(from_exception(error))


def response_of(error: BaseException) -> HttpResponse:
    """Answer an exception that a middleware or a plain view met."""
    return response(from_exception(error))
