"""Failed steps: pauses, caps, the gravest failure, and what is no failure."""

import time
from typing import Any

import pytest

from ductor import Context, PermanentError, Retry, RetryLater, Workflow
from tests import clock
from tests.builders import assert_counters_true, build_tenant
from tests.workflows.conftest import TestWorker
from workflows.handles import TaskHandle
from workflows.queries import StepView, list_steps

pytestmark = pytest.mark.usefixtures("flows")

NO_PAUSE = Retry(max_attempts=3, first=0, max=0)


def steps_of(task: TaskHandle) -> list[StepView]:
    return list_steps(tenant_id=task.tenant_id, task_id=task.id)


def test_a_retry_waits_for_its_pause(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("pausing", version=1)

    @flow.step(retry=Retry(first="1h", max="1h"))
    def fails(ctx: Context[Any]) -> None:
        raise ValueError("no")

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    seen = task.refresh()
    assert (seen.state, seen.reason, seen.failures) == ("waiting", "backoff", 1)
    assert (seen.error or {})["class"] == "ValueError"
    clock.advance(3700)
    assert worker.run_all() == 1
    assert task.refresh().failures == 2


def test_failures_end_the_task_after_max_attempts(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("hopeless", version=1)

    @flow.step(retry=NO_PAUSE)
    def fails(ctx: Context[Any]) -> None:
        raise ValueError("never")

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    seen = task.refresh()
    assert (seen.state, seen.attempt, seen.failures) == ("failed", 3, 3)
    assert seen.error is not None
    assert {name: seen.error[name] for name in ("class", "message", "step", "attempt", "kind")} == {
        "class": "ValueError",
        "message": "never",
        "step": "fails",
        "attempt": 3,
        "kind": "error",
    }
    assert_counters_true()


def test_a_step_of_a_graph_ends_its_task_after_its_own_max_attempts(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("impatient", version=1, max_failures=50)
    flow.step("a")(lambda ctx: None)

    @flow.step(after=["a"], retry=Retry(max_attempts=2, first=0))
    def b(ctx: Context[Any]) -> None:
        raise ValueError

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert (task.refresh().state, task.refresh().failures) == ("failed", 2)


def test_a_permanent_error_ends_the_task_at_once(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("permanent", version=1)

    @flow.step
    def fails(ctx: Context[Any]) -> None:
        raise PermanentError("no such order")

    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert (task.refresh().state, task.refresh().attempt) == ("failed", 1)


def test_retry_later_is_no_failure(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("later", version=1, max_failures=1)

    @flow.step
    def later(ctx: Context[Any]) -> str:
        if ctx.attempt < 5:
            raise RetryLater("1m")
        return "now"

    task = flow.start(tenant=tenant.id)
    for _ in range(5):
        worker.run_all()
        clock.advance(61)

    assert task.result(timeout=0) == "now"
    assert (task.refresh().attempt, task.refresh().failures) == (5, 0)


def test_the_gravest_failure_of_parallel_steps_decides_and_the_rest_is_kept(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("grave", version=1)

    @flow.step
    def later(ctx: Context[Any]) -> None:
        raise RetryLater("1m")

    @flow.step
    def permanent(ctx: Context[Any]) -> None:
        raise PermanentError("over")

    flow.step("fine")(lambda ctx: 3)
    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert task.refresh().state == "failed"
    assert {(s.name, s.state) for s in steps_of(task)} == {("fine", "completed"), ("permanent", "failed")}


def test_a_step_timeout_counts_as_a_failure(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("slow", version=1)
    flow.step("sleeps", timeout=0.05, retry=NO_PAUSE)(lambda ctx: time.sleep(30))
    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert (task.refresh().state, (task.refresh().error or {})["kind"]) == ("failed", "timeout")


def test_a_step_in_a_thread_is_told_to_stop_at_its_timeout(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("slow-threads", version=1)

    @flow.step(timeout=0.1, retry=Retry(max_attempts=1))
    def polite(ctx: Context[Any]) -> str:
        while not ctx.cancelled:
            time.sleep(0.01)
        return "late"

    flow.step("other")(lambda ctx: 1)
    task = flow.start(tenant=tenant.id)
    worker.run_all()

    assert (task.refresh().state, (task.refresh().error or {})["kind"]) == ("failed", "timeout")
    assert {(s.name, s.state) for s in steps_of(task)} == {("other", "completed"), ("polite", "failed")}
