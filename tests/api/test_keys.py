"""API keys at the door (S10, B22): scoped, expiring, revoked at once, hashed at rest."""

from datetime import UTC, datetime, timedelta

import pytest

from tenants.keys import revoke_api_key
from tests import clock
from tests.api.callers import ORDER, TASKS, Caller, assert_problem, build_caller, client, comparable, written
from tests.api.workflows import REVIEW
from tests.builders import PRINCIPAL, build_key, build_tenant, rows
from tests.database import as_role, owner


@pytest.mark.parametrize(
    ("scopes", "reads", "writes"),
    [
        (("tasks:read",), 200, 403),
        (("tasks:write",), 403, 201),
        (("tasks:read", "tasks:write"), 200, 201),
        (("worker",), 403, 403),
        (("signals:write", "policy:read", "policy:write", "budget:read", "audit:read", "keys:write"), 403, 403),
    ],
)
def test_a_key_may_do_what_its_scopes_say(scopes: tuple[str, ...], reads: int, writes: int) -> None:
    caller = build_caller(*scopes)
    assert caller.get().status_code == reads
    assert caller.start().status_code == writes


def test_a_missing_scope_is_named_and_nothing_is_written() -> None:
    tenant = build_tenant()
    task_id = build_caller(tenant=tenant).start().json()["id"]
    caller = build_caller("tasks:read", tenant=tenant)
    before = written()
    assert assert_problem(caller.start(), 403, "forbidden")["scope"] == "tasks:write"
    assert_problem(caller.post(f"{TASKS}/{task_id}/cancel", {}), 403, "forbidden")
    assert written() == before


def test_without_the_scope_a_task_that_exists_and_one_that_does_not_look_alike() -> None:
    tenant = build_tenant()
    task_id = build_caller(tenant=tenant).start().json()["id"]
    caller = build_caller("tasks:write", tenant=tenant)
    assert comparable(caller.get(f"{TASKS}/{task_id}")) == comparable(caller.get(f"{TASKS}/{tenant.id}"))


def test_a_revoked_key_is_refused_from_the_next_request_on() -> None:
    caller = build_caller()
    assert caller.get().status_code == 200
    _revoke(caller)
    assert_problem(caller.get(), 401, "unauthenticated")
    before = written()
    assert_problem(caller.start(), 401, "unauthenticated")
    assert written() == before


def test_revoked_expired_unknown_and_malformed_keys_are_one_answer() -> None:
    tenant = build_tenant()
    revoked = build_caller(tenant=tenant)
    _revoke(revoked)
    expired = Caller(tenant, build_key(tenant, expires_at=datetime.now(UTC) + timedelta(hours=1)))
    assert expired.get().status_code == 200
    clock.advance(3601)
    unknown = Caller(tenant, revoked.key[:-1] + ("a" if revoked.key[-1] != "a" else "b"))
    prefix_only = Caller(tenant, revoked.key.partition(".")[0])
    answers = [comparable(caller.get()) for caller in (revoked, expired, unknown, prefix_only, Caller(tenant, "x"))]
    assert answers[0][0] == 401
    assert answers == [answers[0]] * 5


def test_a_suspended_tenant_s_key_opens_nothing() -> None:
    caller = build_caller()
    owner().execute("update tenants_tenant set status = 'suspended' where id = %s", (caller.tenant.id,))
    assert_problem(caller.get(), 401, "unauthenticated")


def test_the_secret_is_nowhere_in_the_database() -> None:
    caller = build_caller()
    caller.start()
    secret = caller.key.partition(".")[2]
    for table in ("tenants_apikey", "tenants_act", "workflows_task"):
        assert rows(f"select count(*) from {table} t where t::text like %s", f"%{secret}%") == [(0,)]
    [(stored,)] = rows("select hashed_key from tenants_apikey")
    assert stored.startswith("sha512$$")


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    caller = build_caller()
    answer = client().get(TASKS, headers={"Authorization": f"{scheme} {caller.key}"})
    assert answer.status_code == 200


def test_no_policy_admits_nothing() -> None:
    caller = build_caller(policy=False)
    before = written()
    assert_problem(caller.post(body={"workflow": REVIEW, "input": ORDER}), 409, "policy_missing")
    assert written() == before


def _revoke(caller: Caller) -> None:
    [(key_id,)] = rows("select id from tenants_apikey where prefix = %s", caller.key.partition(".")[0])
    with as_role("operator"):
        revoke_api_key(tenant_id=caller.tenant.id, key_id=key_id, principal=PRINCIPAL)
