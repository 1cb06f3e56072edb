"""Atomic steps beside locks and the role's own timeouts: what is nobody's fault burns no attempt."""

import threading
import time
from typing import Any

import psycopg
import pytest
from django.db import connection

from ductor import Context, Retry, Workflow
from ductor.databases import connection_settings, psycopg_parameters
from tests.builders import assert_counters_true, build_tenant, rows
from tests.workflows.conftest import TestWorker


def flow(name: str, handler: Any) -> Workflow:
    made = Workflow(name, version=1)
    made.step("only", atomic=True, retry=Retry(max_attempts=3, first=0, max=0))(handler)
    return made


def limit(setting: str, value: str) -> None:
    """Give the session of this thread's connection a timeout, as ductor_worker has by its role."""
    with connection.cursor() as cursor:
        cursor.execute(f"set {setting} = '{value}'")


@pytest.mark.usefixtures("flows")
def test_a_held_tenant_is_no_failure_of_the_handler(worker: TestWorker) -> None:
    tenant = build_tenant()
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with psycopg.connect(**psycopg_parameters(connection_settings("owner"))) as other:
            other.execute("select 1 from tenants_load where tenant_id = %s for no key update", [tenant.id])
            holding.set()
            done.wait(1.0)
            other.rollback()

    def handler(ctx: Context[Any]) -> int:
        if ctx.attempt == 1:
            threading.Thread(target=hold).start()
            assert holding.wait(5)
        return ctx.attempt

    task = flow("held", handler).start(tenant=tenant.id)
    limit("lock_timeout", "200ms")
    try:
        worker.run_all()
        done.set()
        deadline = time.monotonic() + 10
        while task.refresh().state != "completed" and time.monotonic() < deadline:
            time.sleep(0.2)
            worker.run_all()
    finally:
        limit("lock_timeout", "0")
    assert task.refresh().state == "completed"
    assert rows("select failures from workflows_task") == [(0,)]
    assert_counters_true()


@pytest.mark.usefixtures("flows")
def test_a_handler_may_be_quiet_in_its_transaction_for_as_long_as_its_step_may_take(worker: TestWorker) -> None:
    tenant = build_tenant()

    def handler(ctx: Context[Any]) -> int:
        time.sleep(1.5)
        return 1

    flow("quiet", handler).start(tenant=tenant.id)
    limit("idle_in_transaction_session_timeout", "500ms")
    try:
        worker.run_all()
    finally:
        connection.close()
    # The setting is lost with the connection, so that a second attempt gets through here; under the role none would.
    assert rows("select state, failures from workflows_task") == [("completed", 0)]
    assert_counters_true()
