"""Hooks, groups, iters, chains and cached results of django-q2, and whose they are."""

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django_q.models import Task
from django_q.tasks import (
    Chain,
    Iter,
    async_chain,
    async_iter,
    async_task,
    count_group,
    delete_cached,
    delete_group,
    fetch,
    fetch_group,
    result,
    result_group,
)

from ductor.contrib.q2 import results
from ductor.contrib.q2.results import Ended, prune, save
from tenants.errors import Unavailable
from tenants.queries import TenantView
from tenants.scope import attach
from tests.builders import assert_counters_true, build_tenant, rows
from tests.compat.conftest import SHOP, lines
from tests.workflows.conftest import TestWorker
from workflows.errors import QuotaExceeded

ADD = f"{SHOP}.add"
FAIL = f"{SHOP}.fail"


@contextmanager
def after_work(shop: TestWorker, tenant: TenantView) -> Iterator[None]:
    """Run what there is to run, then look as the tenant."""
    contextvars.Context().run(shop.run_all)
    with attach(tenant.id):
        yield


def link(number: int, **more: Any) -> dict[str, Any]:
    fields = {"id": f"{number:032x}", "name": f"n{number}", "func": ADD, "args": [number], "kwargs": {}, "hook": None}
    return {**fields, "group": None, "cluster": None, "cached": False, "save": True, "timeout": None, **more}


def ended(result: Any = None, success: bool = True) -> Ended:
    now = datetime.now(UTC)
    return Ended(success, result, now, now)


