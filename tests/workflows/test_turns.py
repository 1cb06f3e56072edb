"""Turns: how much is claimed, what is given back, and what happens when the database fails."""

import os
import time
from typing import Any

import psycopg
import pytest
from django.db import Error as DatabaseFailure
from django.test import override_settings

from ductor import Context, Workflow
from tenants.errors import Unavailable
from tenants.identity import SYSTEM_TENANT_ID
from tests import clock
from tests.builders import assert_counters_true, build_tenant, rows
from tests.workflows.conftest import TestWorker
from workflows import step_threads
from workflows.pacing import Pace

pytestmark = pytest.mark.usefixtures("flows")

STATES = "select state, attempt, failures, count(*)::int from workflows_task group by 1, 2, 3 order by 1, 2, 3"


def noop(name: str = "noop", **more: Any) -> Workflow:
    flow = Workflow(name, version=1, **more)
    flow.step("only")(lambda ctx: None)
    return flow


def napping(seconds: float) -> Workflow:
    flow = Workflow("napping", version=1)
    flow.step("only")(lambda ctx: time.sleep(seconds))
    return flow


def test_a_batch_is_what_is_expected_to_start_within_fifty_milliseconds() -> None:
    pace = Pace()
    assert pace.size("default", 100) == 1

    pace.note("default", 0.1, 10)
    assert pace.size("default", 100) == 6
    pace.note("default", 5.0, 1)
    assert pace.size("default", 100) == 1
    for _ in range(40):
        pace.note("default", 0.00001, 1)
    assert pace.size("default", 100) == 100
    assert pace.size("other", 100) == 1


def test_the_first_claim_takes_one_and_the_next_a_full_batch(worker: TestWorker) -> None:
    tenant = build_tenant(max_leases=200)
    noop().start_many([{}] * 150, tenant=tenant.id)

    with override_settings(DUCTOR_BATCH=40):
        assert worker.turn().claimed == 1
        # Whatever the first one took on a busy machine: no-ops are quick.
        for _ in range(20):
            worker.state.pace.note("default", 0.0001, 1)
        assert worker.turn().claimed == 40
        worker.run_all()

    assert rows(STATES) == [("completed", 1, 0, 150)]
    assert_counters_true()


def test_what_has_not_started_when_the_batch_overran_is_given_back(worker: TestWorker) -> None:
    tenant = build_tenant()
    napping(0.06).start_many([{}] * 5, tenant=tenant.id)
    worker.state.pace.note("default", 0.001, 1)

    assert worker.turn().claimed == 5
    assert rows(STATES) == [("completed", 1, 0, 1), ("queued", 0, 0, 4)]
    assert_counters_true()
    worker.run_all()
    assert rows(STATES) == [("completed", 1, 0, 5)]


def test_beside_slow_tasks_of_a_hot_tenant_a_new_tenant_starts_after_at_most_one_handler(worker: TestWorker) -> None:
    hot, new = build_tenant(max_leases=200), build_tenant()
    slow, quick = napping(0.3), noop()
    slow.start_many([{}] * 50, tenant=hot.id)
    worker.turn()
    task = quick.start(tenant=new.id)
    worker.turn()

    assert task.refresh().state == "completed"
    assert rows("select count(*)::int from workflows_task where workflow = 'napping' and state = 'completed'") in (
        [(1,)],
        [(2,)],
    )
    assert_counters_true()


