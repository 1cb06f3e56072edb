"""One tenant's trouble never stops another's work (DESIGN D3).

What raises is repeated tenant by tenant, and who is held by somebody else is waited for without keeping others waiting.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError

from tenants.audit import record
from tenants.errors import Contended
from tenants.principals import Principal
from tenants.queues import list_queues
from tenants.scope import scope_of
from tenants.store import call, query
from workflows.errors import TurnNotFound
from workflows.leased import Claim, Outcome

logger = logging.getLogger(__name__)
MAX_TENANTS = 100
# How long finishing and releasing is patient with held tenants; well below a lease, so that heartbeats are not missed.
PATIENCE_SECONDS = 20.0

Item = TypeVar("Item", Claim, Outcome)


def claim_around_faults(queue: str, claim: Callable[[list[UUID]], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Repeat what a claim does, and raised for all, for one tenant after the other; mark those that raise alone.

    Looks at the first 100 tenants that have something due, expired or ready; stops at the first that has work.
    """
    _promote_around_faults(queue)
    _recover_around_faults(queue, MAX_TENANTS)
    for tenant_id in _tenants(queue, "ready"):
        try:
            rows = claim([tenant_id])
        except DatabaseError:
            _mark(tenant_id, queue, "claim_raised_for_one_tenant")
        else:
            if rows:
                return rows
    return []


def recover_around_faults(limit: int) -> int:
    """Repeat a recovery that raised, queue by queue, and tenant by tenant where it raises again; returns how many."""
    return sum(_recover_around_faults(queue.name, limit) for queue in list_queues())


def _promote_around_faults(queue: str) -> None:
    try:
        call("workflows_promote_due", queue)
    except DatabaseError:
        for tenant_id in _tenants(queue, "due"):
            try:
                call("workflows_promote_due", queue, [tenant_id])
            except DatabaseError:
                _mark(tenant_id, queue, "promotion_raised_for_one_tenant")


def _recover_around_faults(queue: str, limit: int) -> int:
    count = 0
    try:
        ((found,),) = call("workflows_recover_tasks", limit, queue)
        return found or 0
    except DatabaseError:
        for tenant_id in _tenants(queue, "expired"):
            try:
                ((found,),) = call("workflows_recover_tasks", limit, queue, [tenant_id])
                count += found or 0
            except DatabaseError:
                _mark(tenant_id, queue, "recovery_raised_for_one_tenant")
    return count


def _tenants(queue: str, what: str) -> list[UUID]:
    return [tenant_id for (tenant_id,) in call("workflows_ready_tenants", queue, what, MAX_TENANTS)]


def _mark(tenant_id: UUID, queue: str, why: str) -> None:
    logger.exception(why, extra={"queue": queue})
    mark_fault(tenant_id=tenant_id, queue=queue, faulty=True)


def settle(items: Sequence[Item], act: Callable[[Sequence[Item], bool], tuple[set[Claim], list[Item]]]) -> set[Claim]:
    """End or give back leased work of many tenants; returns the stale claims.

    Args:
        items: claims or outcomes.
        act: does it for some of them and answers the stale claims, and the items whose tenant somebody else held; its
            second argument says whether to wait for those (a moment, then it raises Contended).

    What raises is made smaller, down to the one item that raises alone: that one is logged and passed over, and its
    lease settles it. So it is with tenants that are still held when the patience is over.
    """
    stale: set[Claim] = set()

    def attempt(part: Sequence[Item], wait: bool) -> list[list[Item]]:
        try:
            gone, skipped = act(part, wait)
        except Contended:
            return _by_tenant(part)
        except DatabaseError:
            if len(part) == 1:
                logger.exception("an_outcome_raised_alone")
                return []
            return [rest for smaller in _smaller(part) for rest in attempt(smaller, wait)]
        stale.update(gone)
        return _by_tenant(skipped)

    until = time.monotonic() + PATIENCE_SECONDS
    left = attempt(items, False)
    while left and time.monotonic() < until:
        first, others = left[0], left[1:]
        left = [rest for other in others for rest in attempt(other, False)]
        left += attempt(first, True)
    if left:
        logger.error("held_tenants_given_up", extra={"tenants": len(left)})
    return stale


def _smaller(items: Sequence[Item]) -> list[list[Item]]:
    parts = _by_tenant(items)
    return parts if len(parts) > 1 else [[item] for item in items]


def _by_tenant(items: Sequence[Item]) -> list[list[Item]]:
    parts: dict[UUID, list[Item]] = {}
    for item in items:
        claim = item if isinstance(item, Claim) else item.claim
        parts.setdefault(claim.tenant_id, []).append(item)
    return list(parts.values())


def clear_fault(*, tenant_id: UUID, queue: str, principal: Principal, reason: str = "") -> None:
    """Let a tenant's turn run again that was stopped by a fault: an operator's act, after the cause is mended.

    Raises:
        TurnNotFound: the tenant has no turn in this queue.
    """
    with scope_of(tenant_id):
        if not query("select 1 from tenants_turn where tenant_id = %s and queue = %s", [tenant_id, queue]):
            raise TurnNotFound(f"The tenant has no work in a queue {queue!r}.")
        mark_fault(tenant_id=tenant_id, queue=queue, faulty=False)
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="turn.clear_fault",
            target_kind="turn",
            target_id=queue,
            reason=reason,
        )


def mark_fault(*, tenant_id: UUID, queue: str, faulty: bool) -> None:
    """Set or clear the turn bit `fault` of a tenant in one queue; doctor shows it."""
    query("select workflows_mark_fault(%s, %s, %s)", [tenant_id, queue, faulty])
