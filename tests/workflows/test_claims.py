"""Claiming, finishing and releasing: the store contract's C01 to C18 on real PostgreSQL."""

import pytest

from tests import clock
from tests.builders import (
    PRINCIPAL,
    assert_counters_true,
    build_policy,
    build_tenant,
    claim,
    complete,
    rows,
    start,
)
from workflows.admission import NewTask, enqueue
from workflows.cancelling import cancel
from workflows.claims import Claim, Outcome, finish, heartbeat, release, take
from workflows.errors import BatchOutOfBounds, QuotaExceeded, TaskFinished
from workflows.queries import get_task
from workflows.recovery import recover


def state(tenant, task_id) -> str:
    return get_task(tenant_id=tenant.id, task_id=task_id).state


def test_c01_outstanding_limit_refuses_the_third_until_one_completes() -> None:
    tenant = build_tenant(max_outstanding=2, max_leases=1)
    start(tenant, 2)
    with pytest.raises(QuotaExceeded) as refused:
        start(tenant)
    assert refused.value.fields == {
        "limit": "max_outstanding",
        "scope": "tenant",
        "used": 2,
        "requested": 1,
        "maximum": 2,
        "unit": "outstanding-tasks",
        "remedy": "Wait until tasks finish, cancel some, or ask the operator for a higher limit.",
    }
    assert refused.value.retry_after == 5
    assert rows("select count(*) from workflows_task") == [(2,)]
    complete(claim(1))
    start(tenant)
    assert_counters_true()


def test_c03_tenant_before_priority() -> None:
    a, b = build_tenant("aaa"), build_tenant("bbb")
    start(a, priority=100)
    start(a, priority=90)
    start(b, priority=1)
    order = [claim(1, worker=f"w{n}")[0] for n in range(3)]
    assert [task.claim.tenant_id for task in order] == [a.id, b.id, a.id]


def test_c04_lease_limits_reached_means_nothing_to_claim() -> None:
    a, b = build_tenant(max_leases=2), build_tenant(max_leases=1)
    start(a, 5)
    start(b, 5)
    assert len(claim(10)) == 3
    assert claim(10, worker="w2") == []
    assert_counters_true()


def test_c06_higher_priority_first_inside_a_tenant() -> None:
    tenant = build_tenant()
    start(tenant, priority=1)
    (urgent,) = start(tenant, priority=9)
    assert claim(1)[0].claim.task_id == urgent


def test_c08_lowered_policy_keeps_leases_and_refuses_new_ones() -> None:
    tenant = build_tenant(max_outstanding=10, max_leases=5)
    start(tenant, 8)
    held = claim(5)
    assert len(held) == 5
    build_policy(tenant, max_outstanding=2, max_leases=2)
    assert claim(5) == []
    with pytest.raises(QuotaExceeded):
        start(tenant)
    assert complete(held[:4]) == set()
    assert len(claim(5)) == 1
    assert_counters_true()


def test_c13_c14_expired_lease_is_taken_over_with_a_higher_token() -> None:
    tenant = build_tenant()
    start(tenant)
    (old,) = claim(lease_seconds=10)
    clock.advance(10)
    (new,) = claim(worker="w2")
    assert (new.claim.token, new.attempt, new.alone) == (old.claim.token + 1, 2, True)
    assert complete([old]) == {old.claim}
    assert state(tenant, old.claim.task_id) == "leased"
    assert complete([new]) == set()
    assert state(tenant, old.claim.task_id) == "completed"
    assert_counters_true()


def test_c15_c16_heartbeat_extends_and_never_shortens() -> None:
    tenant = build_tenant()
    start(tenant)
    (task,) = claim(lease_seconds=100)
    ((given,),) = rows("select lease_expires_at from workflows_task")
    assert heartbeat(claims=[task.claim], lease_seconds=1) == {task.claim: "extended"}
    ((kept,),) = rows("select lease_expires_at from workflows_task")
    assert kept == given
    assert heartbeat(claims=[task.claim], lease_seconds=200) == {task.claim: "extended"}
    ((later,),) = rows("select lease_expires_at from workflows_task")
    assert 95 < (later - kept).total_seconds() <= 101
    assert complete([task]) == set()
    assert heartbeat(claims=[task.claim], lease_seconds=200) == {task.claim: "lost"}


def test_c17_retry_waits_for_its_delay() -> None:
    tenant = build_tenant()
    start(tenant)
    (task,) = claim()
    assert finish(outcomes=[Outcome(task.claim, "retry", delay_seconds=30, failure=True)]) == set()
    assert state(tenant, task.claim.task_id) == "waiting"
    empty = take(worker="w1", queue="default", limit=10)
    assert empty.tasks == []
    assert empty.next_due_at is not None
    assert_counters_true()
    clock.advance(31)
    (again,) = claim()
    assert (again.attempt, again.failures, again.claim.token) == (2, 1, 2)
    assert_counters_true()


def test_failures_are_capped_and_retry_later_is_none() -> None:
    tenant = build_tenant()
    start(tenant, max_failures=2)
    for _ in range(5):
        (task,) = claim()
        finish(outcomes=[Outcome(task.claim, "retry")])
    (task,) = claim()
    finish(outcomes=[Outcome(task.claim, "retry", failure=True, error={"class": "X"})])
    (task,) = claim()
    assert task.failures == 1
    finish(outcomes=[Outcome(task.claim, "retry", failure=True, error={"class": "X"})])
    view = get_task(tenant_id=tenant.id, task_id=task.claim.task_id)
    assert (view.state, view.failures, view.error) == ("failed", 2, {"class": "X"})
    assert_counters_true()


