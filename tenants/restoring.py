"""One tenant's rows put back: what concerns the boundary. `workflows.restoring` has what concerns its work."""

from uuid import UUID

from tenants.scope import scope_of
from tenants.store import call, query

LOCK_SECONDS = 60


def hold_still(*, tenant_id: UUID) -> None:
    """Take the tenant's latch, before any other row of it, and keep it to the transaction's end.

    Whatever is waited for in this transaction from here on, it is for at most a minute.

    Raises:
        TenantNotFrozen: admission or claims are not frozen.
        PolicyMissing: the tenant has no policy.
        Contended: somebody else held the latch for a minute.
    """
    with scope_of(tenant_id):
        query("select set_config('lock_timeout', %s, true)", [f"{LOCK_SECONDS}s"])
        call("tenants_hold_still", tenant_id)


def last_token(*, tenant_id: UUID) -> int:
    """Return the token that the tenant's last restore gave, 0 before the first one."""
    with scope_of(tenant_id):
        ((token,),) = query(
            "select coalesce(max((after ->> 'token')::bigint), 0) from tenants_act"
            " where tenant_id = %s and act = 'tenant.restore'",
            [tenant_id],
        )
    return int(token)
