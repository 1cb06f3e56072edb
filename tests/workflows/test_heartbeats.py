"""Leases kept, lost and cancelled; handlers that hang."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from ductor import Context, Retry, Workflow
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows
from tests.workflows.conftest import TestWorker
from workflows import heartbeats, step_threads
from workflows.cancelling import cancel
from workflows.turns import release_held

pytestmark = pytest.mark.usefixtures("flows")

STATES = "select state, attempt, failures, count(*)::int from workflows_task group by 1, 2, 3 order by 1, 2, 3"


@pytest.fixture(autouse=True)
def short_leases() -> Iterator[None]:
    with override_settings(DUCTOR_LEASE_SECONDS=1.0, DUCTOR_HEARTBEAT_SECONDS=0.2):
        yield


def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def test_a_step_longer_than_three_leases_runs_once(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("long", version=1)
    runs: list[int] = []

    @flow.step
    def only(ctx: Context[Any]) -> str:
        runs.append(ctx.attempt)
        time.sleep(3.2)
        return "done"

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.result(timeout=0) == "done"
    assert runs == [1]


def test_tasks_of_the_batch_that_have_not_started_keep_their_leases(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("waiting-behind", version=1)
    expiry: list[Any] = []

    @flow.step
    def only(ctx: Context[Any]) -> None:
        if not expiry:
            time.sleep(1.5)
            expiry.extend(rows("select lease_expires_at > clock_timestamp() from workflows_task"))

    flow.start_many([{}] * 3, tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    worker.turn()

    assert expiry == [(True,)] * 3
    assert rows(STATES) == [("completed", 1, 0, 1), ("queued", 0, 0, 2)]


def test_progress_is_seen_while_the_step_runs(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("progressing", version=1)
    seen: list[Any] = []

    @flow.step
    def only(ctx: Context[Any]) -> None:
        ctx.progress(1, 3, "reading")
        until(lambda: rows("select progress from workflows_task where progress is not null"))
        seen.extend(rows("select progress from workflows_task"))

    flow.start(tenant=tenant.id)
    with override_settings(DUCTOR_HEARTBEAT_SECONDS=30):
        worker.turn()

    assert seen == [({"step": "only", "done": 1, "total": 3, "note": "reading"},)]


@pytest.mark.parametrize("kind", ["sync", "async", "threads"])
def test_a_cancelled_task_stops_its_handler_and_stays_cancelled(worker: TestWorker, kind: str) -> None:
    import asyncio

    tenant, flow = build_tenant(), Workflow(f"cancelled-{kind}", version=1)
    seen: list[bool] = []

    def by_signal(ctx: Context[Any]) -> None:
        _cancel_elsewhere(ctx)
        try:
            time.sleep(30)
        finally:
            seen.append(ctx.cancelled)

    async def by_loop(ctx: Context[Any]) -> None:
        threading.Thread(target=_cancel_elsewhere, args=[ctx]).start()
        try:
            await asyncio.sleep(30)
        finally:
            seen.append(ctx.cancelled)

    def by_asking(ctx: Context[Any]) -> None:
        _cancel_elsewhere(ctx)
        while not ctx.cancelled:
            time.sleep(0.01)
        seen.append(ctx.cancelled)

    flow.step("only")({"sync": by_signal, "async": by_loop, "threads": by_asking}[kind])
    if kind == "threads":
        flow.step("other")(lambda ctx: None)
    task = flow.start(tenant=tenant.id)
    begun = time.monotonic()
    worker.turn()

    assert time.monotonic() - begun < 3
    assert seen == [True]
    assert task.refresh().state == "cancelled"
    assert rows("select count(*) from workflows_step") == [(0,)]
    worker.run_all()
    assert_counters_true()


def _cancel_elsewhere(ctx: Context[Any]) -> None:
    """Cancel the task on another connection, as its tenant's engineer would."""

    def act() -> None:
        from django.db import connections

        cancel(tenant_id=ctx.tenant, task_id=ctx.task_id, principal=PRINCIPAL)
        connections.close_all()

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_a_task_taken_over_by_another_worker_is_not_finished_by_the_first(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("taken-over", version=1)
    other = TestWorker("other-worker")
    runs: list[int] = []

    @flow.step
    def only(ctx: Context[Any]) -> str:
        runs.append(ctx.attempt)
        if ctx.attempt == 1:
            clock.advance(5)
            thread = threading.Thread(target=_turn_and_close, args=[other])
            thread.start()
            thread.join()
        return f"attempt {ctx.attempt}"

    task = flow.start(tenant=tenant.id)
    with override_settings(DUCTOR_HEARTBEAT_SECONDS=30, DUCTOR_LEASE_SECONDS=3):
        worker.turn()

    assert runs == [1, 2]
    assert task.result(timeout=0) == "attempt 2"
    assert_counters_true()


def _turn_and_close(worker: TestWorker) -> None:
    from django.db import connections

    worker.turn()
    worker.state.close()
    connections.close_all()


def test_without_a_database_a_lease_counts_as_lost_when_its_time_is_over(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenants.errors import Unavailable

    tenant, flow = build_tenant(), Workflow("cut-off", version=1)
    seen: list[bool] = []

    def unreachable(**given: Any) -> None:
        raise Unavailable

    @flow.step
    def only(ctx: Context[Any]) -> None:
        try:
            time.sleep(30)
        finally:
            seen.append(ctx.cancelled)

    task = flow.start(tenant=tenant.id)
    monkeypatch.setattr("workflows.claims.heartbeat", unreachable)
    begun = time.monotonic()
    worker.turn()

    assert seen == [True]
    assert 0.9 < time.monotonic() - begun < 4
    assert task.refresh().state == "leased"


def test_a_hung_step_thread_retires_the_process_and_burns_no_neighbour(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_threads, "GRACE_SECONDS", 0.3)
    tenant, flow = build_tenant(), Workflow("hung-thread", version=1)
    quick = Workflow("quick", version=1)
    let_go = threading.Event()
    flow.step("deaf", timeout=0.1)(lambda ctx: let_go.wait(20))
    flow.step("fine")(lambda ctx: 1)
    quick.step("only")(lambda ctx: None)
    hung = flow.start(tenant=tenant.id)
    quick.start_many([{}] * 2, tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)

    report = worker.turn()
    let_go.set()

    assert report.retire
    assert rows("select workflow, state, attempt, failures from workflows_task order by id") == [
        ("hung-thread", "leased", 1, 0),
        ("quick", "queued", 0, 0),
        ("quick", "queued", 0, 0),
    ]
    assert rows("select name, state from workflows_step") == [("fine", "completed")]
    clock.advance(2)
    worker.run_all()
    assert rows("select alone, failures from workflows_task where id = %s", hung.id) == [(False, 0)]


def test_a_handler_that_hangs_in_the_main_thread_ends_the_process(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflows.engine.GRACE_SECONDS", 0.3)
    exits: list[int] = []
    gone = threading.Event()

    def leave(code: int) -> None:
        exits.append(code)
        gone.set()

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr("logging.shutdown", lambda: None)
    tenant, flow = build_tenant(), Workflow("hung", version=1)

    @flow.step(timeout=0.1, retry=Retry(max_attempts=1))
    def deaf(ctx: Context[Any]) -> None:
        while not gone.is_set():
            try:
                time.sleep(10)
            except BaseException:
                continue

    flow.start_many([{}] * 3, tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    worker.turn()

    assert exits == [heartbeats.EXIT_HUNG]
    assert rows("select state, attempt, failures from workflows_task order by id")[1:] == [("queued", 0, 0)] * 2


def test_everything_held_can_be_given_back_from_another_thread(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("held", version=1)
    released: list[int] = []

    @flow.step
    def only(ctx: Context[Any]) -> None:
        thread = threading.Thread(target=_release_and_close, args=[worker, released])
        thread.start()
        thread.join()

    flow.start_many([{}] * 3, tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    worker.turn()

    assert released == [3]
    assert rows("select state, failures from workflows_task order by id") == [("queued", 0)] * 3
    assert_counters_true()


def _release_and_close(worker: TestWorker, released: list[int]) -> None:
    from django.db import connections

    released.append(release_held(worker.state))
    connections.close_all()
