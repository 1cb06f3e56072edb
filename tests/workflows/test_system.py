"""The system tenant's own work: one perpetual task that takes back expired leases."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from ductor import Workflow
from tenants.identity import SYSTEM_TENANT_ID
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, rows
from tests.workflows.conftest import TestWorker
from workflows import registry
from workflows.cancelling import cancel
from workflows.system import ensure_running, sweep

SWEEPS = "select key, state, attempt, failures from workflows_task where workflow = 'recovery-sweep' order by id"


@pytest.fixture(autouse=True)
def known_sweep(flows: None) -> Iterator[None]:
    registry.register(sweep)
    yield


def test_the_sweep_is_started_once_by_any_number_of_clusters(worker: TestWorker) -> None:
    def start() -> None:
        ensure_running()
        connections.close_all()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)

    assert rows(SWEEPS) == [("recovery-sweep-1", "queued", 0, 0)]
    assert rows("select tenant_id from workflows_task") == [(SYSTEM_TENANT_ID,)]
    assert_counters_true()


def test_the_sweep_comes_again_for_ever_as_one_row(worker: TestWorker) -> None:
    ensure_running()
    for _ in range(4):
        assert worker.run_all() == 1
        clock.advance(16)

    assert rows(SWEEPS) == [("recovery-sweep-1", "waiting", 4, 0)]


def test_the_sweep_takes_back_what_no_claim_has_met(worker: TestWorker) -> None:
    tenant = build_tenant()
    flow = Workflow("abandoned", version=1, queue="default")
    flow.step("only")(lambda ctx: None)
    task = flow.start(tenant=tenant.id)
    assert len(claim(10, worker="dead-worker")) == 1
    clock.advance(61)

    ensure_running()
    system_only = TestWorker("system-only", queues=())
    system_only.run_all()
    system_only.state.close()

    seen: Any = task.refresh()
    assert (seen.state, seen.reason) == ("queued", "lease_expired")
    assert_counters_true()


def test_a_sweep_that_was_ended_is_followed_by_another_one(worker: TestWorker) -> None:
    ensure_running()
    ((task_id,),) = rows("select id from workflows_task")
    cancel(tenant_id=SYSTEM_TENANT_ID, task_id=task_id, principal=PRINCIPAL)

    ensure_running()
    ensure_running()

    assert [row[:2] for row in rows(SWEEPS)] == [("recovery-sweep-1", "cancelled"), ("recovery-sweep-2", "queued")]
