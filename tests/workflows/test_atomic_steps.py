"""Atomic steps: their rows and their record commit once, whatever happens; and crashes at every named point."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from ductor import Context, Retry, Workflow
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows
from tests.workflows.authors import workflows as authors
from tests.workflows.conftest import TestWorker
from tests.workflows.crashing import CrashingWorker
from workflows import crashpoints
from workflows.cancelling import cancel
from workflows.handles import TaskHandle
from workflows.queries import list_steps

NO_PAUSE = Retry(max_attempts=3, first=0, max=0)
STARTED = "select count(*)::int from workflows_task where workflow = 'author-started'"


def atomic_flow(name: str, handler: Any, **more: Any) -> Workflow:
    flow = Workflow(name, version=1)
    flow.step("only", atomic=True, retry=NO_PAUSE, **more)(handler)
    return flow


@pytest.mark.usefixtures("flows")
def test_rows_and_record_commit_together(worker: TestWorker) -> None:
    tenant = build_tenant()
    inside: list[bool] = []

    def handler(ctx: Context[Any]) -> str:
        inside.append(connection.in_atomic_block)
        child = authors.started.start({"by": str(ctx.task_id)}, delay="300d")
        return str(child.id)

    from workflows import registry

    registry.register(authors.started)
    task = atomic_flow("together", handler).start(tenant=tenant.id)
    worker.run_all()

    output = task.result(timeout=0)
    assert inside == [True]
    assert rows("select id::text from workflows_task where workflow = 'author-started'") == [(output,)]
    assert [(s.name, s.state, s.output) for s in list_steps(tenant_id=tenant.id, task_id=task.id)] == [
        ("only", "completed", output)
    ]
    assert_counters_true()


@pytest.mark.usefixtures("flows")
def test_a_handler_that_fails_leaves_no_row_of_its_own(worker: TestWorker) -> None:
    from workflows import registry

    registry.register(authors.started)
    tenant = build_tenant()

    def handler(ctx: Context[Any]) -> None:
        authors.started.start({"attempt": ctx.attempt}, delay="300d")
        if ctx.attempt < 3:
            raise ValueError("after the start")

    task = atomic_flow("failing", handler).start(tenant=tenant.id)
    worker.run_all()

    assert task.refresh().state == "completed"
    assert rows("select input from workflows_task where workflow = 'author-started'") == [({"attempt": 3},)]
    assert [(s.attempt, s.state) for s in list_steps(tenant_id=tenant.id, task_id=task.id)] == [
        (1, "failed"),
        (2, "failed"),
        (3, "completed"),
    ]
    assert_counters_true()


@pytest.mark.usefixtures("flows")
def test_a_deferred_refusal_is_the_steps_failure_and_rolls_it_back(worker: TestWorker) -> None:
    from workflows import registry

    registry.register(authors.started)
    tenant = build_tenant(max_outstanding=3)

    def handler(ctx: Context[Any]) -> None:
        for _ in range(2):
            authors.started.start(delay="300d")
        # Another start of the tenant commits meanwhile and takes the place: only the deferred trigger can see it.
        elsewhere(lambda: authors.started.start(delay="300d", tenant=tenant.id))

    task = atomic_flow("refused", handler).start(tenant=tenant.id)
    worker.turn()

    assert (task.refresh().error or {})["class"] == "QuotaExceeded"
    assert rows(STARTED) == [(1,)]
    assert_counters_true()


def elsewhere(act: Any) -> None:
    """Run `act` in a thread with no tenant attached, on a connection of its own."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=10)
    assert failures == []
    assert not thread.is_alive()


@pytest.mark.usefixtures("flows")
def test_a_cancel_during_the_handler_takes_its_rows_back(worker: TestWorker) -> None:
    from workflows import registry

    registry.register(authors.started)
    tenant = build_tenant()

    def handler(ctx: Context[Any]) -> None:
        authors.started.start(delay="300d")
        elsewhere(lambda: cancel(tenant_id=ctx.tenant, task_id=ctx.task_id, principal=PRINCIPAL))

    task = atomic_flow("cancelled-inside", handler).start(tenant=tenant.id)
    worker.turn()

    assert task.refresh().state == "cancelled"
    assert rows(STARTED) == [(0,)]
    assert rows("select count(*) from workflows_step") == [(0,)]
    assert_counters_true()


