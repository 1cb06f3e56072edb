"""One tenant's bad row stops that tenant and nobody else, wherever it raises (DESIGN D3)."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tenants.queries import TenantView
from tests import clock
from tests.builders import assert_counters_true, build_tenant, claim, rows, start
from tests.database import owner
from workflows.claims import Outcome, StepRecord, finish, heartbeat, record_steps
from workflows.faults import mark_fault
from workflows.recovery import recover

Poison = Callable[[TenantView, str, str], None]


@pytest.fixture
def poison() -> Iterator[Poison]:
    """Have writes of one tenant's rows raise, as a bad row would, where a condition holds."""
    made: list[str] = []

    def install(tenant: TenantView, table: str, condition: str) -> None:
        owner().execute(
            "create or replace function review_raise() returns trigger language plpgsql as $$ begin"
            " raise exception using errcode = '22003', message = 'a bad row'; end $$;"
            f"grant execute on function review_raise() to ductor_engine;"
            f"create trigger review_poison before insert or update on {table} for each row"
            f" when (new.tenant_id = '{tenant.id}' and {condition}) execute function review_raise()"
        )
        made.append(table)

    yield install
    for table in made:
        owner().execute(f"drop trigger if exists review_poison on {table}")
    owner().execute("drop function if exists review_raise()")


def heal() -> None:
    owner().execute("drop trigger review_poison on workflows_task")


def faulty() -> list[tuple]:
    return rows("select tenant_id from tenants_turn where blocked & 64 <> 0")


def test_a_claim_that_raises_for_one_tenant_marks_him_alone(poison: Poison) -> None:
    bad, good = build_tenant(), build_tenant()
    start(bad)
    (task_id,) = start(good)
    poison(bad, "workflows_task", "new.state = 'leased'")
    assert [task.claim.task_id for _ in range(2) for task in claim(10)] == [task_id]
    assert faulty() == [(bad.id,)]
    heal()
    mark_fault(tenant_id=bad.id, queue="default", faulty=False)
    assert [task.claim.tenant_id for task in claim(10)] == [bad.id]
    assert_counters_true()


def test_a_timer_that_raises_marks_its_tenant_alone_and_the_others_go_on(poison: Poison) -> None:
    bad = build_tenant()
    good = [build_tenant() for _ in range(5)]
    start(bad, delay_seconds=1)
    for tenant in good:
        start(tenant)
        start(tenant, delay_seconds=2)
    poison(bad, "workflows_task", "new.state = 'queued'")
    clock.advance(60)
    seen = [task.claim.tenant_id for _ in range(6) for task in claim(10)]
    assert sorted(seen) == sorted([tenant.id for tenant in good] * 2)
    assert faulty() == [(bad.id,)]
    heal()
    mark_fault(tenant_id=bad.id, queue="default", faulty=False)
    assert [task.claim.tenant_id for task in claim(10)] == [bad.id]
    assert_counters_true()


@pytest.mark.parametrize("by", ["claim", "sweep"])
def test_an_expired_lease_that_raises_marks_its_tenant_alone(poison: Poison, by: str) -> None:
    bad, good = build_tenant(), build_tenant()
    start(bad)
    start(good)
    assert len(claim(10, lease_seconds=5)) == 2
    poison(bad, "workflows_task", "new.state = 'queued'")
    clock.advance(10)
    if by == "claim":
        assert [task.claim.tenant_id for _ in range(2) for task in claim(10)] == [good.id]
    else:
        assert recover(limit=100) == 1
        assert recover(limit=100) == 0
        assert rows("select state from workflows_task where tenant_id = %s", good.id) == [("queued",)]
    assert faulty() == [(bad.id,)]
    heal()
    mark_fault(tenant_id=bad.id, queue="default", faulty=False)
    assert recover(limit=100) == 1
    assert_counters_true()


def test_a_finish_that_raises_for_one_tenant_loses_nobody_elses_outcome(poison: Poison) -> None:
    bad, good = build_tenant(), build_tenant()
    start(bad)
    start(good)
    tasks = claim(10)
    poison(bad, "workflows_task", "new.state = 'completed'")
    assert finish(outcomes=[Outcome(task.claim, "completed") for task in tasks]) == set()
    assert rows("select state from workflows_task where tenant_id = %s", good.id) == [("completed",)]
    assert rows("select state from workflows_task where tenant_id = %s", bad.id) == [("leased",)]
    assert_counters_true()


def test_a_record_that_raises_for_one_tenant_counts_as_his_lost_claim_only(poison: Poison) -> None:
    bad, good = build_tenant(), build_tenant()
    start(bad)
    start(good)
    tasks = {task.claim.tenant_id: task.claim for task in claim(10)}
    poison(bad, "workflows_step", "true")
    now = datetime.now(UTC)
    records = [StepRecord(one, "a", 1, "completed", {"n": 1}, None, now, now) for one in tasks.values()]
    assert record_steps(records=records) == {tasks[bad.id]}
    assert rows("select tenant_id from workflows_step") == [(good.id,)]


def test_progress_that_cannot_be_stored_costs_nobody_the_lease() -> None:
    tenant, other = build_tenant(), build_tenant()
    start(tenant)
    start(other)
    tasks = claim(10, lease_seconds=20)
    progress = {tasks[0].claim: {"note": "\0"}, tasks[1].claim: {"note": "fine"}}
    beats = heartbeat(claims=[task.claim for task in tasks], lease_seconds=60, progress=progress)
    assert set(beats.values()) == {"extended"}
    assert rows("select count(*) from workflows_task where lease_expires_at > now() + interval '40 s'") == [(2,)]
