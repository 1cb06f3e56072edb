"""Claims: taking work under a lease, keeping it, and giving it back (DESIGN D5, D6).

A claim is a value: whoever writes under ownership hands it over, and the SQL compares tenant, task, worker, token and
lease in the statement that writes. What no longer holds is listed as stale and nothing of it was written.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction

from tenants.store import call, loaded
from workflows.errors import BatchOutOfBounds
from workflows.faults import claim_around_faults, settle
from workflows.leased import Beat, Claim, ClaimedTask, Outcome, StepRecord, Taken

__all__ = [
    "Beat",
    "Claim",
    "ClaimedTask",
    "Outcome",
    "StepRecord",
    "Taken",
    "finish",
    "heartbeat",
    "record_steps",
    "release",
    "take",
]

logger = logging.getLogger(__name__)
MAX_CLAIM = 500
MAX_BATCH = 1000


def take(*, worker: str, queue: str, limit: int, per_tenant: int = 50, lease_seconds: float = 60.0) -> Taken:
    """Claim up to `limit` (1 to 500) tasks of one queue in tenant-fair order, each leased for `lease_seconds`.

    A tenant gives at most `per_tenant` (1 to 50) of them. Promotes what became due and takes
    back expired leases on the way. A batch that raises is repeated tenant by tenant, and a tenant that raises alone is
    marked (turn bit `fault`), so that one bad row stops nobody else.

    Raises:
        BatchOutOfBounds: `limit` or `per_tenant` is out of its bounds.
        Unavailable: the database can't be reached.
    """
    try:
        rows = _claim(worker, queue, limit, per_tenant, lease_seconds, None)
    except DatabaseError:
        rows = claim_around_faults(queue, lambda only: _claim(worker, queue, limit, per_tenant, lease_seconds, only))
    if rows:
        return Taken([_claimed(row, worker, queue) for row in rows])
    ((next_due_at,),) = call("workflows_next_due", queue)
    return Taken([], next_due_at)


def _claim(
    worker: str, queue: str, limit: int, per_tenant: int, lease_seconds: float, only: list[UUID] | None
) -> list[tuple[Any, ...]]:
    return call("workflows_claim_tasks", worker, queue, limit, per_tenant, lease_seconds, only)


def _claimed(row: tuple[Any, ...], worker: str, queue: str) -> ClaimedTask:
    tenant_id, task_id, token, workflow, version, key, payload, attempt, failures, most, alone, progress, written = row
    return ClaimedTask(
        claim=Claim(tenant_id, task_id, worker, token),
        workflow=workflow,
        version=version,
        queue=queue,
        key=key,
        input=loaded(payload),
        attempt=attempt,
        failures=failures,
        max_failures=most,
        alone=alone,
        progress=loaded(progress),
        format=written,
    )


def release(*, claims: Sequence[Claim], delay_seconds: float = 0, reason: str = "") -> set[Claim]:
    """Give tasks back that were not started, at no cost and with the attempt given back; returns the stale claims.

    Tenants that somebody else holds are waited for, a while, without keeping the others waiting.

    Raises:
        BatchOutOfBounds: not 1 to 1,000 claims, or claims of several workers.
    """
    worker = _one_worker(claims)

    def act(some: Sequence[Claim], wait: bool) -> tuple[set[Claim], list[Claim]]:
        rows = call("workflows_release_tasks", worker, _json(some), delay_seconds, reason, wait)
        stale, skipped = _by_result(some, rows)
        return stale, [claim for claim in some if claim in skipped]

    return settle(claims, act)


def heartbeat(
    *, claims: Sequence[Claim], lease_seconds: float = 60.0, progress: Mapping[Claim, Any] | None = None
) -> dict[Claim, Beat]:
    """Extend leases (never shortening one) and store progress; says for each claim how it went.

    `skipped` means that the row was locked just then: beat again. Only `lost` is stale.

    Raises:
        BatchOutOfBounds: not 1 to 1,000 claims, or claims of several workers.
    """
    worker = _one_worker(claims)
    known = progress or {}
    beats = json.dumps([{**claim.as_json(), "progress": known.get(claim)} for claim in claims])
    try:
        rows = call("workflows_heartbeat_tasks", worker, beats, lease_seconds)
    except DatabaseError:
        if not known:
            raise
        # What can't be stored of one task's progress must not cost the others their leases.
        logger.exception("progress_was_left_out")
        return heartbeat(claims=claims, lease_seconds=lease_seconds)
    results: dict[tuple[UUID, UUID], Beat] = {(tenant_id, task_id): result for tenant_id, task_id, result in rows}
    return {claim: results[claim.tenant_id, claim.task_id] for claim in claims}


def record_steps(*, records: Sequence[StepRecord], with_load: bool = False) -> set[Claim]:
    """Record steps of tasks that stay leased; returns the claims that were lost, of which nothing was written.

    A batch that raises is repeated task by task; one that raises alone counts as lost: its lease settles it.

    `with_load` is for a step whose record shares a transaction with other rows of the tenant: it takes the tenant's
    load row first, as the lock order asks.

    Raises:
        BatchOutOfBounds: the records are of none or more than 1,000 tasks, or of several workers.
    """
    by_claim: dict[Claim, list[dict[str, Any]]] = {}
    for record in records:
        by_claim.setdefault(record.claim, []).append(record.as_json())
    worker = _one_worker(list(by_claim))
    try:
        return _record(worker, by_claim, with_load)
    except DatabaseError:
        if with_load:
            raise
    lost: set[Claim] = set()
    for claim, steps in by_claim.items():
        try:
            lost |= _record(worker, {claim: steps}, with_load)
        except DatabaseError:
            logger.exception("a_record_raised_alone")
            lost.add(claim)
    return lost


def _record(worker: str, by_claim: Mapping[Claim, list[dict[str, Any]]], with_load: bool) -> set[Claim]:
    documents = json.dumps([{**claim.as_json(), "steps": steps} for claim, steps in by_claim.items()])
    rows = call("workflows_record_steps", worker, documents, with_load)
    pairs = {(tenant_id, task_id) for tenant_id, task_id in rows}
    return {claim for claim in by_claim if (claim.tenant_id, claim.task_id) in pairs}


def finish(*, outcomes: Sequence[Outcome]) -> set[Claim]:
    """End ticks in one transaction; returns the stale claims, whose late outcome is harmless and not written.

    Tenants that somebody else holds are waited for, a while, without keeping the others waiting. A batch that raises is
    repeated in smaller parts, so that one bad row loses no other outcome.

    Raises:
        BatchOutOfBounds: not 1 to 1,000 outcomes, or outcomes of several workers.
        Unavailable: the database can't be reached, or the commit's outcome is unknown; the leases settle it.
    """
    worker = _one_worker([outcome.claim for outcome in outcomes])

    def act(some: Sequence[Outcome], wait: bool) -> tuple[set[Claim], list[Outcome]]:
        documents = json.dumps([outcome.as_json() for outcome in some])
        with transaction.atomic():
            rows = call("workflows_finish_tasks", worker, documents, wait)
        stale, skipped = _by_result([outcome.claim for outcome in some], rows)
        return stale, [outcome for outcome in some if outcome.claim in skipped]

    return settle(outcomes, act)


def _by_result(claims: Iterable[Claim], rows: list[tuple[Any, ...]]) -> tuple[set[Claim], set[Claim]]:
    """Return the claims that are stale, and those that were skipped since their tenant was held."""
    results = {(tenant_id, task_id): result for tenant_id, task_id, result in rows}
    by_result: dict[str, set[Claim]] = {"stale": set(), "skipped": set()}
    for claim in claims:
        by_result.get(results.get((claim.tenant_id, claim.task_id), ""), set()).add(claim)
    return by_result["stale"], by_result["skipped"]


def _one_worker(claims: Sequence[Claim]) -> str:
    if not 1 <= len(claims) <= MAX_BATCH:
        raise BatchOutOfBounds(
            f"A batch holds 1 to {MAX_BATCH} claims, got {len(claims)}.", minimum=1, maximum=MAX_BATCH, seen=len(claims)
        )
    workers = {claim.worker for claim in claims}
    if len(workers) != 1:
        raise BatchOutOfBounds("A batch holds the claims of one worker only.")
    return workers.pop()


def _json(claims: Iterable[Claim]) -> str:
    return json.dumps([claim.as_json() for claim in claims])
