"""What a plain role can and can't do around admission, and idempotency at the very limit."""

import json
import threading
import uuid
from typing import Any

import psycopg
import pytest

from ductor.databases import connection_settings, psycopg_parameters
from tenants.errors import ScopeConflict, ScopeMissing
from tenants.queries import TenantView
from tenants.scope import scope_of
from tenants.store import call
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, rows, start
from tests.database import owner
from tests.races import Aside, wait_for_lock
from workflows.admission import NewTask, enqueue
from workflows.errors import KeyConflict, QuotaExceeded
from workflows.faults import mark_fault

FORGED = {
    "a task that nobody admitted": (
        "insert into workflows_task (tenant_id, id, workflow, version, queue, partition, priority, state, origin,"
        " nesting_depth, created_at, due_at, attempt, failures, max_failures, alone, token, charged_us) values"
        " (%(tenant)s, gen_random_uuid(), 'w', 1, 'default', '', 32767, '{state}', '{{}}', 0, now(), now(), 0, 0, 3,"
        " false, 0, 0)"
    ),
    "a place that no task takes": (
        "insert into workflows_admission (tenant_id, id, queue, queued, waiting)"
        " values (%(tenant)s, gen_random_uuid(), 'default', {count}, 0)"
    ),
    "a key without its task": (
        "insert into workflows_taskkey (tenant_id, key, task_id, content_hash)"
        " values (%(tenant)s, 'k', gen_random_uuid(), 'x')"
    ),
}


@pytest.mark.parametrize("role", ["web", "worker", "operator"])
@pytest.mark.parametrize("what", FORGED)
def test_no_plain_role_writes_past_admission(role: str, what: str) -> None:
    tenant = build_tenant(max_outstanding=1)
    values = [{"state": state, "count": 0} for state in ("queued", "leased", "completed")]
    values += [{"state": "waiting", "count": count} for count in (-1000, 1000)]
    for value in values:
        with psycopg.connect(**psycopg_parameters(connection_settings(role))) as plain:
            plain.execute(f"set local ductor.tenant_id = '{tenant.id}'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                plain.execute(FORGED[what].format(**value), {"tenant": tenant.id})
    assert rows("select outstanding from tenants_load where tenant_id = %s", tenant.id) == [(0,)]
    assert rows("select count(*) from tenants_turn") == [(0,)]


def document(**more: Any) -> str:
    task = {"id": str(uuid.uuid4()), "workflow": "w", "version": 1, "queue": "default", "priority": 0}
    return json.dumps([{**task, "max_failures": 3, "origin": {}, **more}])


def test_a_start_for_another_tenant_is_refused_by_the_function_itself() -> None:
    a, b = build_tenant(), build_tenant()
    with pytest.raises(ScopeConflict), scope_of(a.id):
        call("workflows_enqueue_tasks", b.id, document())
    with pytest.raises(ScopeMissing):
        call("workflows_enqueue_tasks", b.id, document())
    assert rows("select count(*) from workflows_task") == [(0,)]


def test_a_turn_whose_counter_lies_hides_nobody_and_is_marked() -> None:
    """Counters are exact; were one ever not, its tenant must not stand before the others for ever."""
    liars = [build_tenant() for _ in range(5)]
    for liar in liars:
        start(liar)
    owner().execute("delete from workflows_task")
    owner().execute("update tenants_turn set queued = 50, next_due_at = 'epoch'")
    honest = build_tenant()
    (task_id,) = start(honest)
    found = [task.claim.task_id for _ in range(3) for task in claim(1)]
    assert found == [task_id]
    faults = rows("select tenant_id from tenants_turn where blocked & 64 <> 0 order by tenant_id")
    assert faults == sorted((liar.id,) for liar in liars)


def test_a_cleared_fault_wakes_and_banks_nothing() -> None:
    from workflows.waking import listen_idle

    idle, busy = build_tenant(), build_tenant()
    start(idle)
    mark_fault(tenant_id=idle.id, queue="default", faulty=True)
    owner().execute("update tenants_turn set key = 0")
    start(busy, 5)
    owner().execute("update tenants_turn set key = 9000000 where tenant_id = %s", [busy.id])
    assert len(claim(1)) == 1
    listen_idle(worker="w9", queues=["default"])
    with psycopg.connect(**psycopg_parameters(connection_settings("worker")), autocommit=True) as listener:
        listener.execute("listen ductor_wake")
        mark_fault(tenant_id=idle.id, queue="default", faulty=False)
        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1
    ((key,),) = rows("select key from tenants_turn where tenant_id = %s", idle.id)
    assert key >= 9000000


def test_a_key_twice_in_one_call_asks_for_one_place() -> None:
    tenant = build_tenant(max_outstanding=1)
    task = NewTask("w", 1, {"n": 1}, key="k")
    first, second = enqueue(tenant_id=tenant.id, tasks=[task, task], principal=PRINCIPAL)
    assert (first.created, second.created, first.task_id) == (True, False, second.task_id)
    with pytest.raises(KeyConflict):
        enqueue(tenant_id=tenant.id, tasks=[NewTask("w", 1, {"n": 2}, key="k")], principal=PRINCIPAL)
    with pytest.raises(QuotaExceeded):
        enqueue(tenant_id=tenant.id, tasks=[NewTask("w", 1, None, key=key) for key in "ab"], principal=PRINCIPAL)
    assert_counters_true()


def test_a_repeated_start_at_the_limit_gets_its_task_and_not_a_refusal() -> None:
    """The first start of the key commits while the second one is between its looks at keys and at the load row."""
    tenant = build_tenant(max_outstanding=1)
    task = NewTask("w", 1, {"n": 1}, key="k")

    def repeat() -> uuid.UUID:
        return enqueue(tenant_id=tenant.id, tasks=[task], principal=PRINCIPAL)[0].task_id

    first = repeat()
    # Take the first start back, hold the load table shut, and let it happen again inside that lock.
    owner().execute("create table review_kept as select * from workflows_taskkey")
    try:
        owner().execute("delete from workflows_taskkey")
        owner().execute("update tenants_load set outstanding = 0 where tenant_id = %s", [tenant.id])
        with owner().transaction():
            owner().execute("lock table tenants_load in access exclusive mode")
            second = Aside(repeat)
            wait_for_lock()
            owner().execute("insert into workflows_taskkey select * from review_kept")
            owner().execute("update tenants_load set outstanding = 1 where tenant_id = %s", [tenant.id])
        assert second.result() == first
    finally:
        owner().execute("drop table review_kept")
    assert_counters_true()


def test_open_starts_of_one_key_and_another_tenant_never_meet() -> None:
    a, b = build_tenant(), build_tenant()
    inserted, go_on = threading.Event(), threading.Event()

    def keeps_open() -> None:
        with scope_of(a.id):
            start(a, key="k")
            inserted.set()
            assert go_on.wait(10)

    aside = Aside(keeps_open)
    assert inserted.wait(10)
    start(b, key="k")
    go_on.set()
    aside.result()
    assert_counters_true()


def assert_reason(tenant: TenantView, reason: str) -> None:
    ((kept,),) = rows("select reason from workflows_task where tenant_id = %s", tenant.id)
    assert kept == reason


def test_a_long_reason_is_cut_and_cancels_all_the_same() -> None:
    from workflows.cancelling import cancel

    tenant = build_tenant()
    (task_id,) = start(tenant)
    cancel(tenant_id=tenant.id, task_id=task_id, principal=PRINCIPAL, reason="é" * 3000)
    assert_reason(tenant, "é" * 1000)
    assert_counters_true()
