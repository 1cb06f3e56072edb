"""A whole transaction in one exchange: all or nothing, bound to its tenant, and nothing stays on the connection."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.db import ProgrammingError, connection, transaction
from django.db.transaction import TransactionManagementError

from tenants.errors import PolicyMissing, Unavailable
from tenants.scope import scope_of
from tenants.store import query, query_whole
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows, start
from tests.races import Aside, counted_waits, wait_for_lock
from workflows.admission import NewTask, _document
from workflows.errors import QuotaExceeded

COUNT = "select count(*)::int from workflows_task where tenant_id = %s"
SETTING = "select coalesce(current_setting('ductor.tenant_id', true), '')"
START = "select created from workflows_enqueue_tasks(%s, %s, %s)"


def document() -> str:
    return json.dumps([_document(NewTask("order-review", 1, {"order": 1}), PRINCIPAL)])


def test_it_is_committed_when_it_returns_and_took_one_wait() -> None:
    tenant = build_tenant()
    connection.ensure_connection()
    with counted_waits() as waits:
        assert query_whole(tenant.id, START, [tenant.id, document(), True]) == [(True,)]
    assert len(waits) == 1
    assert rows(COUNT, tenant.id) == [(1,)]
    assert_counters_true()


def test_it_sees_its_tenants_rows_only_and_leaves_no_tenant_behind() -> None:
    mine, other = build_tenant(), build_tenant()
    start(mine, 2)
    start(other, 3)
    assert query_whole(mine.id, COUNT, [mine.id]) == [(2,)]
    assert query_whole(mine.id, COUNT, [other.id]) == [(0,)]
    assert query_whole(other.id, COUNT, [other.id]) == [(3,)]
    assert query(SETTING) == [("",)]
    assert connection.bound_tenant is None  # type: ignore[attr-defined]


def test_a_statement_that_fails_takes_the_commit_with_it_and_the_connection_goes_on() -> None:
    tenant, bare = build_tenant(max_outstanding=1), build_tenant(policy=False)
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    for _ in range(3):
        with pytest.raises(PolicyMissing):
            query_whole(bare.id, START, [bare.id, document(), True])
        with pytest.raises(ProgrammingError):
            query_whole(tenant.id, "select nothing_like_it(%s)", [1])
        assert query_whole(tenant.id, COUNT, [tenant.id]) == [(0,)]
        assert query(SETTING) == [("",)]
    assert query_whole(tenant.id, START, [tenant.id, document(), True]) == [(True,)]
    with pytest.raises(QuotaExceeded):
        query_whole(tenant.id, START, [tenant.id, document(), True])
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert connection.connection.info.backend_pid == pid
    assert_counters_true()


def test_a_refusal_at_commit_is_the_same_typed_error_and_keeps_nothing() -> None:
    """The early look passes beside an uncommitted start of the last place; the deferred trigger waits and refuses."""
    tenant = build_tenant(max_outstanding=1)
    with scope_of(tenant.id):
        query(START, [tenant.id, document(), True])
        late = Aside(lambda: query_whole(tenant.id, START, [tenant.id, document(), False]))
        wait_for_lock()
    with pytest.raises(QuotaExceeded):
        late.result()
    assert rows(COUNT, tenant.id) == [(1,)]
    assert_counters_true()


def test_a_lost_connection_is_unavailable_and_the_next_one_works() -> None:
    tenant = build_tenant()
    with pytest.raises(Unavailable):
        query_whole(tenant.id, "select pg_terminate_backend(pg_backend_pid()), pg_sleep(5)")
    connection.close_if_unusable_or_obsolete()
    assert query_whole(tenant.id, START, [tenant.id, document(), True]) == [(True,)]


def test_an_open_transaction_is_not_committed_from_inside() -> None:
    tenant = build_tenant()
    with transaction.atomic(), pytest.raises(TransactionManagementError):
        query_whole(tenant.id, START, [tenant.id, document(), True])
    assert rows(COUNT, tenant.id) == [(0,)]


def test_values_are_bound_and_never_part_of_the_text() -> None:
    tenant, text = build_tenant(), f"it's 'quoted' \\ {uuid4()} $1"
    assert query_whole(tenant.id, "select %s::text, %s::int, %s::text", [text, 7, None]) == [(text, 7, None)]


def test_execute_wrappers_see_the_statement_once() -> None:
    tenant = build_tenant()
    seen: list[tuple[str, Any]] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        seen.append((sql, context["connection"].bound_tenant))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        query_whole(tenant.id, COUNT, [tenant.id])
    assert seen == [(COUNT, tenant.id)]