def test_release_costs_nothing_and_gives_the_attempt_back() -> None:
    tenant = build_tenant()
    start(tenant, 3)
    ((key_before,),) = rows("select key from tenants_turn")
    tasks = claim()
    assert release(claims=[task.claim for task in tasks]) == set()
    ((key_after,),) = rows("select key from tenants_turn")
    assert key_after == key_before
    again = claim()
    assert [(task.attempt, task.claim.token) for task in again] == [(1, 2)] * 3
    assert release(claims=[task.claim for task in tasks]) == {task.claim for task in tasks}
    assert_counters_true()


def test_c39_cancel_of_a_leased_task_is_final() -> None:
    tenant = build_tenant()
    start(tenant)
    (task,) = claim()
    cancel(tenant_id=tenant.id, task_id=task.claim.task_id, principal=PRINCIPAL, reason="no longer wanted")
    with pytest.raises(TaskFinished):
        cancel(tenant_id=tenant.id, task_id=task.claim.task_id, principal=PRINCIPAL)
    assert heartbeat(claims=[task.claim]) == {task.claim: "lost"}
    assert finish(outcomes=[Outcome(task.claim, "retry", failure=True)]) == {task.claim}
    assert state(tenant, task.claim.task_id) == "cancelled"
    assert_counters_true()


@pytest.mark.parametrize("where", ["queued", "waiting"])
def test_cancel_before_a_claim(where: str) -> None:
    tenant = build_tenant()
    (task_id,) = start(tenant, delay_seconds=60 if where == "waiting" else None)
    assert state(tenant, task_id) == where
    cancel(tenant_id=tenant.id, task_id=task_id, principal=PRINCIPAL)
    clock.advance(120)
    assert claim() == []
    assert_counters_true()


def test_poison_is_claimed_alone_and_ends_failed_while_neighbours_complete() -> None:
    tenant, other = build_tenant(), build_tenant()
    (poison,) = start(tenant, priority=5, max_failures=3)
    start(other, 4)
    assert len(claim(10, lease_seconds=5)) == 5
    clock.advance(6)
    done = 0
    for _ in range(20):
        batch = claim(10, lease_seconds=5)
        if not batch:
            break
        assert len(batch) == 1
        if batch[0].claim.task_id == poison:
            clock.advance(6)
        else:
            done += 1
            assert complete(batch) == set()
    view = get_task(tenant_id=tenant.id, task_id=poison)
    assert (done, view.state, view.failures, view.reason) == (4, "failed", 3, "lease_expired")
    assert_counters_true()


def test_a_lease_that_ran_out_is_charged_where_the_task_ran_alone() -> None:
    """Whoever kills workers pays for the time; neighbours in the killed batch, who may never have started, don't."""
    poison, neighbour = build_tenant(), build_tenant()
    (poison_id,) = start(poison)
    start(neighbour)
    assert len(claim(10, lease_seconds=5)) == 2
    clock.advance(6)
    keys = "select key / 1000000.0 from tenants_turn where tenant_id = %s"
    assert recover(limit=10) == 2
    assert all(rows(keys, tenant.id)[0][0] < 1 for tenant in (poison, neighbour))
    while (task := claim(1, lease_seconds=5)[0]).claim.task_id != poison_id:
        complete([task])
    clock.advance(6)
    assert recover(limit=10) == 1
    assert 6 <= rows(keys, poison.id)[0][0] < 7
    assert rows(keys, neighbour.id)[0][0] < 1
    assert_counters_true()


def test_recover_sweeps_and_stops_at_its_bound() -> None:
    tenant = build_tenant()
    start(tenant, 10)
    assert len(claim(10, lease_seconds=5)) == 10
    assert recover(limit=10) == 0
    clock.advance(5)
    assert [recover(limit=4), recover(limit=4), recover(limit=4), recover(limit=4)] == [4, 4, 2, 0]
    assert_counters_true()


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_claim_bounds(limit: int) -> None:
    with pytest.raises(BatchOutOfBounds):
        claim(limit)


@pytest.mark.parametrize("count", [0, 1001])
def test_batch_bounds(count: int) -> None:
    tenant = build_tenant()
    with pytest.raises(BatchOutOfBounds):
        enqueue(tenant_id=tenant.id, tasks=[NewTask("w", 1, None)] * count, principal=PRINCIPAL)
    claims = [Claim(tenant.id, tenant.id, "w", 1)] * count
    for verb in (
        lambda: release(claims=claims),
        lambda: heartbeat(claims=claims),
        lambda: finish(outcomes=[Outcome(one, "completed") for one in claims]),
    ):
        with pytest.raises(BatchOutOfBounds):
            verb()
    with pytest.raises(BatchOutOfBounds):
        recover(limit=count)


def test_delayed_start_waits_and_runs_once() -> None:
    tenant = build_tenant()
    start(tenant, delay_seconds=600)
    assert claim() == []
    clock.advance(601)
    assert len(claim()) == 1
    assert claim() == []
    assert_counters_true()


def test_other_queues_stay_apart() -> None:
    tenant = build_tenant()
    start(tenant)
    assert claim(queue="system") == []
    assert len(claim()) == 1
