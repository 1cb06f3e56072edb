"""Ticks through the real verbs: graphs, records, resumption, retries, failure caps."""

import threading
import time
from typing import Any

import pytest

from ductor import Context, Retry, Workflow
from tenants.scope import attach, attached
from tests.builders import assert_counters_true, build_tenant, rows
from tests.workflows.conftest import TestWorker
from workflows.handles import TaskHandle
from workflows.queries import StepView, list_steps

pytestmark = pytest.mark.usefixtures("flows")

NO_PAUSE = Retry(max_attempts=3, first=0, max=0)


def steps_of(task: TaskHandle) -> list[StepView]:
    return list_steps(tenant_id=task.tenant_id, task_id=task.id)


def test_a_one_step_task_runs_and_leaves_no_step_row(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("double", version=1)

    @flow.step
    def double(ctx: Context[Any]) -> int:
        assert attached() == ctx.tenant == tenant.id
        return int(ctx.input["n"]) * 2

    task = flow.start({"n": 21}, tenant=tenant.id)

    assert worker.run_all() == 1
    assert task.result(timeout=0) == 42
    assert rows("select count(*) from workflows_step") == [(0,)]
    assert attached() is None
    assert_counters_true()


def test_a_graph_runs_in_order_with_branches_and_a_join(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("diamond", version=1)
    together = threading.Barrier(2, timeout=5)
    threads: set[str] = set()

    @flow.step
    def fetch(ctx: Context[Any]) -> list[int]:
        return [1, 2, 3]

    @flow.step(after=fetch)
    def total(ctx: Context[Any]) -> int:
        together.wait()
        threads.add(threading.current_thread().name)
        assert attached() == tenant.id
        return sum(ctx.output(fetch))

    @flow.step(after=fetch)
    async def count(ctx: Context[Any]) -> int:
        together.wait()
        threads.add(threading.current_thread().name)
        assert attached() == tenant.id
        return len(ctx.output(fetch))

    @flow.step(after=[total, count])
    def mean(ctx: Context[Any]) -> float:
        return float(ctx.output(total) / ctx.output(count))

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.result(timeout=0) == 2.0
    assert len(threads) == 2
    recorded = steps_of(task)
    assert {step.name: step.output for step in recorded} == {"fetch": [1, 2, 3], "total": 6, "count": 3, "mean": 2.0}
    assert {(step.state, step.attempt) for step in recorded} == {("completed", 1)}
    assert task.refresh().attempt == 1
    assert_counters_true()


def test_a_dependent_step_starts_after_its_predecessors_record_is_committed(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("chain", version=1)

    @flow.step
    def first(ctx: Context[Any]) -> None: ...

    @flow.step(after=first)
    def second(ctx: Context[Any]) -> int:
        return len(list_steps(tenant_id=ctx.tenant, task_id=ctx.task_id))

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.result(timeout=0) == 1


def test_several_last_steps_give_their_outputs_by_name(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("two-ends", version=1)
    flow.step("a")(lambda ctx: 1)
    flow.step("b")(lambda ctx: 2)
    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.result(timeout=0) == {"a": 1, "b": 2}


def test_outputs_that_are_too_large_together_fail_the_task(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("too-large", version=1)
    flow.step("a")(lambda ctx: "x" * 200_000)
    flow.step("b")(lambda ctx: "x" * 200_000)
    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.refresh().state == "failed"
    assert (task.refresh().error or {})["class"] == "OutputInvalid"


def test_more_ready_steps_than_threads_all_run(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("wide", version=1)
    for number in range(11):
        flow.step(f"s{number}")(lambda ctx: time.sleep(0.01))
    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert len(steps_of(task)) == 11
    assert task.refresh().state == "completed"


def test_a_failing_step_is_tried_again_and_completed_ones_are_not(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("flaky", version=1)
    runs: list[str] = []

    @flow.step
    def stable(ctx: Context[Any]) -> int:
        runs.append("stable")
        return 7

    @flow.step(after=stable, retry=NO_PAUSE)
    def flaky(ctx: Context[Any]) -> int:
        runs.append(f"flaky-{ctx.attempt}")
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return int(ctx.output(stable)) + 1

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.result(timeout=0) == 8
    assert runs == ["stable", "flaky-1", "flaky-2", "flaky-3"]
    assert [(s.name, s.attempt, s.state) for s in steps_of(task)] == [
        ("stable", 1, "completed"),
        ("flaky", 1, "failed"),
        ("flaky", 2, "failed"),
        ("flaky", 3, "completed"),
    ]
    assert task.refresh().failures == 2
    assert_counters_true()


def test_the_idempotency_key_is_the_same_in_every_attempt(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("keyed", version=1)
    keys: list[str] = []

    @flow.step(retry=NO_PAUSE)
    def fails(ctx: Context[Any]) -> None:
        keys.append(ctx.idempotency_key)
        raise ValueError

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert keys == [f"{task.id}:fails"] * 3


def test_the_last_progress_is_kept_with_the_outcome(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("progressing", version=1)

    @flow.step
    def works(ctx: Context[Any]) -> None:
        for done in range(1, 4):
            ctx.progress(done, 3)

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.refresh().progress == {"step": "works", "done": 3, "total": 3, "note": None}


def test_a_finished_task_reads_the_same_in_its_tenants_scope_only(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("scoped", version=1)
    flow.step("only")(lambda ctx: None)
    with attach(tenant.id):
        task = flow.start()
    worker.run_all()

    assert task.result(timeout=0) is None
