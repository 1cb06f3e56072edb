"""`async_task()` through the tenant's queue: what is run and what is kept."""

import contextvars
import uuid

import pytest
from django.db import transaction
from django_q.models import Failure, Success
from django_q.tasks import AsyncTask, async_task, fetch, result
from picklefield.fields import dbsafe_encode

from ductor.broker import AsyncTaskRefused, Broker
from tenants.errors import DuctorError, QueueUnknown
from tenants.identity import SYSTEM_TENANT_ID
from tenants.scope import attach
from tests.builders import assert_counters_true, build_queue, build_tenant, rows
from tests.compat.conftest import SHOP
from tests.compat.shop import tasks
from tests.workflows.conftest import TestWorker
from workflows.errors import QuotaExceeded

TASKS = "select workflow, queue, state from workflows_task order by id"


def nothing_stands() -> None:
    assert rows("select count(*) from workflows_task") == [(0,)]
    assert rows("select count(*) from django_q_task") == [(0,)]
    assert_counters_true()


def test_a_call_runs_and_its_result_is_found_under_the_tasks_own_id(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(f"{SHOP}.add", 2, b=3, task_name="sum")
        assert result(task_id) is None
    assert rows(TASKS) == [(f"q2:{SHOP}.add", "default", "queued")]
    assert shop.run_all() == 1
    with attach(tenant.id):
        assert result(task_id) == 5
        task = fetch(task_id)
        assert fetch("sum") == task
    assert (task.id, task.name, task.func, task.args, task.kwargs) == (task_id, "sum", f"{SHOP}.add", [2], {"b": 3})
    assert (task.success, task.attempt_count, task.hook) == (True, 1, None)
    assert rows("select id, state, output from workflows_task") == [(uuid.UUID(task_id), "completed", 5)]
    assert rows("select tenant_id, result from django_q_task") == [(tenant.id, "5")]
    assert_counters_true()


def test_a_function_may_be_given_as_itself_and_as_an_object(shop: TestWorker) -> None:
    with attach(build_tenant().id):
        call = AsyncTask(tasks.add, 4, 5)
        call.run()
        shop_runs(shop)
        assert call.result() == 9
        assert call.fetch().func == f"{SHOP}.add"


def shop_runs(shop: TestWorker) -> None:
    """Run the worker as it runs: with no tenant attached."""
    contextvars.Context().run(shop.run_all)


def test_a_failed_call_is_a_failure_and_is_not_tried_again(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(f"{SHOP}.fail", "no such order")
    shop.run_all()
    with attach(tenant.id):
        failure = Failure.objects.get(id=task_id)
        assert list(Success.objects.all()) == []
    assert failure.result.startswith("no such order : Traceback")
    assert "LookupError: no such order" in failure.result
    assert rows("select state, attempt, error ->> 'class' from workflows_task") == [("failed", 1, "LookupError")]
    assert_counters_true()


def test_a_result_that_is_no_json_is_a_failure(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(f"{SHOP}.give_set")
    shop.run_all()
    with attach(tenant.id):
        assert fetch(task_id).result.startswith("The result is no JSON: /path: a value of type PosixPath")
    assert rows("select state from workflows_task") == [("failed",)]


def test_a_function_runs_as_the_tenant_whose_task_it_is(shop: TestWorker) -> None:
    tenants = [build_tenant(), build_tenant()]
    ids = []
    for tenant in tenants:
        with attach(tenant.id):
            ids.append(async_task(f"{SHOP}.whose"))
    shop.run_all()
    for tenant, task_id in zip(tenants, ids, strict=True):
        with attach(tenant.id):
            assert result(task_id) == str(tenant.id)


def test_a_call_in_a_transaction_that_is_rolled_back_starts_nothing(shop: TestWorker) -> None:
    with attach(build_tenant().id), pytest.raises(LookupError):
        with transaction.atomic():
            async_task(f"{SHOP}.add", 1)
            raise LookupError
    nothing_stands()
    assert shop.run_all() == 0


def test_s24_nothing_that_stands_in_a_row_is_a_pickle(shop: TestWorker) -> None:
    with attach(build_tenant().id):
        async_task(f"{SHOP}.add", 1, hook=f"{SHOP}.note")
        async_task(f"{SHOP}.fail", "x")
    shop.run_all()
    assert rows("select result::jsonb, args::jsonb, kwargs::jsonb from django_q_task where func like '%%.add'")
    assert rows("select count(*) from django_q_task where result::jsonb is null") == [(0,)]
    assert rows("select jsonb_typeof(input) from workflows_task limit 1") == [("object",)]


def test_a_pickle_in_a_row_is_not_read(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(f"{SHOP}.add", 1)
    shop.run_all()
    rows("update django_q_task set result = %s, args = %s returning 1", dbsafe_encode({"a": 1}), dbsafe_encode((1,)))
    with attach(tenant.id):
        task = fetch(task_id)
    assert (task.result, task.args) == (None, None)


def test_a_cluster_names_a_queue(shop: TestWorker) -> None:
    build_queue("mail")
    tenant = build_tenant()
    with attach(tenant.id):
        async_task(f"{SHOP}.add", 1, cluster="mail")
        async_task(f"{SHOP}.add", 1, cluster="ductor")
        for name in ("nowhere", "system"):
            with pytest.raises(QueueUnknown):
                async_task(f"{SHOP}.add", 1, cluster=name)
    assert [row[1] for row in rows(TASKS)] == ["mail", "default"]
    assert_counters_true()


def test_a_tenants_limit_holds(shop: TestWorker) -> None:
    with attach(build_tenant(max_outstanding=2).id):
        for _ in range(2):
            async_task(f"{SHOP}.add", 1)
        with pytest.raises(QuotaExceeded):
            async_task(f"{SHOP}.add", 1)
    assert len(rows(TASKS)) == 2
    assert_counters_true()


def test_the_system_tenants_calls_go_to_its_own_lane(shop: TestWorker) -> None:
    with attach(SYSTEM_TENANT_ID):
        task_id = async_task(f"{SHOP}.add", 1, 1)
    assert [row[1] for row in rows(TASKS)] == ["system"]
    shop.run_all()
    with attach(SYSTEM_TENANT_ID):
        assert result(task_id) == 2


def test_save_says_whether_a_success_is_kept(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        kept = async_task(f"{SHOP}.add", 1)
        async_task(f"{SHOP}.add", 2, save=False)
        failed = async_task(f"{SHOP}.fail", "x", save=False)
    shop.run_all()
    assert {row[0] for row in rows("select id from django_q_task")} == {kept, failed}


def test_the_broker_is_no_queue() -> None:
    broker = Broker()
    assert (broker.queue_size(), broker.lock_size(), broker.ping()) == (0, 0, True)
    with pytest.raises(AsyncTaskRefused):
        broker.dequeue()
    with pytest.raises(AsyncTaskRefused):
        broker.cache.set("ductor:x", "y")
    assert issubclass(AsyncTaskRefused, DuctorError)
