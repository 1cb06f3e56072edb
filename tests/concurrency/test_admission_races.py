"""Admission under contention: exact limits, open transactions that delay nobody, keys that race."""

import threading

import pytest
from django.db import transaction

from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, complete, rows, start
from tests.races import Aside, together, wait_for_lock
from workflows.admission import NewTask, enqueue
from workflows.errors import KeyConflict, QuotaExceeded


def test_b48_forty_racers_for_five_places() -> None:
    tenant = build_tenant(max_outstanding=5)
    results = together(*[lambda: start(tenant)] * 40)
    refused = [result for result in results if isinstance(result, QuotaExceeded)]
    assert len(refused) == 35
    assert all(error.retry_after == 5 and error.fields["maximum"] == 5 for error in refused)
    assert [len(result) for result in results if not isinstance(result, Exception)] == [1] * 5
    assert rows("select count(*) from workflows_task") == [(5,)]
    assert_counters_true()


def test_c02_two_connections_for_one_place() -> None:
    tenant = build_tenant(max_outstanding=1, max_leases=1)
    results = together(lambda: start(tenant), lambda: start(tenant))
    assert sorted(isinstance(result, QuotaExceeded) for result in results) == [False, True]


def test_refusal_at_commit_is_the_same_typed_error() -> None:
    """Both transactions pass the early look; the second to commit is refused by its own COMMIT."""
    tenant = build_tenant(max_outstanding=1)
    inserted, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            start(tenant)
            inserted.set()
            assert go_on.wait(10)

    aside = Aside(slow)
    assert inserted.wait(10)
    start(tenant)
    go_on.set()
    with pytest.raises(QuotaExceeded) as refused:
        aside.result()
    assert (refused.value.fields["used"], refused.value.fields["maximum"]) == (1, 1)
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert_counters_true()


def test_an_open_transaction_after_start_delays_nobody() -> None:
    tenant = build_tenant()
    start(tenant, 3)
    inserted, go_on = threading.Event(), threading.Event()

    def keeps_open() -> None:
        with transaction.atomic():
            start(tenant, 2)
            inserted.set()
            assert go_on.wait(20)

    aside = Aside(keeps_open)
    assert inserted.wait(10)
    start(tenant)
    tasks = claim()
    assert len(tasks) == 4
    assert complete(tasks) == set()
    assert aside.running
    go_on.set()
    aside.result()
    assert len(claim()) == 2
    assert_counters_true()


def test_b37_twenty_parallel_starts_of_one_key_make_one_task() -> None:
    tenant = build_tenant()
    task = NewTask("order-review", 1, {"order": 7}, key="order-7")
    results = together(*[lambda: enqueue(tenant_id=tenant.id, tasks=[task], principal=PRINCIPAL)[0]] * 20)
    assert len({result.task_id for result in results}) == 1
    assert [result.created for result in results].count(True) == 1
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert_counters_true()


def test_b38_key_is_bound_to_its_content() -> None:
    tenant = build_tenant()
    (first,) = start(tenant, workflow="review", key="x")
    with pytest.raises(KeyConflict):
        start(tenant, workflow="billing", key="x")
    assert start(tenant, workflow="review", key="x") == [first]
    assert rows("select workflow from workflows_task") == [("review",)]
    assert_counters_true()


def test_b31_a_rolled_back_start_was_never_a_duplicate() -> None:
    tenant = build_tenant()
    inserted, go_on = threading.Event(), threading.Event()

    class Regret(Exception):
        pass

    def changes_its_mind() -> None:
        with transaction.atomic():
            start(tenant, key="x")
            inserted.set()
            assert go_on.wait(10)
            raise Regret

    first = Aside(changes_its_mind)
    assert inserted.wait(10)
    second = Aside(lambda: enqueue(tenant_id=tenant.id, tasks=[NewTask("w", 1, None, key="x")], principal=PRINCIPAL))
    wait_for_lock()
    go_on.set()
    with pytest.raises(Regret):
        first.result()
    (made,) = second.result()
    assert made.created
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert_counters_true()


def test_crossed_keys_of_two_calls_do_not_deadlock() -> None:
    tenant = build_tenant(max_outstanding=10_000)
    keys = [f"k{n}" for n in range(200)]

    def call(order: list[str]) -> None:
        tasks = [NewTask("w", 1, None, key=key) for key in order]
        enqueue(tenant_id=tenant.id, tasks=tasks, principal=PRINCIPAL)

    assert together(lambda: call(keys), lambda: call(keys[::-1])) == [None, None]
    assert rows("select count(*) from workflows_task") == [(200,)]
    assert_counters_true()
