"""One tenant's bad row never stops another's work: batches that raise are repeated tenant by tenant (DESIGN D3)."""

import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from tenants.store import call, query
from workflows.leased import Claim, Outcome

logger = logging.getLogger(__name__)
MAX_TENANTS = 100


def claim_around_faults(queue: str, claim: Callable[[list[UUID]], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Repeat a claim that raised for one ready tenant after the other, and mark those that raise alone.

    Looks at the first 100 ready tenants of the queue; stops at the first that has work.
    """
    for (tenant_id,) in call("workflows_ready_tenants", queue, MAX_TENANTS):
        try:
            rows = claim([tenant_id])
        except DatabaseError:
            logger.exception("claim_raised_for_one_tenant", extra={"queue": queue})
            mark_fault(tenant_id=tenant_id, queue=queue, faulty=True)
        else:
            if rows:
                return rows
    return []


def finish_by_tenant(outcomes: Sequence[Outcome], finish: Callable[[list[Outcome]], set[Claim]]) -> set[Claim]:
    """Finish outcomes one tenant at a time; returns the stale claims. Who raises alone is logged and passed over."""
    parts: dict[UUID, list[Outcome]] = {}
    for outcome in outcomes:
        parts.setdefault(outcome.claim.tenant_id, []).append(outcome)
    stale: set[Claim] = set()
    for part in parts.values():
        try:
            stale |= finish(part)
        except DatabaseError:
            logger.exception("finish_raised_for_one_tenant")
    return stale


def mark_fault(*, tenant_id: UUID, queue: str, faulty: bool) -> None:
    """Set or clear the turn bit `fault` of a tenant in one queue; doctor shows it."""
    query("select workflows_mark_fault(%s, %s, %s)", [tenant_id, queue, faulty])
