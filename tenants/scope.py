"""Attached tenant and scope (DESIGN D2).

`attach()` says whose request or tick this is; `tenant_scope()` opens a transaction of that tenant. The attachment is
a ContextVar: copied into coroutines and into threads that copy their context, and never shared between two of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.db import transaction

from tenants.errors import ScopeConflict, ScopeMissing

_attached: ContextVar[UUID | None] = ContextVar("ductor_attached_tenant", default=None)


def attached() -> UUID | None:
    """Return the attached tenant's id, or None."""
    return _attached.get()


def require_attached() -> UUID:
    """Return the attached tenant's id.

    Raises:
        ScopeMissing: no tenant is attached.
    """
    tenant_id = _attached.get()
    if tenant_id is None:
        raise ScopeMissing
    return tenant_id


@contextmanager
def attach(tenant_id: UUID) -> Iterator[None]:
    """Attach `tenant_id` for the block; the same tenant may be attached again inside.

    Raises:
        ScopeConflict: another tenant is attached.
    """
    if not isinstance(tenant_id, UUID):
        raise ScopeMissing(f"attach() takes a tenant's UUID, got {type(tenant_id).__name__}.")
    if _attached.get() not in (None, tenant_id):
        raise ScopeConflict
    token = _attached.set(tenant_id)
    try:
        yield
    finally:
        _attached.reset(token)


@contextmanager
def tenant_scope() -> Iterator[UUID]:
    """Open a transaction of the attached tenant, or join the open one; yields the tenant's id.

    Raises:
        ScopeMissing: no tenant is attached.
        ScopeConflict: the open transaction is bound to another tenant.
    """
    tenant_id = require_attached()
    with transaction.atomic():
        transaction.get_connection().bind_tenant(tenant_id)  # type: ignore[attr-defined]
        yield tenant_id


@contextmanager
def scope_of(tenant_id: UUID) -> Iterator[UUID]:
    """Attach `tenant_id` (or find it attached) and open its scope: how every verb begins.

    A verb inside a verb's scope opens no savepoint of its own: the outer one is undone whole or not at all.

    Raises:
        ScopeConflict: another tenant is attached; a verb never acts for two tenants.
    """
    connection: Any = transaction.get_connection()
    with attach(tenant_id):
        if connection.open_verbs and connection.bound_tenant == tenant_id:
            yield tenant_id
            return
        with tenant_scope():
            connection.open_verbs += 1
            try:
                yield tenant_id
            finally:
                connection.open_verbs -= 1
