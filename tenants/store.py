"""The one place where Python calls SQL functions and where SQLSTATE becomes a typed error."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from tenants.errors import Contended, DuctorError, Unavailable, by_sqlstate

# Connection trouble, shutdown, out of resources; read-only; ended for having been idle, or open, for too long.
_LOST = ("08", "57P", "53", "25006", "25P03", "25P04")
# Serialization failure, deadlock, lock timeout, statement timeout.
_CONTENDED = frozenset({"40001", "40P01", "55P03", "57014"})


def call(function: str, *args: Any) -> list[tuple[Any, ...]]:
    """Call the SQL function `function` with positional arguments and return its rows.

    Raises:
        DuctorError: the function refused with a registered SQLSTATE.
        Unavailable: the database can't be reached or is read-only.
        Contended: others held what it needs for too long, or met it crosswise.
    """
    placeholders = ", ".join(["%s"] * len(args))
    # The function's name is a literal of our own code; values are bound.
    return query(f"select * from {function}({placeholders})", args)  # noqa: S608


def query(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows; errors as in `call`."""
    with _translated(), connection.cursor() as cursor:
        cursor.execute(sql, params)
        # Not `description`, which makes an object of each column.
        result = cursor.pgresult
        return cursor.fetchall() if result is not None and result.nfields else []


def query_whole(tenant_id: UUID, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one statement as a whole transaction of the tenant, committed when this returns; errors as in `call`.

    One exchange with the server instead of four. No transaction may be open.
    """
    with _translated():
        return connection.run_whole(tenant_id, sql, params)  # type: ignore[attr-defined,no-any-return]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        typed = translate(error)
        if typed is None:
            raise
        raise typed from error


def loaded(value: Any) -> Any:
    """Return a jsonb column's value: Django's connections hand it over as text."""
    return json.loads(value) if isinstance(value, str | bytes) else value


def translate(error: BaseException) -> DuctorError | None:
    """Return the typed error that a database error stands for, or None where it stands for none of ours."""
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    sqlstate = getattr(cause, "sqlstate", None)
    leaf = by_sqlstate(sqlstate)
    if leaf is not None and isinstance(cause, psycopg.Error):
        return _from_diagnostics(leaf, cause)
    unreachable = isinstance(error, OperationalError | InterfaceError) and sqlstate is None
    if sqlstate in _CONTENDED:
        return Contended(retry_after=1.0)
    if unreachable or (sqlstate or "").startswith(_LOST):
        return Unavailable(retry_after=2.0)
    return None


def _from_diagnostics(leaf: type[DuctorError], cause: psycopg.Error) -> DuctorError:
    detail = cause.diag.message_detail
    fields: dict[str, Any] = json.loads(detail) if detail else {}
    retry_after = fields.pop("retry_after", None)
    message = cause.diag.message_primary or ""
    return leaf(message, retry_after=retry_after, **fields)
