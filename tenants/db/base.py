"""The connection wrapper: binds a transaction to the attached tenant (DESIGN D2)."""

import contextlib
import os
import weakref
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import Error, connections
from django.db.transaction import TransactionManagementError
from django_tenants.postgresql_backend import base as django_tenants_base
from psycopg.pq import TransactionStatus

from tenants.db.exchange import execute_whole
from tenants.errors import ScopeConflict
from tenants.scope import attached


class DatabaseWrapper(django_tenants_base.DatabaseWrapper):
    """A connection whose transactions belong to one tenant each.

    `bound_tenant` is the tenant that the open transaction has sent to PostgreSQL. It stays until the transaction ends,
    since deferred triggers run at its commit; only a rollback to a savepoint older than the binding takes it back, as
    PostgreSQL does with the setting itself. `open_verbs` counts the verbs whose scopes are open around.
    """

    schema_name: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.bound_tenant: UUID | None = None
        self.open_verbs = 0
        self._savepoints: list[str] = []
        self._bound_inside: tuple[str, ...] = ()
        self._binding = False
        super().__init__(*args, **kwargs)
        # Where django-tenants' introspection looks for tables.
        self.schema_name: str = self.settings_dict.get("SCHEMA", self.schema_name)
        _open_wrappers.add(self)

    def set_tenant(self, tenant: Any, include_public: bool = True) -> None:
        """Keep django-tenants' attributes; the search path itself is fixed per role, so nothing is sent."""
        self.tenant = tenant
        self.schema_name = tenant.schema_name
        self.include_public_schema = include_public

    def bind_tenant(self, tenant_id: UUID) -> None:
        """Bind the open transaction to `tenant_id` and tell PostgreSQL, if that is not done yet.

        Raises:
            ScopeConflict: the transaction belongs to another tenant.
        """
        if self.bound_tenant == tenant_id:
            return
        if self.bound_tenant is not None:
            raise ScopeConflict
        self._binding = True
        try:
            with self.cursor() as cursor:
                # SET takes no parameters; a UUID object can't carry anything but hex digits and hyphens. SET LOCAL
                # and not set_config(): a distributed database forwards only the former.
                cursor.execute(f"SET LOCAL ductor.tenant_id = '{tenant_id}'")
        finally:
            self._binding = False
        self.bound_tenant = tenant_id
        self._bound_inside = tuple(self._savepoints)

    def run_whole(self, tenant_id: UUID, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement as a whole transaction of `tenant_id`, in one exchange with the server; return its rows.

        What it did is committed when this returns.

        Raises:
            TransactionManagementError: a transaction is open.
            DatabaseError: the statement or the commit failed.
        """
        if self.in_atomic_block:
            raise TransactionManagementError("A whole transaction can't run inside an open one.")
        self.ensure_connection()
        self.bound_tenant = tenant_id
        try:
            with self.wrap_database_errors:
                return execute_whole(self, tenant_id, sql, params)
        finally:
            self._unbind()

    def _handle_search_path(self, cursor: Any = None) -> None:
        """Bind before the first statement of a transaction; called by django-tenants for every new cursor."""
        if self._binding or not self.in_atomic_block or self.needs_rollback:
            return
        tenant_id = attached()
        if tenant_id is not None and tenant_id != self.bound_tenant:
            self.bind_tenant(tenant_id)

    def _unbind(self) -> None:
        self.bound_tenant = None
        self._bound_inside = ()

    def _end(self) -> None:
        self._unbind()
        self._savepoints.clear()

    def _commit(self) -> Any:
        from tenants.store import translate

        try:
            if self.connection is not None and self.connection.pgconn.transaction_status == TransactionStatus.INERROR:
                # PostgreSQL would answer this COMMIT with a ROLLBACK and no error: what was said to be done is lost.
                raise TransactionManagementError(
                    "A statement of this transaction failed and its error was caught; nothing of it was kept. Catch "
                    "errors around a `transaction.atomic()` block of their own."
                )
            return super()._commit()
        except Error as error:
            # Deferred triggers speak at COMMIT: their refusal is the same typed error as an early one. Django undoes a
            # failed commit only for errors of its own; without this the transaction's on_commit hooks would stay
            # behind and run after the connection's next commit.
            typed = translate(error)
            if typed is None:
                raise
            with contextlib.suppress(Error):
                self.rollback()
            raise typed from error
        finally:
            self._end()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()
        except Error:
            # The connection is gone. Marked like this, Django leaves it; else it would connect anew in the middle of
            # the block's exit, and a server that stays away would hide what went wrong first.
            self.close()
            self.closed_in_transaction = True
            raise
        finally:
            self._end()

    def _savepoint(self, sid: str) -> None:
        super()._savepoint(sid)
        self._savepoints.append(sid)

    def _savepoint_rollback(self, sid: str) -> None:
        self._binding = True
        try:
            super()._savepoint_rollback(sid)
        finally:
            self._binding = False
        if sid in self._bound_inside:
            self._unbind()

    def close(self) -> None:
        self._end()
        super().close()


_open_wrappers: "weakref.WeakSet[DatabaseWrapper]" = weakref.WeakSet()


def forget_connections() -> None:
    """Drop every inherited connection and pool without a word to the server: they belong to the parent process.

    A pool made before a fork would hand one worker another's results.
    """
    for wrapper in list(_open_wrappers):
        wrapper.connection = None
        wrapper._end()
    DatabaseWrapper._connection_pools.clear()
    for alias in connections:
        if hasattr(connections._connections, alias):  # type: ignore[attr-defined]
            delattr(connections._connections, alias)  # type: ignore[attr-defined]


os.register_at_fork(after_in_child=forget_connections)