def test_a_hook_sees_the_result_and_what_it_starts_is_the_same_tenants(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(ADD, 1, 2, hook=f"{SHOP}.note")
        async_task(FAIL, "x", hook=f"{SHOP}.note")
    with after_work(shop, tenant):
        assert result(f"after-{task_id}") == 1003
        assert Task.objects.count() == 3
    assert rows("select distinct tenant_id from workflows_task") == [(tenant.id,)]
    assert_counters_true()


def test_a_hook_that_fails_leaves_the_result_and_nothing_of_its_own(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(ADD, 1, hook=f"{SHOP}.broken_hook")
    with after_work(shop, tenant):
        assert result(task_id) == 1
    assert rows("select count(*), min(state) from workflows_task") == [(1, "completed")]
    assert_counters_true()


@pytest.mark.parametrize(("hook", "places"), [("note", 1), ("greedy_hook", 2)])
def test_a_hook_that_runs_into_the_limit_leaves_the_result(shop: TestWorker, hook: str, places: int) -> None:
    """At its call, or only when the limits are held exactly: two starts for one free place."""
    tenant = build_tenant(max_outstanding=places)
    with attach(tenant.id):
        task_id = async_task(ADD, 1, hook=f"{SHOP}.{hook}")
    with after_work(shop, tenant):
        assert result(task_id) == 1
    assert rows("select count(*), min(state) from workflows_task") == [(1, "completed")]
    assert_counters_true()


def test_a_call_that_was_made_twice_is_one_row_and_one_hook(shop: TestWorker) -> None:
    tenant = build_tenant()
    call = link(1, hook=f"{SHOP}.note")
    save(tenant_id=tenant.id, link=call, ended=ended("no : why", success=False))
    save(tenant_id=tenant.id, link=call, ended=ended(5))
    save(tenant_id=tenant.id, link=call, ended=ended(6))
    save(tenant_id=tenant.id, link=call, ended=ended("late : why", success=False))
    assert rows("select result, success, attempt_count from django_q_task") == [("5", True, 2)]
    assert rows("select input -> 'links' -> 0 ->> 'name' from workflows_task") == [(f"after-{call['id']}",)]


def test_a_call_whose_row_stands_is_not_made_again(
    shop: TestWorker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As after a kill between the row and the task's end."""
    monkeypatch.setenv("DUCTOR_TEST_TRACE", str(tmp_path / "trace"))
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(ADD, 1)
    real, failing = results.save, [True]

    def lost_answer(**call: Any) -> None:
        real(**call)
        if failing.pop():
            failing.append(False)
            raise Unavailable

    monkeypatch.setattr(results, "save", lost_answer)
    monkeypatch.setattr("ductor.contrib.q2.running.AGAIN_SECONDS", 0.001)
    with after_work(shop, tenant):
        assert fetch(task_id).attempt_count == 1
    assert rows("select state, attempt, output from workflows_task") == [("completed", 2, 1)]
    assert lines(tmp_path / "trace") == ["add 1 0"]


def test_a_group_is_counted_fetched_and_taken_apart(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        for number in range(3):
            async_task(ADD, number, group="g")
        async_task(FAIL, "x", group="g")
        assert result_group("g") is None
    with after_work(shop, tenant):
        assert sorted(result_group("g", count=4)) == [0, 1, 2]
        assert len(result_group("g", failures=True)) == 4
        assert {task.group for task in fetch_group("g")} == {"g"}
        assert (count_group("g"), count_group("g", failures=True)) == (4, 1)
        delete_group("g")
        assert (count_group("g"), Task.objects.count()) == (0, 4)
        Task.objects.update(group="h")
        delete_group("h", tasks=True)
        assert Task.objects.count() == 0
    assert_counters_true()


def test_an_iter_is_collected_into_one_result_in_the_order_of_its_arguments(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        group = async_iter(ADD, [(1, 10), (2, 20), 3])
        many = Iter(ADD)
        many.append(5)
        many.append(6, 7)
        many.run()
    with after_work(shop, tenant):
        assert result(group) == [11, 22, 3]
        assert result(group, cached=True) == [11, 22, 3]
        assert fetch(group).args == [[1, 10], [2, 20], [3]]
        assert many.result() == [5, 13]
        assert Task.objects.count() == 2
    assert_counters_true()


def test_an_iter_with_a_failed_call_is_a_failure_with_the_other_results(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        group = async_iter(ADD, [(1,), ("x", 2)])
    with after_work(shop, tenant):
        collected = fetch(group)
        assert (collected.success, collected.result[0]) == (False, 1)
        assert "TypeError" in collected.result[1]


def test_calls_of_an_iter_that_end_at_once_are_collected_once(shop: TestWorker) -> None:
    tenant = build_tenant()
    count, group = 8, "f" * 32
    barrier = threading.Barrier(count)

    def finish(number: int) -> None:
        barrier.wait()
        call = link(number, group=group, cached=True)
        for _ in range(2):
            save(tenant_id=tenant.id, link=call, ended=ended(number), iter_count=count)
        connections.close_all()

    threads = [threading.Thread(target=finish, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert rows("select id, result from django_q_task") == [(group, str(list(range(count))))]


def test_a_chain_runs_link_by_link_as_one_task(shop: TestWorker) -> None:
    tenant = build_tenant(max_outstanding=1)
    with attach(tenant.id):
        group = async_chain([(ADD, (1, 2)), (FAIL, ("x",)), (f"{SHOP}.whose",), (ADD, (3,), {"b": 4})])
        with pytest.raises(QuotaExceeded):
            async_task(ADD, 1)
    with after_work(shop, tenant):
        found = Task.objects.filter(group=group).order_by("started")
        assert [(task.func, task.success) for task in found] == [
            (ADD, True),
            (FAIL, False),
            (f"{SHOP}.whose", True),
            (ADD, True),
        ]
        assert [task.result for task in found if task.success] == [3, str(tenant.id), 7]
    # A link that failed does not stop the chain, as with django-q2; the task says at its end that one did.
    assert rows("select state, attempt, failures, error ->> 'message' from workflows_task") == [
        ("failed", 4, 1, "1 of the 4 links of this chain failed.")
    ]
    assert_counters_true()


def test_a_chain_object_waits_for_its_links(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        chain = Chain()
        chain.append(ADD, 1)
        chain.append(ADD, 2, b=3)
        chain.run()
        assert chain.current() == 0
    with after_work(shop, tenant):
        assert chain.current() == 2
        assert sorted(chain.result()) == [1, 5]
        assert {task.func for task in chain.fetch()} == {ADD}
    assert rows("select state, output from workflows_task") == [("completed", 5)]


def test_cached_results_are_found_by_every_process_and_removed(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(ADD, 1, 1, cached=60, group="c", save=False)
        async_task(FAIL, "x", cached=True, group="c")
        assert result(task_id, cached=True) is None
    with after_work(shop, tenant):
        assert result(task_id, cached=True) == 2
        assert fetch(task_id, cached=True).args == [1, 1]
        assert result_group("c", cached=True) == [2]
        assert len(fetch_group("c", cached=True)) == 2
        assert count_group("c", cached=True) == 2
        assert delete_cached(task_id)
        assert not delete_cached(task_id)
        delete_group("c", cached=True)
        assert Task.objects.count() == 0


def test_another_tenants_results_groups_and_hooks_are_not_there(shop: TestWorker) -> None:
    mine, other = build_tenant(), build_tenant()
    with attach(other.id):
        task_id = async_task(ADD, 1, group="g", task_name="secret")
        async_iter(ADD, [(1,)])
    shop.run_all()
    before = rows("select md5(t::text) from django_q_task t order by 1")
    with attach(mine.id):
        for name in (task_id, "secret", "0" * 32, "made-up"):
            for cached in (False, True):
                assert (result(name, cached=cached), fetch(name, cached=cached)) == (None, None)
        for cached in (False, True):
            assert result_group("g", failures=True, cached=cached) is None
            assert not fetch_group("g", cached=cached)
            assert not count_group("g", cached=cached)
        delete_group("g", tasks=True)
        assert not delete_cached(task_id)
        assert (Task.objects.count(), Task.objects.update(group="stolen")) == (0, 0)
        assert Task.objects.all().delete()[0] == 0
    assert rows("select md5(t::text) from django_q_task t order by 1") == before


def test_the_same_id_in_two_tenants_is_two_rows(shop: TestWorker) -> None:
    mine, other = build_tenant(), build_tenant()
    for tenant, value in ((mine, 1), (other, 2)):
        save(tenant_id=tenant.id, link=link(1), ended=ended(value))
    for tenant, value in ((mine, 1), (other, 2)):
        with attach(tenant.id):
            assert result(f"{1:032x}") == value


def test_the_oldest_successes_beyond_the_limit_are_removed_and_failures_stay(shop: TestWorker) -> None:
    mine, other = build_tenant(), build_tenant()
    for tenant in (mine, other):
        for number in range(5):
            save(tenant_id=tenant.id, link=link(number), ended=ended(number, success=number > 0))
    assert prune(tenant_id=mine.id, most=0) == 0
    assert prune(tenant_id=mine.id, most=2) == 2
    assert prune(tenant_id=mine.id, most=2) == 0
    kept = "select result from django_q_task where tenant_id = %s order by 1"
    assert [row[0] for row in rows(kept, mine.id)] == ["0", "3", "4"]
    assert len(rows(kept, other.id)) == 5
