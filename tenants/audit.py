"""Acts are audited (DESIGN D17): one immutable row in the transaction of the change itself."""

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tenants.identity import SYSTEM_TENANT_ID, new_id
from tenants.principals import Principal
from tenants.scope import scope_of
from tenants.store import query

_INSERT = """
insert into tenants_act
  (tenant_id, id, at, principal, act, target_kind, target_id, reason, request_id, before, after)
values (%s, %s, ductor_now(), %s, %s, %s, %s, %s, %s, %s, %s)
"""


def record(
    *,
    tenant_id: UUID,
    principal: Principal,
    act: str,
    target_kind: str,
    target_id: str,
    reason: str = "",
    before: Any = None,
    after: Any = None,
) -> None:
    """Write the row of one act; call it inside the scope in which the act itself is done.

    `before` and `after` are JSON values, or None.
    """
    query(
        _INSERT,
        [
            tenant_id,
            new_id(),
            Jsonb(principal.as_json()),
            act,
            target_kind,
            target_id,
            reason[:1000],
            principal.request_id,
            None if before is None else Jsonb(before),
            None if after is None else Jsonb(after),
        ],
    )


def record_system(*, principal: Principal, act: str, target_kind: str, target_id: str, after: Any = None) -> None:
    """Write the row of an act on the platform itself, which belongs to the system tenant."""
    with scope_of(SYSTEM_TENANT_ID):
        record(
            tenant_id=SYSTEM_TENANT_ID,
            principal=principal,
            act=act,
            target_kind=target_kind,
            target_id=target_id,
            after=after,
        )
