"""Nobody reaches another tenant through HTTP: ids, hosts, headers, bodies, cursors, methods (S1 to S4, S14)."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.views import APIView

from ductor.surfaces import is_page, is_public
from tenants.api.permissions import Permitted
from tenants.api.views import TenantResource
from tenants.identity import new_id
from tests.api.callers import ORDER, TASKS, Caller, assert_problem, build_caller, client, comparable, written
from tests.api.workflows import REVIEW
from tests.builders import rows
from tests.database import owner

# Both surfaces', then the tenant surface's own: what describes the API says nothing of any tenant.
PUBLIC_ROUTES = {"/", "/health/live", "/health/ready", "/problems/x"}
DESCRIPTION = {"/api/schema", "/api/docs/"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
MALFORMED = ("abc", "1", "１", "%00", "..", "{id}", "null", "0" * 5000, "01A22D0F-A78F-7411-9D50-8EBDE6A05C1D", "é")


def _routes(surface: str) -> Iterator[tuple[str, Any]]:
    def walk(patterns: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            path = prefix + re.sub(r"<[^>]+>", "x", str(pattern.pattern))
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, path)
            elif isinstance(pattern, URLPattern):
                yield path, pattern.callback

    yield from walk(get_resolver(surface).url_patterns, "/")


@pytest.mark.parametrize("method", METHODS)
def test_every_route_of_the_tenant_surface_demands_a_key_or_stands_in_the_public_list(method: str) -> None:
    asked = []
    for path, _ in _routes("ductor.urls"):
        if path in PUBLIC_ROUTES | DESCRIPTION or is_page(path):
            continue
        asked.append(path)
        with CaptureQueriesContext(connection) as queries:
            answer = client().generic(method, path)
        assert answer.status_code == 401, (method, path)
        assert answer["WWW-Authenticate"].startswith("Bearer")
        assert len(queries) == 0, path
    assert set(asked) >= {"/api/v1/tasks", "/api/v1/tasks/x", "/api/v1/tasks/x/cancel"}


def test_the_public_list_is_no_longer_than_it_needs_to_be() -> None:
    # Whoever signs in has no credential yet; what lies below /accounts/ is django-allauth's.
    signing_in = "/accounts/"
    public = {path for path, _ in _routes("ductor.urls") if is_public(path) and not path.startswith(signing_in)}
    assert public == PUBLIC_ROUTES | DESCRIPTION
    operators = {path for path, _ in _routes("ductor.urls_operator") if not path.startswith((signing_in, "/admin/"))}
    assert operators == {*PUBLIC_ROUTES, "/metrics"}


def test_every_api_view_declares_who_may_call_each_of_its_methods() -> None:
    views = [callback.cls for _, callback in _routes("ductor.urls") if hasattr(callback, "cls")]
    assert len(views) >= 3
    for view in views:
        assert issubclass(view, TenantResource)
        assert view.permission_classes == [Permitted], view
        handlers = {name.upper() for name in view.http_method_names if hasattr(view, name)} - {"HEAD"}
        assert set(view.permissions) == handlers, view


def test_a_view_that_declares_nothing_is_nobody_s() -> None:
    from rest_framework.test import APIRequestFactory

    answer = APIView.as_view()(APIRequestFactory().get("/"))
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Tenant": "TENANT"},
        {"X-Tenant-Id": "TENANT_ID"},
        {"Authorization": "TENANT"},
        {"Authorization": "Bearer TENANT_ID"},
        {"Authorization": "Basic TENANT"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer " + "x" * 5000},
        {"Authorization": "Bearer é.ü"},
        {"Cookie": "sessionid=TENANT_ID; tenant=TENANT"},
    ],
)
def test_a_tenant_named_without_a_key_is_no_tenant(headers: dict[str, str]) -> None:
    caller = build_caller()
    host = "tenant.localhost"
    _give_domain(caller, host)
    named = {
        name: value.replace("TENANT_ID", str(caller.tenant.id)).replace("TENANT", caller.tenant.slug)
        for name, value in headers.items()
    }
    body = b'{"tenant": "%s", "workflow": "faces-review", "input": {"order": 1}}' % caller.tenant.slug.encode()
    before = written()
    with CaptureQueriesContext(connection) as queries:
        read = client(host).get(f"{TASKS}?tenant={caller.tenant.slug}", headers=named)
        write = client(host).generic("POST", TASKS, body, content_type="application/json", headers=named)
    assert_problem(read, 401, "unauthenticated")
    assert_problem(write, 401, "unauthenticated")
    assert [query for query in queries.captured_queries if "tenant_id" in query["sql"]] == []
    assert written() == before


def test_an_unknown_key_is_looked_up_and_nothing_else_is() -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = Caller(build_caller().tenant, "abcdefgh." + "x" * 40).get()
    assert_problem(answer, 401, "unauthenticated")
    asked = [query["sql"] for query in queries.captured_queries if "tenants_find_api_key" not in query["sql"]]
    assert [sql for sql in asked if "tenants_" in sql or "workflows_" in sql] == []


@pytest.mark.parametrize(("method", "suffix"), [("GET", ""), ("GET", "?wait=1"), ("POST", "/cancel")])
def test_another_tenant_s_id_a_made_up_one_and_a_malformed_one_are_one_answer(method: str, suffix: str) -> None:
    mine, theirs = build_caller(), build_caller()
    other_s = theirs.start(key="theirs").json()["id"]
    before = written()

    def ask(task_id: str) -> Any:
        return comparable(mine.get(f"{TASKS}/{task_id}{suffix}", method=method))

    expected = ask(str(new_id()))
    assert expected[0] == 404
    assert ask(other_s) == expected
    assert ask(str(uuid4())) == expected
    assert ask(str(theirs.tenant.id)) == expected
    for text in MALFORMED:
        assert ask(text) == expected, text
    assert written() == before
    assert theirs.get(f"{TASKS}/{other_s}").json()["state"] == "queued"


def test_another_tenant_s_id_costs_the_same_statements_as_a_made_up_one() -> None:
    mine, theirs = build_caller(), build_caller()
    other_s = theirs.start().json()["id"]

    def statements(task_id: str) -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            mine.get(f"{TASKS}/{task_id}")
        return [re.sub(r"'[^']*'", "?", query["sql"]) for query in queries.captured_queries]

    assert statements(other_s) == statements(str(new_id()))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_another_tenant_s_task(method: str) -> None:
    mine, theirs = build_caller(), build_caller()
    other_s = theirs.start().json()["id"]
    before = written()
    for suffix in ("", "/cancel"):
        known = comparable(mine.post(f"{TASKS}/{other_s}{suffix}", {}, method=method))
        assert known == comparable(mine.post(f"{TASKS}/{new_id()}{suffix}", {}, method=method))
        assert known[0] in (404, 405)
    assert written() == before


def test_a_method_override_overrides_nothing() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    before = written()
    caller.get(f"{TASKS}/{task_id}", X_HTTP_Method_Override="DELETE")
    assert_problem(caller.post(f"{TASKS}/{task_id}?_method=DELETE", {}), 405, "method_not_allowed")
    assert written() == before


def test_lists_hold_one_s_own_only() -> None:
    one, other = build_caller(), build_caller()
    ids = {caller: {caller.start(key=f"k{n}").json()["id"] for n in range(3)} for caller in (one, other)}
    for _ in range(20):
        for caller in (one, other):
            assert {task["id"] for task in caller.get().json()["data"]} == ids[caller]
            assert len(caller.get(f"{TASKS}?key=k1").json()["data"]) == 1


def test_the_host_of_another_tenant_s_domain_is_404_with_one_s_own_key() -> None:
    one, other = build_caller(), build_caller()
    _give_domain(one, "one.localhost")
    _give_domain(other, "other.localhost")
    task_id = one.start().json()["id"]
    path = f"{TASKS}/{task_id}"

    def ask(caller: Caller, host: str) -> Any:
        return client(host).get(path, headers={"Authorization": f"Bearer {caller.key}"})

    assert ask(one, "one.localhost").status_code == 200
    assert ask(one, "localhost").status_code == 200
    assert_problem(ask(one, "other.localhost"), 404, "not_found")
    assert_problem(ask(one, "OTHER.localhost"), 404, "not_found")
    assert comparable(ask(one, "other.localhost")) == comparable(ask(other, "one.localhost"))


def test_a_body_that_names_a_tenant_is_refused() -> None:
    one, other = build_caller(), build_caller()
    before = written()
    for name in ("tenant", "tenant_id"):
        body = {"workflow": REVIEW, "input": ORDER, name: str(other.tenant.id)}
        assert_problem(one.post(body=body), 400, "invalid_request")
    assert written() == before


def test_one_s_key_does_not_tell_another_s_load() -> None:
    """S22: refusals and headers speak of the asking tenant alone."""
    quiet, busy = build_caller(), build_caller(max_outstanding=3)
    alone = quiet.start()
    for _ in range(3):
        busy.start()
    document = assert_problem(busy.start(), 429, "quota_exceeded")
    assert (document["limit"], document["used"], document["maximum"]) == ("max_outstanding", 3, 3)
    assert document["scope"] == "tenant"
    assert document["remedy"]
    beside = quiet.start()
    names = set(alone.headers) | set(beside.headers)
    changed = {name for name in names if alone.headers.get(name) != beside.headers.get(name)}
    assert changed <= {"X-Request-Id", "Location", "Content-Length", "RateLimit"}


def test_a_quota_refusal_says_when_to_come_back_and_writes_nothing() -> None:
    caller = build_caller(max_outstanding=1)
    caller.start()
    before = written()
    answer = caller.start()
    document = assert_problem(answer, 429, "quota_exceeded")
    assert int(answer["Retry-After"]) == document["retry_after"] >= 1
    assert written() == before


def _give_domain(caller: Caller, host: str) -> None:
    owner().execute(
        "insert into tenants_domain (id, domain, is_primary, tenant_id) values (%s, %s, true, %s)",
        (new_id(), host, caller.tenant.id),
    )
    assert rows("select tenant_id from tenants_domain where domain = %s", host) == [(caller.tenant.id,)]
