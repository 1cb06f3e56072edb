"""Claims, finishes, cancels and sweeps against each other on real connections."""

import os
import threading
import time
import uuid
from collections import Counter
from functools import partial

import pytest

from tenants.queries import TenantView
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_queue, build_tenant, claim, complete, rows, start
from tests.database import owner
from tests.races import together
from workflows.cancelling import cancel
from workflows.claims import Outcome, finish, take
from workflows.errors import TaskFinished
from workflows.recovery import recover


def ended(tenant: TenantView, task_id: uuid.UUID) -> str:
    return cancel(tenant_id=tenant.id, task_id=task_id, principal=PRINCIPAL).state


FULL = os.environ.get("DUCTOR_TEST_FULL") == "1"


def test_c10_sixteen_claimers_one_winner() -> None:
    tenant = build_tenant()
    start(tenant)
    results = together(*[lambda n=n: claim(1, worker=f"w{n}") for n in range(16)])
    assert sorted(len(result) for result in results) == [0] * 15 + [1]


def test_c05_limit_one_under_two_claimers() -> None:
    tenant = build_tenant(max_leases=1)
    start(tenant, 2)
    results = together(lambda: claim(1, worker="a"), lambda: claim(1, worker="b"))
    assert sorted(len(result) for result in results) == [0, 1]
    assert_counters_true()


def test_i7_i9_contended_limits_hold_and_claims_are_seldom_empty() -> None:
    """8 claimers x 8 tenants at limit 2: never over, at most 5 % empty answers while work waits."""
    tenants = [build_tenant(max_leases=2, max_outstanding=100_000) for _ in range(8)]
    wanted = 5_000 if FULL else 800
    for tenant in tenants:
        # Two tasks a claim at most, so that work waits to the last claim.
        for _ in range(-(-2 * wanted // 8_000) + 1):
            start(tenant, 1000)
    lock, seen = threading.Lock(), Counter()
    over: list[int] = []

    def loop(number: int) -> None:
        while True:
            with lock:
                if seen["claims"] >= wanted:
                    return
            tasks = claim(2, worker=f"w{number}", per_tenant=1)
            with lock:
                seen["claims"] += 1
                seen["empty"] += not tasks
            if tasks:
                complete(tasks)

    def watch() -> None:
        while seen["claims"] < wanted:
            counts = rows_of_leases()
            over.extend(count for count in counts if count > 2)
            time.sleep(0.002)

    def rows_of_leases() -> list[int]:
        found = owner().execute("select count(*) from workflows_task where state = 'leased' group by tenant_id")
        return [count for (count,) in found.fetchall()]

    results = together(*[lambda n=n: loop(n) for n in range(8)], watch, timeout=300)
    assert results == [None] * 9
    assert over == []
    assert seen["empty"] <= 0.05 * seen["claims"]
    assert_counters_true()


def test_two_claimers_and_two_finishers_on_hot_tenants_and_two_queues() -> None:
    """No task claimed twice, no deadlock, counters equal `count(*)`."""
    build_queue("external:test")
    tenants = [build_tenant(max_leases=50, max_outstanding=100_000) for _ in range(3)]
    for tenant in tenants:
        for _ in range(3):
            start(tenant, 1000)
            start(tenant, 300, queue="external:test")
    stop = time.monotonic() + (30 if FULL else 5)
    claimed: list[tuple[uuid.UUID, int]] = []
    handover: list[list] = []

    def claimer(queue: str) -> None:
        while time.monotonic() < stop:
            tasks = claim(30, worker=f"c-{queue}", queue=queue)
            claimed.extend((task.claim.task_id, task.claim.token) for task in tasks)
            if tasks:
                handover.append(tasks)

    def finisher(retry: bool) -> None:
        while time.monotonic() < stop or handover:
            try:
                tasks = handover.pop()
            except IndexError:
                time.sleep(0.001)
                continue
            kind = "retry" if retry else "completed"
            assert finish(outcomes=[Outcome(task.claim, kind) for task in tasks]) == set()

    claimers = [lambda: claimer("default"), lambda: claimer("external:test")]
    assert together(*claimers, lambda: finisher(True), lambda: finisher(False), timeout=120) == [None] * 4
    assert len(claimed) == len(set(claimed)) > 300
    assert_counters_true()


def test_b26_cancel_and_recovery_race() -> None:
    tenant = build_tenant(max_leases=1000)
    for _ in range(200 if FULL else 30):
        (task_id,) = start(tenant)
        (task,) = claim(1, lease_seconds=1)
        clock.advance(2)
        results = together(partial(ended, tenant, task_id), lambda: recover(limit=10))
        assert results[0] == "cancelled"
        assert claim() == []
        assert complete([task]) == {task.claim}
    assert_counters_true()


def test_b42_cancel_and_finish_race_has_one_winner() -> None:
    tenant = build_tenant(max_leases=1000)
    outcomes = Counter()
    for _ in range(200 if FULL else 40):
        (task_id,) = start(tenant)
        (task,) = claim(1)
        cancelled, stale = together(partial(ended, tenant, task_id), partial(complete, [task]))
        won = "cancelled" if stale else "completed"
        outcomes[won] += 1
        assert rows("select state from workflows_task where id = %s", task_id) == [(won,)]
        assert (cancelled == "cancelled") if stale else isinstance(cancelled, TaskFinished)
    assert_counters_true()


def test_b36_two_sweeps_take_each_task_back_once() -> None:
    tenant = build_tenant(max_leases=100)
    start(tenant, 50)
    assert len(claim(50, lease_seconds=1, per_tenant=50)) == 50
    clock.advance(2)
    assert sum(together(lambda: recover(limit=100), lambda: recover(limit=100))) == 50
    assert rows("select distinct token, state from workflows_task") == [(1, "queued")]
    assert_counters_true()


@pytest.mark.parametrize("verb", ["complete", "retry"])
def test_finish_waits_for_a_locked_tenant_and_loses_nothing(verb: str) -> None:
    a, b = build_tenant(), build_tenant()
    start(a)
    start(b)
    tasks = claim()
    assert len(tasks) == 2
    blocker = owner()
    released = threading.Event()

    def hold() -> None:
        with blocker.transaction():
            blocker.execute("select 1 from tenants_load where tenant_id = %s for update", [a.id])
            held.set()
            assert released.wait(10)

    held = threading.Event()

    def end() -> set:
        assert held.wait(10)
        threading.Timer(0.3, released.set).start()
        return finish(outcomes=[Outcome(task.claim, "completed" if verb == "complete" else "retry") for task in tasks])

    assert together(hold, end) == [None, set()]
    assert rows("select count(*) from workflows_task where state = 'leased'") == [(0,)]
    assert_counters_true()


def test_idle_claim_says_when_to_look_again() -> None:
    tenant = build_tenant()
    start(tenant, delay_seconds=100)
    taken = take(worker="w", queue="default", limit=5)
    ((due_at,),) = rows("select due_at from workflows_task")
    assert (taken.tasks, taken.next_due_at) == ([], due_at)