def test_a_draining_worker_gives_back_what_has_not_started(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("draining", version=1)

    @flow.step
    def stops(ctx: Context[Any]) -> None:
        worker.stop = True

    flow.start_many([{}] * 3, tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    assert worker.turn().claimed == 3

    assert rows(STATES) == [("completed", 1, 0, 1), ("queued", 0, 0, 2)]
    assert worker.turn().claimed == 0


def test_a_draining_worker_gives_a_started_graph_to_another(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("draining-graph", version=1)

    @flow.step
    def stops(ctx: Context[Any]) -> int:
        worker.stop = True
        return 1

    @flow.step(after=stops)
    def goes_on(ctx: Context[Any]) -> int:
        return int(ctx.output(stops)) + 1

    task = flow.start(tenant=tenant.id)
    worker.turn()
    assert (task.refresh().state, task.refresh().failures) == ("queued", 0)
    assert rows("select name from workflows_step") == [("stops",)]

    worker.stop = False
    worker.run_all()
    assert task.result(timeout=0) == 2
    assert task.refresh().attempt == 2


def test_a_workflow_that_is_not_known_here_waits_for_a_worker_that_knows_it(worker: TestWorker) -> None:
    from workflows import registry

    tenant = build_tenant()
    task = noop("foreign").start(tenant=tenant.id)

    with registry.isolated():
        assert worker.run_all() == 1
        seen = task.refresh()
        assert (seen.state, seen.reason, seen.attempt, seen.failures) == ("waiting", "unknown_workflow", 0, 0)

    clock.advance(31)
    worker.run_all()
    assert task.refresh().state == "completed"
    assert_counters_true()


def test_a_version_that_is_not_known_here_is_not_run_as_another_one(worker: TestWorker) -> None:
    from workflows import registry

    tenant = build_tenant()
    task = noop("versioned").start(tenant=tenant.id)

    with registry.isolated():
        other = Workflow("versioned", version=2)
        other.step("only")(lambda ctx: "wrong")
        worker.run_all()
        assert task.refresh().reason == "unknown_workflow"


def test_a_system_task_starts_within_one_turn_behind_many_customer_tasks(worker: TestWorker) -> None:
    tenant = build_tenant()
    flow, system = noop(), noop("system-noop", queue="system")
    flow.start_many([{}] * 900, tenant=tenant.id)
    task = system.start(tenant=SYSTEM_TENANT_ID)

    worker.turn()

    assert task.refresh().state == "completed"


def test_system_tasks_do_not_keep_the_customers_from_their_turn(worker: TestWorker) -> None:
    tenant = build_tenant()
    flow, system = noop(), noop("system-noop", queue="system")
    system.start_many([{}] * 300, tenant=SYSTEM_TENANT_ID)
    task = flow.start(tenant=tenant.id)

    worker.turn()

    assert task.refresh().state == "completed"


def test_a_result_is_written_while_the_next_handler_still_runs(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("mixed", version=1)
    seen: list[Any] = []

    @flow.step
    def only(ctx: Context[Any]) -> None:
        if ctx.input == {"look": True}:
            time.sleep(0.3)
            seen.extend(rows("select state from workflows_task where input = '{}'"))

    flow.start_many([{}, {"look": True}], tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    assert worker.turn().claimed == 2

    assert seen == [("completed",)]


def terminate_backends() -> None:
    with psycopg.connect(os.environ["DUCTOR_TEST_ADMIN_URL"], autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'ductor_test'")


def test_a_lost_connection_ends_the_turn_and_the_next_one_works(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("unlucky", version=1)
    runs: list[int] = []

    @flow.step
    def only(ctx: Context[Any]) -> str:
        runs.append(ctx.attempt)
        if len(runs) == 1:
            terminate_backends()
        return "done"

    tasks = flow.start_many([{}] * 3, tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    with pytest.raises((Unavailable, DatabaseFailure)):
        worker.turn()

    assert rows("select count(*) from workflows_task where state = 'completed'") == [(0,)]
    worker.run_all()
    clock.advance(61)
    worker.run_all()
    assert [task.result(timeout=0) for task in tasks] == ["done"] * 3
    assert_counters_true()


def test_what_was_not_started_when_the_database_failed_is_given_back_when_it_is_there_again(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("unlucky-batch", version=1)

    @flow.step
    def only(ctx: Context[Any]) -> None:
        if ctx.input == {"first": True}:
            terminate_backends()
            time.sleep(0.06)

    flow.start_many([{"first": True}, {}, {}], tenant=tenant.id)
    worker.state.pace.note("default", 0.0001, 1)
    with pytest.raises((Unavailable, DatabaseFailure)):
        worker.turn()

    worker.run_all()
    assert rows(STATES) == [("completed", 1, 0, 2), ("leased", 1, 0, 1)]


def test_the_guard_is_told_a_deadline_for_each_handler_and_none_at_the_end(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("guarded", version=1)
    flow.step("only", timeout="20s")(lambda ctx: None)
    flow.start(tenant=tenant.id)
    worker.turn()

    assert [d for d in worker.deadlines if d is not None] == [20 + step_threads.GRACE_SECONDS + 5]
    assert worker.deadlines[-1] is None


def test_an_empty_turn_says_when_something_will_be_due(worker: TestWorker) -> None:
    tenant = build_tenant()
    task = noop().start(tenant=tenant.id, delay="10m")

    report = worker.turn()

    assert report.claimed == 0
    assert report.next_due_at == task.refresh().due_at