@pytest.mark.usefixtures("flows")
def test_a_lost_lease_takes_the_rows_back(worker: TestWorker) -> None:
    from workflows import registry

    registry.register(authors.started)
    tenant = build_tenant()

    def handler(ctx: Context[Any]) -> None:
        authors.started.start(delay="300d")
        if ctx.attempt == 1:
            clock.advance(61)

    task = atomic_flow("expired-inside", handler).start(tenant=tenant.id)
    worker.turn()
    assert rows(STARTED) == [(0,)]

    worker.run_all()
    assert task.refresh().state == "completed"
    assert rows(STARTED) == [(1,)]
    assert task.refresh().attempt == 2


@pytest.mark.usefixtures("flows")
def test_cancel_beside_atomic_steps_never_deadlocks_and_never_says_both(worker: TestWorker) -> None:
    from workflows import registry
    from workflows.errors import TaskFinished

    registry.register(authors.started)
    tenant = build_tenant(max_outstanding=1000)
    answers: dict[Any, str] = {}

    def handler(ctx: Context[Any]) -> None:
        authors.started.start({"by": str(ctx.task_id)}, delay="300d")

        def act() -> None:
            try:
                cancel(tenant_id=tenant.id, task_id=ctx.task_id, principal=PRINCIPAL)
                answers[ctx.task_id] = "cancelled"
            except TaskFinished:
                answers[ctx.task_id] = "finished"
            finally:
                connections.close_all()

        racer = threading.Thread(target=act)
        racer.start()
        racers.append(racer)

    racers: list[threading.Thread] = []
    tasks = atomic_flow("raced", handler).start_many([{"n": n} for n in range(40)], tenant=tenant.id)
    # A claim waits for nobody: it passes over a tenant whose row a cancel holds just then.
    while len(racers) < len(tasks):
        worker.run_all()
    for racer in racers:
        racer.join(timeout=20)

    states = {task.id: str(task.refresh().state) for task in tasks}
    assert set(states.values()) <= {"completed", "cancelled"}
    assert {task: "cancelled" if state == "cancelled" else "finished" for task, state in states.items()} == answers
    recorded = rows("select task_id::text from workflows_step where state = 'completed' order by 1")
    assert rows("select input ->> 'by' from workflows_task where workflow = 'author-started' order by 1") == recorded
    assert_counters_true()


@pytest.mark.parametrize("point", crashpoints.POINTS)
def test_an_atomic_step_takes_effect_once_wherever_its_worker_dies(point: str, tmp_path: Path) -> None:
    tenant, worker = build_tenant(), CrashingWorker(tmp_path)
    task = authors.atomic.start(tenant=tenant.id)

    worker.dies_at(point)
    clock.advance(61)
    assert worker.run() == 0

    assert task.refresh().state == "completed"
    assert rows(STARTED) == [(1,)]
    assert rows("select count(*)::int from workflows_step where state = 'completed'") == [(1,)]
    # Where the record was committed, the handler did not run again.
    runs = {"after_claim": 1, "before_record": 2, "after_record": 1, "before_finish": 1, "after_finish": 1}
    assert len(worker.executions()) == runs[point]
    assert_counters_true()


@pytest.mark.parametrize(
    ("point", "runs"),
    [
        ("after_claim", ["first 2", "second 2"]),
        ("before_record", ["first 1", "first 2", "second 2"]),
        ("after_record", ["first 1", "second 2"]),
        ("before_finish", ["first 1", "second 1", "second 2"]),
        ("after_finish", ["first 1", "second 1"]),
    ],
)
def test_a_chain_goes_on_from_its_last_committed_record(point: str, runs: list[str], tmp_path: Path) -> None:
    tenant, worker = build_tenant(), CrashingWorker(tmp_path)
    task = authors.chain.start(tenant=tenant.id)

    worker.dies_at(point)
    clock.advance(61)
    assert worker.run() == 0

    assert task.result(timeout=0) == "first-second"
    assert worker.executions() == runs
    assert_counters_true()


def test_no_started_task_is_lost_by_crashes(tmp_path: Path) -> None:
    tenant, worker = build_tenant(), CrashingWorker(tmp_path)
    tasks: list[TaskHandle] = list(authors.plain.start_many([{"n": n} for n in range(30)], tenant=tenant.id))

    for point in ("after_claim:2", "before_finish:2", "after_finish:1", "before_finish:1"):
        worker.dies_at(point)
        clock.advance(61)
    assert worker.run() == 0

    assert [task.result(timeout=0) for task in tasks] == ["done"] * 30
    assert_counters_true()
