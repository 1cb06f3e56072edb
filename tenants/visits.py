"""Operators who look at what is a tenant's own: a stated reason opens a tenant for a time, and each look is an act.

The rows stand in the tenant's own audit: its auditors see who of the platform read what.
"""

from uuid import UUID

from tenants.audit import record
from tenants.errors import ReasonMissing
from tenants.principals import Principal
from tenants.scope import scope_of

OPEN_SECONDS = 1800


def open_tenant(*, tenant_id: UUID, principal: Principal, reason: str) -> int:
    """Note that an operator opens a tenant; returns for how many seconds.

    Raises:
        ReasonMissing: no reason is given.
    """
    if not reason.strip():
        raise ReasonMissing
    with scope_of(tenant_id):
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="tenant.open",
            target_kind="tenant",
            target_id=str(tenant_id),
            reason=reason.strip(),
            after={"seconds": OPEN_SECONDS},
        )
    return OPEN_SECONDS


def note_visit(*, tenant_id: UUID, page: str, principal: Principal) -> None:
    """Note that an operator looked at one of a tenant's pages: its name, or the id of what it shows."""
    with scope_of(tenant_id):
        record(tenant_id=tenant_id, principal=principal, act="tenant.read", target_kind="page", target_id=page[:128])
