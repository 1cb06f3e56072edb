"""How idle workers wait: registered, listening, woken at once; or polling where notifications do not arrive."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from ductor import Workflow
from tests.builders import build_tenant, rows
from tests.workflows.conftest import TestWorker
from workflows import registry, wakeup
from workflows.system import ensure_running, sweep

pytestmark = pytest.mark.usefixtures("flows")

REGISTERED = "select worker, queues from tenants_listener where expires_at > clock_timestamp()"


@pytest.fixture
def noop() -> Workflow:
    flow = Workflow("noop", version=1)
    flow.step("only")(lambda ctx: None)
    return flow


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """What this thread's connection sends while the test runs."""
    seen: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        seen.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield seen


def waited(worker: TestWorker, seconds: float) -> float:
    begun = time.monotonic()
    wakeup.wait(worker=worker.state, seconds=seconds)
    return time.monotonic() - begun


def test_the_first_wait_registers_and_returns_for_one_more_claim(worker: TestWorker) -> None:
    worker.turn()

    assert waited(worker, 5) < 1
    assert rows(REGISTERED) == [("test-worker", ["system", "default"])]
    assert 0.3 <= waited(worker, 0.3) < 1


def test_a_start_wakes_a_sleeping_worker_at_once(worker: TestWorker, noop: Workflow) -> None:
    tenant = build_tenant()
    worker.turn()
    waited(worker, 5)
    worker.turn()

    def start() -> None:
        noop.start(tenant=tenant.id)
        connections.close_all()

    threading.Timer(0.3, start).start()
    assert 0.25 < waited(worker, 20) < 3
    assert worker.turn().claimed == 1
    assert rows(REGISTERED) == []


def test_what_becomes_ready_between_claim_and_registration_is_claimed_once_more(
    worker: TestWorker, noop: Workflow
) -> None:
    tenant = build_tenant()
    assert worker.turn().claimed == 0
    noop.start(tenant=tenant.id)

    assert waited(worker, 20) < 1
    assert worker.turn().claimed == 1


def test_a_busy_worker_is_not_registered_and_hears_nothing_old(worker: TestWorker, noop: Workflow) -> None:
    tenant = build_tenant()
    waited(worker, 5)
    noop.start(tenant=tenant.id)
    assert worker.turn().claimed == 1
    noop.start(tenant=tenant.id)
    worker.run_all()

    waited(worker, 5)
    assert 0.25 < waited(worker, 0.3) < 1


def test_a_draining_worker_does_not_sleep(worker: TestWorker) -> None:
    waited(worker, 5)
    threading.Timer(0.2, lambda: setattr(worker, "stop", True)).start()

    assert waited(worker, 20) < 1


def test_the_system_lane_bounds_the_sleep(worker: TestWorker) -> None:
    registry.register(sweep)
    ensure_running()
    worker.run_all()
    waited(worker, 5)

    assert worker.state.system_due_at is not None
    worker.state.system_due_at = worker.state.system_due_at.replace(year=2020)
    assert waited(worker, 20) < 1


def test_without_notifications_the_worker_polls(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch, noop: Workflow
) -> None:
    monkeypatch.setattr(wakeup, "_arrives", lambda listening: False)
    monkeypatch.setattr(wakeup, "POLL_SECONDS", 0.5)
    tenant = build_tenant()

    assert 0.3 < waited(worker, 20) < 1
    assert rows(REGISTERED) == []
    noop.start(tenant=tenant.id)
    assert worker.turn().claimed == 1


def test_notifications_are_tried_before_they_are_relied_on(worker: TestWorker) -> None:
    with psycopg.connect(**_parameters(), autocommit=True) as listening:
        assert wakeup._arrives(listening)


def _parameters() -> dict[str, Any]:
    given = connection.get_connection_params()
    return {name: given[name] for name in ("host", "dbname", "user") if name in given}


def test_a_broken_listening_connection_is_replaced(worker: TestWorker, noop: Workflow) -> None:
    waited(worker, 5)
    listening = worker.state.listener._connection
    assert listening is not None
    listening.pgconn.finish()

    assert waited(worker, 20) < 2
    waited(worker, 5)
    assert rows(REGISTERED) == [("test-worker", ["system", "default"])]


def test_an_idle_worker_sends_few_statements(worker: TestWorker, statements: list[str]) -> None:
    worker.turn()
    waited(worker, 5)
    worker.turn()
    statements.clear()
    begun = time.monotonic()
    while time.monotonic() - begun < 2:
        waited(worker, 2)
    worker.turn()

    assert len(statements) <= 5
