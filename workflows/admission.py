"""Admission: the verb that lets tasks in, or refuses them with a typed answer (DESIGN D4)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from tenants.identity import new_id
from tenants.principals import Principal
from tenants.scope import attach, scope_of
from tenants.store import call, query, query_whole
from workflows.errors import BatchOutOfBounds
from workflows.queries import TASK_COLUMNS, TaskView, as_task

MAX_BATCH = 1000
_START_ONE = f"select {TASK_COLUMNS} from workflows_start_task(%s, %s)"  # noqa: S608


@dataclass(frozen=True, slots=True)
class NewTask:
    """One task to start: which workflow and version, on what input, and when (now, after a delay, or at a time)."""

    workflow: str
    version: int
    input: Any
    key: str | None = None
    queue: str = "default"
    priority: int = 0
    due_at: datetime | None = None
    delay_seconds: float | None = None
    max_failures: int = 3
    origin_source: str = "code"
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of one start: the task's id, and False where the key had started it before."""

    task_id: UUID
    created: bool


def enqueue(
    *, tenant_id: UUID, tasks: Sequence[NewTask], principal: Principal, immediate: bool = False
) -> list[Enqueued]:
    """Start 1 to 1,000 tasks in one transaction, or join the caller's; answers in the order given.

    The limits are held when the transaction commits, or at once where `immediate` is set. Nothing is admitted by half:
    any refusal takes back the whole call.

    Raises:
        BatchOutOfBounds: fewer than 1 or more than 1,000 tasks.
        PolicyMissing, TenantFrozen, QuotaExceeded: the tenant may not start that many now.
        QueueUnknown: a task names a queue that is not there.
        KeyConflict: a key was used for a task with other content.
    """
    if not 1 <= len(tasks) <= MAX_BATCH:
        raise BatchOutOfBounds(
            f"A start takes 1 to {MAX_BATCH} tasks, got {len(tasks)}.", minimum=1, maximum=MAX_BATCH, seen=len(tasks)
        )
    documents = [_document(task, principal) for task in tasks]
    with scope_of(tenant_id):
        rows = call("workflows_enqueue_tasks", tenant_id, json.dumps(documents), immediate)
    return [Enqueued(task_id, created) for task_id, created in rows]


def enqueue_one(*, tenant_id: UUID, task: NewTask, principal: Principal) -> tuple[TaskView, bool]:
    """Start one task and return it as its tenant may see it; True where it was made here, False where its key had.

    Joins the caller's transaction. Where none is open it is a transaction of its own in one exchange with the server,
    and committed when this returns.

    Raises: as `enqueue`.
    """
    document = _document(task, principal)
    parameters = [tenant_id, json.dumps(document)]
    with attach(tenant_id):
        if connection.in_atomic_block:
            with scope_of(tenant_id):
                rows = query(_START_ONE, parameters)
        else:
            rows = query_whole(tenant_id, _START_ONE, parameters)
    view = as_task(rows[0])
    return view, str(view.id) == document["id"]


def _document(task: NewTask, principal: Principal) -> dict[str, Any]:
    return {
        "id": str(task.id or new_id()),
        "key": task.key,
        "content_hash": content_hash(task) if task.key is not None else None,
        "workflow": task.workflow,
        "version": task.version,
        "queue": task.queue,
        "priority": task.priority,
        "due_at": task.due_at.isoformat() if task.due_at else None,
        "delay_seconds": task.delay_seconds,
        "input": task.input,
        "max_failures": task.max_failures,
        "origin": {
            "source": task.origin_source,
            "principal": principal.as_json(),
            "request_id": principal.request_id,
        },
    }


def content_hash(task: NewTask) -> str:
    """Return the SHA-256 of what a key is bound to: workflow, version, queue, priority, due time, delay and input."""
    content = [
        task.workflow,
        task.version,
        task.queue,
        task.priority,
        task.due_at.isoformat() if task.due_at else None,
        task.delay_seconds,
        task.input,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
