"""`/me`, `/audit` and `/workflows`: what a caller may know of itself, of the acts, and of what can be started."""

from typing import Any

import pytest

from ductor import Workflow
from tests.api.callers import Caller, assert_problem, build_caller
from tests.api.workflows import REVIEW
from workflows import registry

AUDIT = "/api/v1/audit"
WORKFLOWS = "/api/v1/workflows"


def test_me_is_the_key_its_tenant_and_what_it_may() -> None:
    caller = build_caller("tasks:read")
    document = caller.get("/api/v1/me").json()
    assert document["tenant"] == caller.tenant.slug
    assert document["principal"]["kind"] == "key"
    assert document["principal"]["name"] == "test"
    assert (document["permissions"], document["scopes"]) == (["tasks.read"], ["tasks:read"])


@pytest.mark.parametrize("scope", ["worker", "signals:write", "budget:read"])
def test_any_key_may_ask_who_it_is(scope: str) -> None:
    assert build_caller(scope).get("/api/v1/me").json()["scopes"] == [scope]


def test_the_audit_shows_acts_with_their_principal() -> None:
    caller = build_caller("tasks:read", "tasks:write", "audit:read")
    task_id = caller.start().json()["id"]
    caller.post(f"/api/v1/tasks/{task_id}/cancel", {"reason": "withdrawn"}, X_Request_Id="request-1")
    [act] = caller.get(f"{AUDIT}?act=task.cancel").json()["data"]
    assert act["target"] == {"kind": "task", "id": task_id}
    assert (act["reason"], act["request_id"], act["principal"]["name"]) == ("withdrawn", "request-1", "test")
    assert act["at"].endswith("Z")
    assert caller.get(f"{AUDIT}?target=task:{task_id}").json()["data"] == [act]
    assert caller.get(f"{AUDIT}?target=task").json()["data"] == [act]
    assert caller.get(f"{AUDIT}?target=key:{task_id}").json()["data"] == []
    assert caller.get(f"{AUDIT}?until={act['at']}&act=task.cancel").json()["data"] == []
    assert caller.get(f"{AUDIT}?since={act['at']}").json()["data"] == [act]


def test_the_audit_is_one_s_own_page_by_page() -> None:
    caller, other = build_caller("tasks:write", "audit:read"), build_caller("tasks:write", "audit:read")
    for one in (caller, other):
        for _ in range(3):
            one.post(f"/api/v1/tasks/{one.start().json()['id']}/cancel", {})
    seen = _walk(caller, AUDIT, "&act=task.cancel")
    assert len(seen) == len(set(seen)) == 3
    assert not set(seen) & set(_walk(other, AUDIT, ""))
    theirs = other.get(f"{AUDIT}?limit=1").json()["next_cursor"]
    assert_problem(caller.get(f"{AUDIT}?cursor={theirs}"), 400, "invalid_request")


@pytest.mark.parametrize(
    "query", ["since=yesterday", "since=2026-11-30T00:00:00", "act=", "act=" + "x" * 65, "principal=x", "limit=0"]
)
def test_the_audit_is_asked_strictly(query: str) -> None:
    document = assert_problem(build_caller("audit:read").get(f"{AUDIT}?{query}"), 400, "invalid_request")
    assert document["errors"][0]["parameter"] == query.split("=")[0]


def test_moments_at_the_ends_of_time_are_taken() -> None:
    caller = build_caller("audit:read")
    for moment in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999Z"):
        for name in ("since", "until"):
            assert caller.get(f"{AUDIT}?{name}={moment}").status_code == 200


def test_the_audit_needs_its_scope() -> None:
    assert assert_problem(build_caller().get(AUDIT), 403, "forbidden")["scope"] == "audit:read"


def test_workflows_are_listed_with_their_input_schema_and_steps() -> None:
    document = build_caller().get(f"{WORKFLOWS}/{REVIEW}").json()
    assert document["input_schema"]["required"] == ["order"]
    assert (document["name"], document["version"], document["versions"], document["queue"]) == (
        REVIEW,
        1,
        [1],
        "default",
    )
    assert document["steps"] == [
        {"name": "look", "after": [], "max_attempts": 3, "timeout_seconds": 300.0, "atomic": False}
    ]


def test_versions_are_shown_and_wrong_ones_and_the_platform_s_own_are_not() -> None:
    with registry.isolated():
        for name, version, queue in (("b", 1, "default"), ("b", 2, "default"), ("a", 1, "q"), ("own", 1, "system")):
            workflow = Workflow(name, version=version, queue=queue)
            workflow.step(name="first")(lambda ctx: None)
            workflow.step(name="second", after="first")(lambda ctx: None)
        Workflow("without-steps", version=1)
        caller = build_caller()
        assert [(one["name"], one["version"]) for one in caller.get(WORKFLOWS).json()["data"]] == [("a", 1), ("b", 2)]
        assert _walk(caller, WORKFLOWS, "", member="name") == ["a", "b"]
        old = caller.get(f"{WORKFLOWS}/b?version=1").json()
        assert (old["version"], old["versions"]) == (1, [1, 2])
        assert [(step["name"], step["after"]) for step in old["steps"]] == [("first", []), ("second", ["first"])]
        for path in ("b?version=3", "own", "without-steps", "c", "%00", "x" * 5000):
            assert_problem(caller.get(f"{WORKFLOWS}/{path}"), 404, "not_found")


def _walk(caller: Caller, path: str, filters: str, *, member: str = "id") -> list[Any]:
    seen: list[Any] = []
    query = f"?limit=1{filters}"
    while query:
        page = caller.get(path + query).json()
        seen += [one[member] for one in page["data"]]
        query = f"?limit=1{filters}&cursor={page['next_cursor']}" if page["has_more"] else ""
    return seen
