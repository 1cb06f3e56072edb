"""Refuses bare queries: a statement on a tenant table needs a bound tenant, unless the role may see all.

PostgreSQL alone would answer such a statement with no rows, and "no rows" reads like an answer.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from tenants.db.grants import declared
from tenants.db.roles import sees_all
from tenants.errors import ScopeMissing
from tenants.managers import TenantRow
from tenants.scope import attached, tenant_scope


@functools.cache
def tenant_tables() -> frozenset[str]:
    """Return the names of all tables whose rows belong to tenants."""
    return frozenset(model._meta.db_table for model in apps.get_models() if issubclass(model, TenantRow))


@functools.cache
def adopted_tables() -> frozenset[str]:
    """Return the names of the libraries' tables that are under row security; their statements name no tenant."""
    return frozenset(declared().adopted)


@functools.cache
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    longest_first = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.compile(rf'(?<![\w.])"?(?:{longest_first})"?(?!\w)', re.IGNORECASE)


def names_tenant_table(sql: str) -> bool:
    """Say whether a statement mentions a tenant table of our own."""
    return _pattern(tenant_tables()).search(sql) is not None


def names_adopted_table(sql: str) -> bool:
    """Say whether a statement mentions a library's table that is under row security."""
    return bool(adopted_tables()) and _pattern(adopted_tables()).search(sql) is not None


def refuse_bare(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute wrapper on every connection.

    A bare statement on an adopted table is a scope of its own where a tenant is attached: the library that sends it
    knows nothing of scopes.

    Raises:
        ScopeMissing: the statement names a tenant table and no tenant is bound to the transaction.
    """
    connection = context["connection"]
    if connection.bound_tenant is not None:
        return execute(sql, params, many, context)
    own, adopted = names_tenant_table(str(sql)), names_adopted_table(str(sql))
    if adopted and not own and attached() is not None and not connection.in_atomic_block:
        with tenant_scope():
            return execute(sql, params, many, context)
    if (own or adopted) and not sees_all(connection):
        raise ScopeMissing(
            "A query on a tenant table ran outside a scope. Open `with attach(tenant_id), tenant_scope():` around the "
            "evaluation of the query, not only around its making."
        )
    return execute(sql, params, many, context)


def _guard_new_connection(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if refuse_bare not in connection.execute_wrappers:
        connection.execute_wrappers.append(refuse_bare)


def install() -> None:
    """Guard every connection of this process."""
    connection_created.connect(_guard_new_connection, dispatch_uid="ductor-guard")
