"""What a start gives back: a handle that reads, waits and raises."""

from dataclasses import dataclass
from typing import Any

import pytest

from ductor import Context, Retry, Workflow
from tenants.errors import ScopeConflict
from tenants.scope import attach, tenant_scope
from tests.builders import build_tenant
from tests.workflows.conftest import TestWorker
from workflows.handles import TaskFailed

pytestmark = pytest.mark.usefixtures("flows")


def test_an_input_object_comes_back_as_one(worker: TestWorker) -> None:
    @dataclass
    class Order:
        id: int
        note: str = ""

    tenant, flow = build_tenant(), Workflow("typed", version=1, input=Order)
    seen: list[Any] = []

    @flow.step
    def only(ctx: Context[Order]) -> Order:
        seen.append(ctx.input)
        return Order(ctx.input.id + 1)

    task = flow.start(Order(3), tenant=tenant.id)
    worker.run_all()

    assert seen == [Order(3)]
    assert task.result(timeout=0) == {"id": 4, "note": ""}


def test_a_handle_reads_waits_and_raises(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), Workflow("handled", version=1)

    @flow.step(retry=Retry(max_attempts=1))
    def fails(ctx: Context[Any]) -> None:
        raise ValueError("no")

    task = flow.start(tenant=tenant.id)
    assert task.status == "queued"
    with pytest.raises(TimeoutError):
        task.result(timeout=0.05)
    worker.run_all()

    assert task.status == "queued"
    assert task.refresh().state == task.status == "failed"
    with pytest.raises(TaskFailed, match="ended failed: ValueError"):
        task.result()
    with attach(tenant.id), tenant_scope(), pytest.raises(RuntimeError, match="transaction"):
        task.result()


def test_another_tenants_handle_is_refused() -> None:
    tenant, other, flow = build_tenant(), build_tenant(), Workflow("private", version=1)
    flow.step("only")(lambda ctx: None)
    task = flow.start(tenant=tenant.id)

    with attach(other.id), pytest.raises(ScopeConflict):
        task.refresh()
