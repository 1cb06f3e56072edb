"""`/policy`: conditional reads, conditional writes, and limits that only tighten."""

from typing import Any

import pytest

from tests.api.callers import ORDER, Caller, assert_problem, build_caller, written
from tests.api.workflows import REVIEW
from tests.builders import build_key, build_policy, rows

POLICY = "/api/v1/policy"
USAGE = "/api/v1/usage"


def build_admin(**limits: Any) -> Caller:
    return build_caller("policy:read", "policy:write", "tasks:write", **limits)


def tighten(caller: Caller, body: Any, **headers: str) -> Any:
    return caller.post(POLICY, body, method="PATCH", **headers)


def stored() -> list[Any]:
    return [*written(), rows("select * from tenants_policy order by tenant_id")]


def test_the_policy_with_its_etag() -> None:
    caller = build_admin(max_outstanding=100, max_leases=7, weight=3, guaranteed_leases=2)
    answer = caller.get(POLICY)
    assert (answer.status_code, answer["ETag"]) == (200, '"1"')
    document = answer.json()
    assert document.pop("updated_at").endswith("Z")
    assert document == {
        "version": 1,
        "max_outstanding": 100,
        "max_leases": 7,
        "own_max_outstanding": None,
        "own_max_leases": None,
        "effective_max_outstanding": 100,
        "effective_max_leases": 7,
        "weight": 3,
        "guaranteed_leases": 2,
    }


@pytest.mark.parametrize("known", ['"1"', 'W/"1"', '"0", "1"', "*"])
def test_who_has_it_is_told_so_without_a_body(known: str) -> None:
    answer = build_admin().get(POLICY, If_None_Match=known)
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", '"1"')


@pytest.mark.parametrize("known", ['"2"', "1", '"01"', "", '"'])
def test_who_has_another_one_is_shown_it(known: str) -> None:
    assert build_admin().get(POLICY, If_None_Match=known).status_code == 200


def test_a_change_moves_version_limits_and_audit() -> None:
    caller = build_admin(max_outstanding=100)
    answer = tighten(caller, {"own_max_outstanding": 1, "reason": "quiet"}, If_Match='"1"', X_Request_Id="request-1")
    assert (answer.status_code, answer["ETag"]) == (200, '"2"')
    document = answer.json()
    assert (document["own_max_outstanding"], document["effective_max_outstanding"], document["version"]) == (1, 1, 2)
    assert caller.start().status_code == 201
    refusal = assert_problem(caller.post(body={"workflow": REVIEW, "input": ORDER}), 429, "quota_exceeded")
    assert refusal["maximum"] == 1
    [act] = rows("select act, reason, request_id, before, after from tenants_act where act = 'policy.tighten'")
    before = {"own_max_outstanding": None, "own_max_leases": None}
    assert act == ("policy.tighten", "quiet", "request-1", before, {**before, "own_max_outstanding": 1})
    lifted = tighten(caller, {"own_max_outstanding": None}, If_Match='"2"').json()
    assert (lifted["own_max_outstanding"], lifted["effective_max_outstanding"]) == (None, 100)
    assert caller.start().status_code == 201


def test_without_the_version_it_is_not_taken() -> None:
    caller = build_admin()
    before = stored()
    assert_problem(tighten(caller, {"own_max_leases": 1}), 428, "version_required")
    assert stored() == before


@pytest.mark.parametrize("version", ['"2"', 'W/"1"', "1", '"x"', "", '"١"', '"-1"', '"1.0"'])
def test_another_version_is_a_mismatch_that_names_the_present_one(version: str) -> None:
    caller = build_admin()
    before = stored()
    document = assert_problem(tighten(caller, {"own_max_leases": 1}, If_Match=version), 412, "version_mismatch")
    assert document["current"] == 1
    assert stored() == before


@pytest.mark.parametrize("version", ['"1"', '"7", "1"', "*"])
def test_a_version_that_fits_is_taken(version: str) -> None:
    assert tighten(build_admin(), {"own_max_leases": 1}, If_Match=version).status_code == 200


def test_the_operator_s_change_makes_the_old_version_stale() -> None:
    caller = build_admin()
    build_policy(caller.tenant, max_outstanding=10, max_leases=10)
    assert_problem(tighten(caller, {"own_max_leases": 1}, If_Match='"1"'), 412, "version_mismatch")
    assert tighten(caller, {"own_max_leases": 1}, If_Match='"2"').status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"),
        ({"own_max_leases": 0}, "invalid_request"),
        ({"own_max_leases": -1}, "invalid_request"),
        ({"own_max_leases": 1.5}, "invalid_request"),
        ({"own_max_leases": "1"}, "invalid_request"),
        ({"own_max_leases": True}, "invalid_request"),
        ({"own_max_leases": 2**63}, "invalid_request"),
        ({"own_max_leases": 21}, "limit_invalid"),
        ({"max_leases": 1}, "invalid_request"),
        ({"weight": 1000}, "invalid_request"),
        ({"guaranteed_leases": 5}, "invalid_request"),
        ({"version": 9}, "invalid_request"),
        ({"frozen": []}, "invalid_request"),
        ({"own_max_leases": 1, "tenant_id": "x"}, "invalid_request"),
        ({"own_max_leases": 1, "reason": "a\nb"}, "invalid_request"),
    ],
)
def test_what_a_tenant_may_not_set(body: dict[str, Any], code: str) -> None:
    caller = build_admin(max_leases=20)
    before = stored()
    assert_problem(tighten(caller, body, If_Match='"1"'), 400, code)
    assert stored() == before


def test_who_may_read_may_not_write() -> None:
    caller = build_caller("policy:read")
    before = stored()
    assert_problem(tighten(caller, {"own_max_leases": 1}, If_Match='"1"'), 403, "forbidden")
    assert stored() == before


def test_usage_shows_the_limits_that_hold_and_one_s_own_work() -> None:
    caller, other = build_admin(max_outstanding=50), build_admin()
    tighten(caller, {"own_max_outstanding": 9}, If_Match='"1"')
    for one in (caller, caller, other):
        one.start()
    document = caller.get(USAGE).json()
    assert document == {
        "outstanding": 2,
        "max_outstanding": 9,
        "leased": 0,
        "max_leases": 20,
        "frozen": [],
        "queues": [{"queue": "default", "queued": 2, "waiting": 0, "completed": 0, "failed": 0, "cancelled": 0}],
    }


def test_without_a_policy_there_is_neither() -> None:
    caller = build_admin(policy=False)
    for path in (POLICY, USAGE):
        assert_problem(caller.get(path), 409, "policy_missing")
    assert_problem(tighten(caller, {"own_max_leases": 1}, If_Match='"1"'), 409, "policy_missing")
    assert build_key(caller.tenant, "policy:read")
