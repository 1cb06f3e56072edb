"""Every error is a problem document, on both surfaces, and tells nothing of the server."""

import json
from typing import Any

import psycopg
import pytest
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import IntegrityError, InterfaceError, InternalError, OperationalError, ProgrammingError
from django.http import Http404, UnreadablePostError
from django.test import override_settings
from rest_framework import exceptions

from ductor import problems
from tenants.errors import ScopeConflict, ScopeMissing, TenantNotFound, Unavailable, leaves
from tests.api.callers import assert_problem, build_caller, client
from workflows.errors import KeyConflict, QuotaExceeded, StaleClaim, TaskNotFound

SECRET = "the server's own words"


def _raised_by(cause: Exception, error: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (TaskNotFound(), 404, "not_found"),
        (TenantNotFound(f"There is no tenant {SECRET}"), 404, "not_found"),
        (QuotaExceeded(used=1), 429, "quota_exceeded"),
        (KeyConflict(), 409, "key_conflict"),
        (StaleClaim(), 409, "lease_lost"),
        (ScopeMissing(SECRET), 500, "fault"),
        (ScopeConflict(SECRET), 500, "fault"),
        (Unavailable(SECRET), 503, "unavailable"),
        (OperationalError(SECRET), 503, "unavailable"),
        (InterfaceError(SECRET), 503, "unavailable"),
        (_raised_by(psycopg.errors.ReadOnlySqlTransaction(SECRET), InternalError(SECRET)), 503, "unavailable"),
        (_raised_by(psycopg.errors.AdminShutdown(SECRET), OperationalError(SECRET)), 503, "unavailable"),
        (_raised_by(psycopg.errors.QueryCanceled(SECRET), OperationalError(SECRET)), 503, "unavailable"),
        (_raised_by(psycopg.errors.DeadlockDetected(SECRET), OperationalError(SECRET)), 503, "unavailable"),
        (_raised_by(psycopg.errors.IoError(SECRET), OperationalError(SECRET)), 503, "unavailable"),
        (_raised_by(psycopg.errors.UniqueViolation(SECRET), IntegrityError(SECRET)), 500, "fault"),
        (_raised_by(psycopg.errors.UndefinedTable(SECRET), ProgrammingError(SECRET)), 500, "fault"),
        (Http404(SECRET), 404, "not_found"),
        (PermissionDenied(SECRET), 403, "forbidden"),
        (SuspiciousOperation(SECRET), 400, "invalid_request"),
        (BadRequest(SECRET), 400, "invalid_request"),
        (UnreadablePostError(SECRET), 400, "invalid_request"),
        (RequestDataTooBig(SECRET), 413, "too_large"),
        (exceptions.MethodNotAllowed(SECRET), 405, "method_not_allowed"),
        (exceptions.NotAcceptable(SECRET), 406, "not_acceptable"),
        (exceptions.UnsupportedMediaType(SECRET), 415, "unsupported_media_type"),
        (exceptions.ParseError(SECRET), 400, "invalid_request"),
        (exceptions.NotAuthenticated(SECRET), 401, "unauthenticated"),
        (exceptions.PermissionDenied(SECRET), 403, "forbidden"),
        (exceptions.NotFound(SECRET), 404, "not_found"),
        (exceptions.Throttled(1), 429, "rate_limited"),
        (ValueError(SECRET), 500, "fault"),
        (RecursionError(SECRET), 500, "fault"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_what_each_exception_becomes(error: Exception, status: int, code: str) -> None:
    answer = problems.response_of(error)
    document = json.loads(answer.content)
    assert (answer.status_code, document["status"], document["code"]) == (status, status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert SECRET not in answer.content.decode()
    if code in ("unavailable", "rate_limited"):
        assert int(answer["Retry-After"]) == document["retry_after"] >= 1


def test_every_404_is_the_same_document() -> None:
    documents = [problems.response_of(error).content for error in (TaskNotFound(), TenantNotFound("x"), Http404("y"))]
    assert documents == [documents[0]] * 3


def test_fields_can_t_take_the_place_of_the_document_s_own() -> None:
    document = json.loads(problems.response_of(QuotaExceeded(status=1, code="x", type="y", used=3)).content)
    shown = {name: document[name] for name in ("status", "code", "type", "used")}
    assert shown == {"status": 429, "code": "quota_exceeded", "type": "/problems/quota-exceeded", "used": 3}


def test_every_code_is_explained_where_its_type_points_to() -> None:
    surface = client()
    codes = {leaf.code for leaf in leaves().values()} | {problem.code for problem in problems.explained().values()}
    for code in codes:
        slug = code.replace("_", "-")
        page = surface.get(f"/problems/{slug}")
        assert page.status_code == 200, code
        assert (page.json()["code"], page.json()["type"]) == (code, f"/problems/{slug}")
    assert_problem(surface.get("/problems/no-such-problem"), 404, "not_found")


@pytest.mark.parametrize("surface", ["ductor.urls", "ductor.urls_operator"])
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/health/live", 405, "method_not_allowed"),
        ("DELETE", "/problems/not-found", 405, "method_not_allowed"),
        ("GET", "/problems/not-there", 404, "not_found"),
    ],
)
def test_the_framework_s_own_refusals(surface: str, method: str, path: str, status: int, code: str) -> None:
    with override_settings(ROOT_URLCONF=surface):
        answer = client().generic(method, path)
    assert_problem(answer, status, code)
    assert ("Allow" in answer.headers) == (status == 405)


def test_an_unknown_path_with_a_key_is_404_and_an_unknown_host_400() -> None:
    caller = build_caller()
    assert_problem(caller.get("/api/v1/nothing"), 404, "not_found")
    assert_problem(caller.get("/nothing"), 404, "not_found")
    assert_problem(client("evil.example").get("/health/live"), 400, "invalid_request")


def test_a_fault_in_a_view_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError(SECRET)

    caller = build_caller()
    monkeypatch.setattr("workflows.api.views.list_summaries", broken)
    answer = caller.get()
    assert_problem(answer, 500, "fault")
    assert SECRET not in answer.content.decode()
    monkeypatch.setattr("ductor.public.problems.explained", broken)
    answer = client().get("/problems/not-found")
    assert_problem(answer, 500, "fault")
    assert SECRET not in answer.content.decode()


def test_an_answer_in_another_format_is_not_acceptable() -> None:
    assert_problem(build_caller().get(Accept="text/html"), 406, "not_acceptable")
