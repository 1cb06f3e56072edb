"""Attached tenant and scope: fail closed in Python, then in PostgreSQL (B04, B06, B12, B15; R6 to R8, R32, R33)."""

import asyncio
import threading
from contextvars import copy_context
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from tenants.errors import ScopeConflict, ScopeMissing
from tenants.scope import attach, attached, require_attached, scope_of, tenant_scope
from tests.builders import build_tenant, rows, start
from workflows.models import Task

TASKS = "select count(*) from workflows_task where tenant_id is not null"


def current() -> str | None:
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('ductor.tenant_id', true)")
        return cursor.fetchone()[0]


def count(sql: str = TASKS) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def test_without_a_tenant_everything_raises() -> None:
    tenant = build_tenant()
    start(tenant)
    with pytest.raises(ScopeMissing):
        require_attached()
    with pytest.raises(ScopeMissing):
        with tenant_scope():
            pass
    with pytest.raises(ScopeMissing):
        Task.objects.count()
    with pytest.raises(ScopeMissing):
        count()
    with pytest.raises(ScopeMissing), transaction.atomic():
        count()
    with attach(tenant.id), pytest.raises(ScopeMissing):
        Task.objects.count()
    with pytest.raises(ScopeMissing):
        with attach("acme"):  # type: ignore[arg-type]
            pass


def test_the_row_policy_alone_shows_nothing_without_a_tenant() -> None:
    """The second lock by itself: the guard is taken off this connection, and PostgreSQL still shows no row."""
    tenant = build_tenant()
    start(tenant)
    connection.ensure_connection()
    kept, connection.execute_wrappers[:] = list(connection.execute_wrappers), []
    try:
        assert count() == 0
        with attach(tenant.id), tenant_scope():
            assert count() == 1
        assert count() == 0
    finally:
        connection.execute_wrappers[:] = kept


def test_a_transaction_begun_while_attached_is_a_scope() -> None:
    tenant = build_tenant()
    start(tenant)
    with attach(tenant.id):
        with transaction.atomic():
            assert count() == 1
            assert current() == str(tenant.id)
    assert current() == ""


def test_scopes_of_two_tenants_do_not_nest_and_do_not_share_a_transaction() -> None:
    a, b = build_tenant(), build_tenant()
    with attach(a.id):
        with pytest.raises(ScopeConflict):
            with attach(b.id):
                pass
        assert attached() == a.id
    with transaction.atomic():
        with scope_of(a.id):
            assert current() == str(a.id)
        with pytest.raises(ScopeConflict):
            with scope_of(b.id):
                pass
        assert current() == str(a.id)
    with scope_of(b.id):
        assert current() == str(b.id)


def test_a_scope_joins_an_open_transaction_without_a_tenant_and_reenters_its_own() -> None:
    tenant = build_tenant()
    start(tenant)
    with transaction.atomic():
        assert attached() is None
        with scope_of(tenant.id), scope_of(tenant.id):
            assert count() == 1


def test_a_savepoint_rolled_back_takes_the_binding_back() -> None:
    a, b = build_tenant(), build_tenant()

    class Back(Exception):
        pass

    with transaction.atomic():
        with pytest.raises(Back):
            with transaction.atomic(), scope_of(a.id):
                raise Back
        with scope_of(b.id):
            assert current() == str(b.id)
            with pytest.raises(Back):
                with transaction.atomic():
                    raise Back
            assert current() == str(b.id)


def test_b04_b12_an_error_leaves_nothing_on_the_connection() -> None:
    a, b = build_tenant(), build_tenant()
    start(a, 3)
    start(b)
    with pytest.raises(ZeroDivisionError):
        with scope_of(a.id):
            assert count() == 3
            raise ZeroDivisionError
    assert attached() is None
    assert current() == ""
    with scope_of(b.id):
        assert count() == 1
    with pytest.raises(ScopeMissing):
        count()


def test_b06_r32_a_lazy_queryset_fails_closed_after_its_scope() -> None:
    a, b = build_tenant(), build_tenant()
    start(a, 5)
    start(b, 2)
    with scope_of(a.id):
        lazy, iterator = Task.objects.all(), Task.objects.all().iterator(chunk_size=2)
        next(iterator)
    for read in (lambda: list(lazy), lazy.count, lazy.exists, lambda: lazy.update(priority=1), lazy.first):
        with pytest.raises(ScopeMissing):
            read()
        with scope_of(b.id), pytest.raises(ScopeConflict):
            read()
    assert rows("select count(*) from workflows_task where priority <> 0") == [(0,)]


def test_b05_r33_threads_and_coroutines_keep_their_own_tenant() -> None:
    tenants = [build_tenant() for _ in range(5)]
    for number, tenant in enumerate(tenants, 1):
        start(tenant, number)
    wrong: list[object] = []

    def read(expected: int) -> None:
        with tenant_scope():
            if Task.objects.count() != expected:
                wrong.append(expected)

    def in_thread(expected: int) -> None:
        context = copy_context()
        thread = threading.Thread(target=lambda: context.run(closing, expected))
        thread.start()
        thread.join()

    def closing(expected: int) -> None:
        try:
            read(expected)
        finally:
            connection.close()

    async def request(number: int) -> None:
        tenant = tenants[number % 5]
        with attach(tenant.id):
            await asyncio.sleep(0)
            await sync_to_async(closing, thread_sensitive=False)(number % 5 + 1)
            assert attached() == tenant.id
            await asyncio.sleep(0)
            await sync_to_async(in_thread, thread_sensitive=False)(number % 5 + 1)
            assert attached() == tenant.id

    async def main() -> None:
        await asyncio.gather(*(request(number) for number in range(50)))

    asyncio.run(main())
    assert wrong == []


def test_a_bare_thread_has_no_tenant() -> None:
    tenant = build_tenant()
    seen: list[object] = []
    with attach(tenant.id):
        thread = threading.Thread(target=lambda: seen.append(attached()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_r23_a_prepared_statement_follows_the_tenant() -> None:
    a, b = build_tenant(), build_tenant()
    start(a, 2)
    start(b, 7)
    connection.ensure_connection()
    for _ in range(10):
        for tenant, expected in ((a, 2), (b, 7)):
            with scope_of(tenant.id):
                found = connection.connection.execute(TASKS, prepare=True).fetchone()
                assert found == (expected,)


def test_a_verb_inside_a_verb_opens_no_savepoint() -> None:
    tenant = build_tenant()
    sent: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        sent.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note), scope_of(tenant.id), scope_of(tenant.id), scope_of(tenant.id):
        assert count() == 0
    assert sent == [f"SET LOCAL ductor.tenant_id = '{tenant.id}'", TASKS]
    assert connection.open_verbs == 0
