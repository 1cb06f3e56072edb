"""`ductor doctor`: clean on a sound platform, and each fault is found, named and ends with 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.api.callers import build_caller
from tests.builders import build_tenant, claim, complete, start
from tests.commands.running import ductor_process
from tests.database import owner


def _findings(**environment: str) -> tuple[int, dict[str, dict[str, str]]]:
    ran = ductor_process("doctor", "--json", **environment)
    assert ran.err == ""
    document = ran.document
    assert document["healthy"] == (ran.code == 0)
    return ran.code, {finding["check"]: finding for finding in document["findings"]}


@contextmanager
def _spoilt(spoil: str, mend: str) -> Iterator[None]:
    owner().execute(spoil)
    try:
        yield
    finally:
        owner().execute(mend)


def test_a_sound_platform_is_clean() -> None:
    tenant = build_tenant()
    start(tenant, 5)
    start(tenant, 2, delay_seconds=600)
    complete(claim(2))
    claim(1)
    build_caller().start()
    code, findings = _findings()
    assert {name: finding["detail"] for name, finding in findings.items() if finding["verdict"] != "ok"} == {}
    assert code == 0
    assert len(findings) == 15
    table = ductor_process("doctor")
    assert table.code == 0
    assert "row security" in table.out
    assert "\x1b" not in table.out


@pytest.mark.parametrize(
    ("check", "spoil", "mend", "named"),
    [
        (
            "row security",
            "alter table workflows_step no force row level security",
            "alter table workflows_step force row level security",
            "workflows_step",
        ),
        (
            "row security",
            "create policy everybody on tenants_load to ductor_web using (true)",
            "drop policy everybody on tenants_load",
            "everybody",
        ),
        (
            "grants",
            "grant delete on workflows_task to ductor_web",
            "revoke delete on workflows_task from ductor_web",
            "ductor_web may delete workflows_task",
        ),
        (
            "grants",
            "grant update (slug) on tenants_tenant to ductor_operator",
            "revoke update (slug) on tenants_tenant from ductor_operator",
            "ductor_operator may update tenants_tenant.slug",
        ),
        (
            "grants",
            "revoke execute on function ductor_now() from ductor_worker",
            "grant execute on function ductor_now() to ductor_worker",
            "ductor_worker may not execute ductor_now",
        ),
        (
            "grants",
            "grant select on tenants_load to public",
            "revoke select on tenants_load from public",
            "public may select tenants_load",
        ),
        (
            "functions",
            "create function workflows_surprise() returns int language sql as 'select 1'; "
            "revoke all on function workflows_surprise() from public; "
            "grant execute on function workflows_surprise() to ductor_engine",
            "drop function workflows_surprise()",
            "workflows_surprise has no file",
        ),
        (
            "functions",
            "create or replace function ductor_now() returns timestamptz language sql as 'select now()'",
            "create or replace function ductor_now() returns timestamptz language sql volatile parallel safe "
            "as ' select clock_timestamp() '",
            "ductor_now differs",
        ),
        (
            "migrations",
            "delete from django_migrations where app = 'workflows' and name = '0003_functions'",
            "insert into django_migrations (app, name, applied) values ('workflows', '0003_functions', now())",
            "workflows.0003_functions",
        ),
    ],
)
def test_a_fault_in_the_structure_is_found(check: str, spoil: str, mend: str, named: str) -> None:
    with _spoilt(spoil, mend):
        code, findings = _findings()
    wrong = {name: finding for name, finding in findings.items() if finding["verdict"] != "ok"}
    assert set(wrong) == {check}
    assert named in wrong[check]["detail"]
    assert "init-db" in wrong[check]["detail"]
    assert code == 1


LATE_LEASE = "update workflows_task set lease_expires_at = now() - interval '5 minutes' where state = 'leased'"


@pytest.mark.parametrize(
    ("check", "verdict", "spoil"),
    [
        ("counters", "failure", "update tenants_load set outstanding = outstanding + 1 where outstanding > 0"),
        ("counters", "failure", "update tenants_turn set queued = queued + 1 where queued > 0"),
        ("faults", "failure", "update tenants_turn set blocked = 64 where queued > 0"),
        ("claims", "warning", "update tenants_turn set next_due_at = now() - interval '5 minutes' where blocked = 0"),
        ("leases", "warning", LATE_LEASE),
    ],
)
def test_a_fault_in_the_work_is_found(check: str, verdict: str, spoil: str) -> None:
    start(build_tenant(), 3)
    claim(1)
    owner().execute(spoil)
    code, findings = _findings()
    wrong = {name: found["verdict"] for name, found in findings.items() if found["verdict"] != "ok"}
    assert wrong == {check: verdict}
    assert code == (1 if verdict == "failure" else 0)


def test_a_database_that_is_not_there_is_one_line() -> None:
    ran = ductor_process("doctor", DUCTOR_DATABASE_URL_OPERATOR="postgres://ductor_operator@/none?host=/nowhere/at/all")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: unavailable: ")
    assert ran.err.count("\n") == 1
