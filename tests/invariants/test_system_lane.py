"""The system tenant and its lane: neither customers' work nor the system's delays the other (seed 2; DESIGN D11)."""

import os

import pytest

from tenants.errors import IdentityInvalid, QueueUnknown
from tenants.identity import SYSTEM_TENANT_ID, parse_slug
from tenants.keys import create_api_key
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, complete, rows, start
from workflows.admission import NewTask, enqueue

COUNT = 100_000 if os.environ.get("DUCTOR_TEST_FULL") == "1" else 5_000


def start_system(count: int) -> None:
    tasks = [NewTask("internal", 1, {}, queue="system") for _ in range(count)]
    enqueue(tenant_id=SYSTEM_TENANT_ID, tasks=tasks, principal=PRINCIPAL)


def test_behind_many_customer_tasks_a_system_task_starts_in_the_next_turn() -> None:
    tenant = build_tenant(max_outstanding=200_000)
    for _ in range(COUNT // 1000):
        start(tenant, 1000)
    start_system(1)
    (task,) = claim(10, queue="system")
    assert task.claim.tenant_id == SYSTEM_TENANT_ID
    assert_counters_true()


def test_many_system_tasks_leave_the_customers_order_unchanged() -> None:
    tenants = [build_tenant(max_outstanding=10_000) for _ in range(5)]
    for tenant in tenants:
        start(tenant, 40)

    def order() -> list:
        found = []
        for _ in range(5):
            tasks = claim(10)
            found.append([task.claim.tenant_id for task in tasks])
            complete(tasks)
        return found

    keys = rows("select tenant_id, key from tenants_turn where queue = 'default' order by 1")
    clock_before = rows("select tenants_queue_clock('default')")
    for _ in range(COUNT // 1000):
        start_system(1000)
    for _ in range(20):
        complete(claim(50, queue="system"))
    assert rows("select tenant_id, key from tenants_turn where queue = 'default' order by 1") == keys
    assert rows("select tenants_queue_clock('default')") == clock_before
    seen = order()
    assert [len(batch) for batch in seen] == [10] * 5
    assert {tenant_id for batch in seen for tenant_id in batch} == {tenant.id for tenant in tenants}
    assert_counters_true()


def test_nobody_else_gets_into_the_lane_and_the_system_does_not_leave_it() -> None:
    tenant = build_tenant()
    with pytest.raises(QueueUnknown):
        start(tenant, queue="system")
    with pytest.raises(QueueUnknown):
        enqueue(tenant_id=SYSTEM_TENANT_ID, tasks=[NewTask("internal", 1, {})], principal=PRINCIPAL)
    assert rows("select count(*) from workflows_task") == [(0,)]


def test_no_customer_can_be_called_system() -> None:
    with pytest.raises(IdentityInvalid):
        parse_slug("system")


def test_no_key_can_be_made_for_the_system_tenant() -> None:
    with pytest.raises(IdentityInvalid):
        create_api_key(tenant_id=SYSTEM_TENANT_ID, name="k", scopes=["tasks:read"], principal=PRINCIPAL)
    assert rows("select count(*) from tenants_apikey") == [(0,)]
