"""What a refused or lost COMMIT leaves behind on its connection, and savepoints that a caller makes by hand."""

import contextlib
import threading
from collections.abc import Callable

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError

from tenants.db.base import DatabaseWrapper
from tenants.errors import Unavailable
from tenants.queries import TenantView
from tenants.scope import attach, scope_of, tenant_scope
from tenants.store import translate
from tests.builders import assert_counters_true, build_tenant, rows, start
from tests.races import Aside
from workflows.errors import QuotaExceeded
from workflows.models import Task


def refused_at_commit(tenant: TenantView, act: Callable[[], None]) -> None:
    """Run `act` in a transaction whose early look passes and whose COMMIT is refused: another start was faster."""
    inserted, go_on = threading.Event(), threading.Event()

    def faster() -> None:
        assert inserted.wait(10)
        start(tenant)
        go_on.set()

    aside = Aside(faster)
    with transaction.atomic():
        start(tenant)
        act()
        inserted.set()
        assert go_on.wait(10)
    aside.result()


def test_hooks_of_a_refused_commit_never_run() -> None:
    tenant = build_tenant(max_outstanding=1)
    ran: list[str] = []
    with pytest.raises(QuotaExceeded):
        refused_at_commit(tenant, lambda: transaction.on_commit(lambda: ran.append("refused")))
    with scope_of(tenant.id):
        transaction.on_commit(lambda: ran.append("next"))
        assert Task.objects.count() == 1
    assert ran == ["next"]
    assert_counters_true()


def test_a_connection_lost_before_commit_is_unavailable_and_the_next_transaction_works() -> None:
    tenant = build_tenant()
    ran: list[str] = []
    with pytest.raises(Unavailable):
        with transaction.atomic():
            start(tenant)
            transaction.on_commit(lambda: ran.append("lost"))
            connection.connection.pgconn.finish()
    with scope_of(tenant.id):
        assert Task.objects.count() == 0
    assert ran == []
    start(tenant)
    assert_counters_true()


def test_a_commit_that_fails_while_the_server_stays_away_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django connects anew after a lost commit; where that fails too, the caller still learns the first failure."""
    tenant = build_tenant()

    def away(*_: object) -> None:
        raise OperationalError("connection refused")

    with pytest.raises(Unavailable):
        with transaction.atomic():
            start(tenant)
            monkeypatch.setattr(DatabaseWrapper, "get_new_connection", away)
            connection.connection.pgconn.finish()
    monkeypatch.undo()
    start(tenant)
    assert_counters_true()


def test_a_savepoint_made_by_hand_takes_the_binding_back() -> None:
    tenant = build_tenant()
    start(tenant)
    with transaction.atomic():
        sid = transaction.savepoint()
        with scope_of(tenant.id):
            assert Task.objects.count() == 1
        transaction.savepoint_rollback(sid)
        with scope_of(tenant.id):
            assert Task.objects.count() == 1


def test_a_savepoint_made_after_the_binding_leaves_it() -> None:
    tenant = build_tenant()
    start(tenant)
    with attach(tenant.id), tenant_scope():
        sid = transaction.savepoint()
        assert Task.objects.count() == 1
        transaction.savepoint_rollback(sid)
        assert connection.bound_tenant == tenant.id
        assert Task.objects.count() == 1


@pytest.mark.parametrize("code", ["55P03", "40P01", "40001", "57014", "25P03"])
def test_passing_troubles_are_unavailable_and_not_our_fault(code: str) -> None:
    error = OperationalError("trouble")
    error.__cause__ = psycopg.errors.lookup(code)("trouble")
    assert isinstance(translate(error), Unavailable)


def test_a_refusal_that_is_caught_takes_back_only_its_own_start() -> None:
    tenant = build_tenant(max_outstanding=1)
    with attach(tenant.id), tenant_scope():
        start(tenant)
        with pytest.raises(QuotaExceeded):
            start(tenant, 2)
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert_counters_true()


def test_a_refusal_that_is_caught_inside_a_verb_is_never_a_silent_loss() -> None:
    """No savepoint stands inside a verb: what goes on after the refusal must not look committed."""
    tenant = build_tenant(max_outstanding=1)
    ran: list[str] = []
    with pytest.raises(TransactionManagementError):
        with scope_of(tenant.id):
            start(tenant)
            transaction.on_commit(lambda: ran.append("committed"))
            with contextlib.suppress(QuotaExceeded):
                start(tenant, 2)
    assert ran == []
    assert rows("select count(*) from workflows_task") == [(0,)]
    start(tenant)
    assert ran == []
    assert_counters_true()


def test_a_failed_statement_that_is_caught_is_never_a_silent_loss() -> None:
    """PostgreSQL answers COMMIT of a failed transaction with ROLLBACK and no error."""
    tenant = build_tenant()
    ran: list[str] = []
    with pytest.raises(TransactionManagementError):
        with attach(tenant.id), tenant_scope():
            start(tenant)
            transaction.on_commit(lambda: ran.append("committed"))
            with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("select 1 / 0")
    assert ran == []
    assert rows("select count(*) from workflows_task") == [(0,)]
    start(tenant)
    assert_counters_true()
