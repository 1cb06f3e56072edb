"""Starting tasks from Python: transactions, tenants, keys, refusals, the stored definition."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from ductor import Retry, Workflow
from tenants.errors import PolicyMissing, ScopeConflict, ScopeMissing, TenantNotFound
from tenants.scope import attach, tenant_scope
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows
from tests.database import as_role
from tests.workflows.conftest import TestWorker
from workflows import registry
from workflows.admission import Enqueued
from workflows.errors import (
    BatchOutOfBounds,
    DefinitionChanged,
    InputInvalid,
    KeyConflict,
    QuotaExceeded,
    UnknownWorkflow,
)
from workflows.starting import Start, start_tasks

pytestmark = pytest.mark.usefixtures("flows")

ORDER = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def flow_of(name: str = "started", **more: Any) -> Workflow:
    flow = Workflow(name, version=1, **more)
    flow.step("only")(lambda ctx: ctx.input)
    return flow


def tasks() -> int:
    ((count,),) = rows("select count(*)::int from workflows_task")
    return int(count)


def test_a_start_commits_with_the_callers_transaction(worker: TestWorker) -> None:
    tenant, flow = build_tenant(), flow_of()
    with attach(tenant.id):
        with transaction.atomic():
            task = flow.start({"id": 1}, key="order-1")
            assert (task.created, tasks()) == (True, 0)
        assert tasks() == 1
    worker.run_all()
    assert task.result(timeout=0) == {"id": 1}


def test_a_start_is_gone_with_the_callers_rollback() -> None:
    tenant, flow = build_tenant(), flow_of()
    with attach(tenant.id), pytest.raises(LookupError), transaction.atomic():
        flow.start({"id": 1})
        raise LookupError

    assert tasks() == 0
    assert rows("select count(*) from workflows_definition") == [(0,)]
    flow.start({"id": 1}, tenant=tenant.id)
    assert rows("select name from workflows_definition") == [("started",)]
    assert_counters_true()


def test_the_tenant_is_the_attached_one_or_named_where_none_is() -> None:
    tenant, other, flow = build_tenant("named-one"), build_tenant(), flow_of()

    with as_role("operator"):
        assert flow.start(tenant="named-one").tenant_id == tenant.id
        with pytest.raises(TenantNotFound):
            flow.start(tenant="nobody")
    assert flow.start(tenant=tenant.id).tenant_id == tenant.id
    with attach(tenant.id):
        assert flow.start().tenant_id == tenant.id
        for named in (other.id, tenant.id, other.slug):
            with pytest.raises(ScopeConflict):
                flow.start(tenant=named)
    with pytest.raises(ScopeMissing):
        flow.start()
    assert tasks() == 3


def test_the_same_key_starts_one_task() -> None:
    tenant, flow = build_tenant(), flow_of()
    first = flow.start({"id": 1}, key="k", tenant=tenant.id)
    second = flow.start({"id": 1}, key="k", tenant=tenant.id)

    assert (first.created, second.created) == (True, False)
    assert first.id == second.id
    with pytest.raises(KeyConflict):
        flow.start({"id": 2}, key="k", tenant=tenant.id)
    assert tasks() == 1


def test_many_start_at_once_all_or_none() -> None:
    tenant, flow = build_tenant(max_outstanding=5), flow_of(input=ORDER)

    assert len(flow.start_many([{"id": n} for n in range(4)], tenant=tenant.id)) == 4
    with pytest.raises(QuotaExceeded):
        flow.start_many([{"id": 1}] * 2, tenant=tenant.id)
    with pytest.raises(InputInvalid) as refused:
        flow.start_many([{"id": 1}, {"id": "x"}], tenant=tenant.id)
    assert [e["pointer"] for e in refused.value.fields["errors"]] == ["/1/input/id"]
    for count in (0, 1001):
        with pytest.raises(BatchOutOfBounds):
            flow.start_many([{"id": 1}] * count, tenant=tenant.id)
    assert tasks() == 4


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"input": {}}, "/input"),
        ({"input": {"id": "x"}}, "/input/id"),
        ({"input": {"id": 2**63}}, "/input/id"),
        ({"input": {"id": 1, "text": "a\0"}}, "/input/text"),
        ({"input": {"id": 1, "text": "\ud800"}}, "/input/text"),
        ({"input": {"id": 1, "big": "x" * 300_000}}, "/input"),
        ({"key": ""}, "/key"),
        ({"key": "x" * 129}, "/key"),
        ({"key": "a\0"}, "/key"),
        ({"priority": 101}, "/priority"),
        ({"priority": True}, "/priority"),
        ({"due_at": datetime(2030, 1, 1)}, "/at"),
        ({"due_at": datetime(2999, 1, 1, tzinfo=UTC)}, "/at"),
        ({"delay_seconds": -1}, "/delay_seconds"),
        ({"delay_seconds": float("nan")}, "/delay_seconds"),
        ({"delay_seconds": 1, "due_at": datetime.now(UTC)}, "/delay_seconds"),
    ],
)
def test_what_is_not_lawful_is_named_and_nothing_is_written(given: dict[str, Any], pointer: str) -> None:
    tenant = build_tenant()
    flow_of(input=ORDER)

    with pytest.raises(InputInvalid) as refused:
        start_tasks(
            tenant_id=tenant.id, starts=[Start("started", **{"input": {"id": 1}, **given})], principal=PRINCIPAL
        )
    assert [error["pointer"] for error in refused.value.fields["errors"]] == [pointer]
    assert tasks() == 0
    assert rows("select count(*) from workflows_definition") == [(0,)]


@pytest.mark.parametrize(("name", "version"), [("unknown", None), ("started", 2)])
def test_an_unknown_workflow_is_refused(name: str, version: int | None) -> None:
    tenant = build_tenant()
    flow_of()

    with pytest.raises(UnknownWorkflow):
        start_tasks(tenant_id=tenant.id, starts=[Start(name, version)], principal=PRINCIPAL)
    assert tasks() == 0


def test_a_workflow_with_mistakes_is_refused() -> None:
    tenant = build_tenant()
    flow = Workflow("mistaken", version=1)
    flow.step("a", after=["b"])(lambda ctx: None)

    with pytest.raises(UnknownWorkflow, match="definition is wrong"):
        flow.start(tenant=tenant.id)


def test_a_changed_shape_without_a_new_version_is_refused() -> None:
    tenant = build_tenant()
    flow_of().start(tenant=tenant.id)

    with registry.isolated():
        changed = Workflow("started", version=1)
        changed.step("another")(lambda ctx: None)
        with pytest.raises(DefinitionChanged):
            changed.start(tenant=tenant.id)
        newer = Workflow("started", version=2)
        newer.step("another")(lambda ctx: None)
        newer.start(tenant=tenant.id)

    assert rows("select name, version from workflows_definition order by version") == [("started", 1), ("started", 2)]
    assert tasks() == 2


def test_the_stored_definition_is_looked_up_once() -> None:
    tenant, flow = build_tenant(), flow_of()
    flow.start(tenant=tenant.id)
    seen: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        seen.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        flow.start(tenant=tenant.id)

    assert [sql for sql in seen if "workflows_definition" in sql] == []


def test_each_tenant_has_its_own_stored_definition() -> None:
    one, two, flow = build_tenant(), build_tenant(), flow_of(input=ORDER)
    flow.start({"id": 1}, tenant=one.id)
    flow.start({"id": 1}, tenant=two.id)

    assert rows("select tenant_id, checksum, graph, input_schema from workflows_definition order by tenant_id") == [
        (tenant, flow.checksum, {"format": 1, "nodes": [{"name": "only", "kind": "step", "after": []}]}, ORDER)
        for tenant in sorted([one.id, two.id])
    ]


def test_an_open_transaction_after_a_first_start_delays_no_other_start() -> None:
    tenant, flow = build_tenant(), flow_of()
    done: list[Any] = []

    def start_elsewhere() -> None:
        with connection.cursor() as cursor:
            cursor.execute("set lock_timeout = '2s'")
        done.append(flow.start({"id": 2}, tenant=tenant.id).created)
        connection.close()

    with attach(tenant.id), tenant_scope():
        flow.start({"id": 1})
        thread = threading.Thread(target=start_elsewhere)
        thread.start()
        thread.join(timeout=5)
        assert done == [True]
    assert tasks() == 2


def test_a_tenant_without_a_policy_admits_nothing() -> None:
    tenant, flow = build_tenant(policy=False), flow_of()

    with pytest.raises(PolicyMissing):
        flow.start(tenant=tenant.id)
    assert tasks() == 0


def test_delay_time_priority_queue_and_origin_are_stored() -> None:
    tenant, flow = build_tenant(), flow_of(max_failures=9)
    at = datetime.now(UTC) + timedelta(hours=2)
    delayed = flow.start(delay="30m", tenant=tenant.id).refresh()
    timed = flow.start(at=at, priority=7, tenant=tenant.id).refresh()

    assert (delayed.state, delayed.reason, delayed.input) == ("waiting", "delayed", {})
    assert timedelta(minutes=29) < delayed.due_at - delayed.created_at <= timedelta(minutes=30)
    assert (timed.due_at, timed.priority, timed.queue) == (at, 7, "default")
    assert timed.origin["source"] == "code"
    assert timed.origin["principal"]["kind"] == "code"
    assert rows("select distinct max_failures from workflows_task") == [(9,)]


def test_the_most_patient_step_sets_the_failure_cap() -> None:
    tenant, flow = build_tenant(), Workflow("patient", version=1)
    flow.step("only", retry=Retry(max_attempts=12))(lambda ctx: None)
    flow.start(tenant=tenant.id)

    assert rows("select max_failures from workflows_task") == [(12,)]


def test_start_tasks_answers_in_order() -> None:
    tenant = build_tenant()
    flow_of()
    starts = [Start("started", input={"id": n}, key=f"k{n % 2}") for n in (0, 1)]
    first = start_tasks(tenant_id=tenant.id, starts=starts, principal=PRINCIPAL, immediate=True)
    again = start_tasks(tenant_id=tenant.id, starts=starts[::-1], principal=PRINCIPAL)

    assert again == [Enqueued(done.task_id, False) for done in first[::-1]]
