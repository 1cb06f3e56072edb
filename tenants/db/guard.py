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

from tenants.db.roles import sees_all
from tenants.errors import ScopeMissing
from tenants.managers import TenantRow


@functools.cache
def tenant_tables() -> frozenset[str]:
    """Return the names of all tables whose rows belong to tenants."""
    return frozenset(model._meta.db_table for model in apps.get_models() if issubclass(model, TenantRow))


@functools.cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, tenant_tables()), key=len, reverse=True))
    return re.compile(rf'(?<![\w.])"?(?:{names})"?(?!\w)', re.IGNORECASE)


def names_tenant_table(sql: str) -> bool:
    """Say whether a statement mentions a tenant table."""
    return _pattern().search(sql) is not None


def refuse_bare(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute wrapper on every connection.

    Raises:
        ScopeMissing: the statement names a tenant table and no tenant is bound to the transaction.
    """
    connection = context["connection"]
    if connection.bound_tenant is None and not sees_all(connection) and names_tenant_table(str(sql)):
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
