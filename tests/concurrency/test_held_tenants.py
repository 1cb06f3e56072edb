"""Tenants whose load rows somebody holds for long: they wait, and nobody else does (B27, B46)."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest

from ductor.databases import connection_settings, psycopg_parameters
from tenants.queries import TenantView
from tests import clock
from tests.builders import assert_counters_true, build_tenant, claim, complete, rows, start
from tests.database import as_role
from workflows import faults
from workflows.claims import Claim, ClaimedTask, Outcome, finish, release, take
from workflows.recovery import recover


@contextmanager
def held(*tenants: TenantView) -> Iterator[None]:
    """Hold the load rows of these tenants, as a transaction left open does."""
    with psycopg.connect(**psycopg_parameters(connection_settings("owner"))) as holder:
        holder.execute(
            "select 1 from tenants_load where tenant_id = any(%s) for no key update",
            [[tenant.id for tenant in tenants]],
        )
        yield
        holder.rollback()


def claims_of(tasks: Sequence[ClaimedTask]) -> list[Claim]:
    return [task.claim for task in tasks]


def faulty() -> list[tuple]:
    return rows("select tenant_id from tenants_turn where blocked & 64 <> 0")


def test_a_claim_looks_past_forty_held_tenants() -> None:
    hot = [build_tenant() for _ in range(40)]
    for tenant in hot:
        start(tenant)
    free = build_tenant()
    (task_id,) = start(free)
    with held(*hot), as_role("worker"):
        begun = time.monotonic()
        assert [task.claim.task_id for task in claim(1)] == [task_id]
        assert time.monotonic() - begun < 1
    assert_counters_true()


def test_a_claim_waits_a_little_for_the_only_tenant_and_blames_nobody() -> None:
    """The lock timeout is no fault of the tenant: he is neither marked nor is the worker held up for long."""
    tenant = build_tenant()
    start(tenant)
    with as_role("worker"):
        with held(tenant):
            begun = time.monotonic()
            taken = take(worker="w", queue="default", limit=1)
            assert (taken.tasks, time.monotonic() - begun < 3) == ([], True)
            assert taken.next_due_at is not None
        assert len(claim()) == 1
    assert faulty() == []
    assert_counters_true()


def test_a_finish_is_patient_with_one_tenant_and_quick_with_the_others() -> None:
    slow, quick = build_tenant(), build_tenant()
    start(slow, 2)
    start(quick, 2)
    tasks = claim(4)
    ended: list[float] = []

    def end() -> None:
        with as_role("worker"):
            begun = time.monotonic()
            assert complete(tasks) == set()
            ended.append(time.monotonic() - begun)

    thread = threading.Thread(target=end)
    with held(slow):
        thread.start()
        time.sleep(1)
        assert rows("select tenant_id, state from workflows_task where state <> 'leased'") == [
            (quick.id, "completed"),
            (quick.id, "completed"),
        ]
        time.sleep(2.5)
    thread.join(10)
    assert ended and 3 < ended[0] < 6
    assert rows("select distinct state from workflows_task") == [("completed",)]
    assert_counters_true()


def test_a_finish_gives_up_at_last_and_the_lease_settles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "PATIENCE_SECONDS", 0.1)
    slow, quick = build_tenant(), build_tenant()
    start(slow)
    start(quick)
    tasks = claim(2, lease_seconds=20)
    with held(slow), as_role("worker"):
        assert complete(tasks) == set()
    assert rows("select state from workflows_task where tenant_id = %s", slow.id) == [("leased",)]
    assert rows("select state from workflows_task where tenant_id = %s", quick.id) == [("completed",)]
    clock.advance(30)
    assert recover(limit=10) == 1
    assert faulty() == []
    assert_counters_true()


def test_a_release_of_one_held_tenant_delays_nobody_elses() -> None:
    slow, quick = build_tenant(), build_tenant()
    start(slow)
    start(quick)
    tasks = claim(2)
    stale = Claim(quick.id, quick.id, "w1", 9)
    results: list[set[Claim]] = []

    def give_back() -> None:
        with as_role("worker"):
            results.append(release(claims=[*claims_of(tasks), stale]))

    thread = threading.Thread(target=give_back)
    with held(slow):
        thread.start()
        time.sleep(0.7)
        assert rows("select state from workflows_task where tenant_id = %s", quick.id) == [("queued",)]
    thread.join(10)
    assert results == [{stale}]
    assert rows("select distinct state from workflows_task") == [("queued",)]
    assert_counters_true()


def test_b27_expired_leases_of_a_held_tenant_hide_nobody_elses() -> None:
    slow, quick = build_tenant(max_leases=200), build_tenant()
    start(slow, 150)
    assert sum(len(claim(100, lease_seconds=5, per_tenant=50)) for _ in range(4)) == 150
    start(quick, 5)
    assert len(claim(5, lease_seconds=6)) == 5
    clock.advance(10)
    with held(slow):
        assert recover(limit=100) == 5
        assert rows("select distinct state from workflows_task where tenant_id = %s", quick.id) == [("queued",)]
    assert [recover(limit=100), recover(limit=100), recover(limit=100)] == [100, 50, 0]
    assert_counters_true()


def test_b27_held_turns_ahead_hide_nobodys_timer() -> None:
    slow = [build_tenant() for _ in range(110)]
    for tenant in slow:
        start(tenant, delay_seconds=1)
    quick = build_tenant()
    (task_id,) = start(quick, delay_seconds=2)
    clock.advance(60)
    with held(*slow), as_role("worker"):
        assert [task.claim.task_id for _ in range(2) for task in claim(10)] == [task_id]
    assert_counters_true()


def test_finishes_and_claims_of_held_tenants_never_deadlock() -> None:
    tenants = [build_tenant() for _ in range(6)]
    for tenant in tenants:
        start(tenant, 20)
    stop = time.monotonic() + 3
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with as_role("worker"):
                while time.monotonic() < stop:
                    batch = claim(6, worker=f"w{number}")
                    if batch:
                        finish(outcomes=[Outcome(task.claim, "retry") for task in batch])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        with held(*tenants[:3]):
            time.sleep(0.2)
        with held(*tenants):
            time.sleep(0.2)
    for thread in threads:
        thread.join(20)
    assert failures == []
    assert rows("select count(*) from workflows_task where state = 'leased'") == [(0,)]
    assert faulty() == []
    assert_counters_true()
