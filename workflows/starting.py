"""Starting tasks: from Python by `wf.start(...)`, and by every other face through `start_tasks`.

A start joins the caller's open transaction, so that the caller's rows and the task commit together. What is wrong with
it is said before anything is written.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from tenants.errors import ScopeConflict, ScopeMissing
from tenants.principals import Principal
from tenants.queries import get_tenant
from tenants.scope import attached, scope_of
from workflows import registry
from workflows.admission import MAX_BATCH, Enqueued, NewTask, enqueue, enqueue_one
from workflows.definitions import Workflow
from workflows.errors import BatchOutOfBounds, InputInvalid, UnknownWorkflow
from workflows.handles import TaskHandle
from workflows.queries import TaskView
from workflows.registrations import ensure_definition
from workflows.schemas import dump_input, input_flaws
from workflows.values import Flaw, flaws

MAX_DELAY_SECONDS = 366 * 86_400.0
MAX_PRIORITY = 100
MAX_KEY = 128
_MAX_KNOWN = 10_000
# Whoever starts a task in one of these ways is code; the rest are faces, behind which anybody may stand.
_CODE = frozenset({"code", "system"})


@dataclass(frozen=True, slots=True)
class Start:
    """One task to start.

    Attributes:
        workflow: its workflow's name.
        version: the version, or None for the newest that this process knows.
        input: JSON, or an object of the workflow's input type; None stands for `{}`.
        key: the tenant's own name for the task; the same key starts one task only.
        queue: a queue other than the workflow's own.
        priority: -100 to 100; higher goes first within the tenant.
        due_at: not before this time (with a time zone).
        delay_seconds: not before so many seconds from now.
        id: made by `new_id()`, where code has to know the task's id before it is started; never a client's.
    """

    workflow: str
    version: int | None = None
    input: Any = None
    key: str | None = None
    queue: str | None = None
    priority: int = 0
    due_at: datetime | None = None
    delay_seconds: float | None = None
    id: UUID | None = None


def start_tasks(
    *,
    tenant_id: UUID,
    starts: Sequence[Start],
    principal: Principal,
    immediate: bool = False,
    source: str = "api",
) -> list[Enqueued]:
    """Start 1 to 1,000 tasks of one tenant, all or none, in the caller's transaction or one of their own.

    Limits are held at commit, or at once with `immediate`. The tenant's copy of each workflow's definition is stored at
    its first start there.

    Raises:
        BatchOutOfBounds: none or more than 1,000 starts.
        UnknownWorkflow: this process has no such workflow or version, it is internal, or its definition is wrong.
        InputInvalid: an input, key, priority or time is not lawful; `errors` lists {pointer, code, detail}.
        DefinitionChanged: the tenant has this version stored with another shape.
        PolicyMissing, TenantFrozen, QuotaExceeded, QueueUnknown, KeyConflict: as in `admission.enqueue`.
    """
    if not 1 <= len(starts) <= MAX_BATCH:
        raise BatchOutOfBounds(
            f"A start takes 1 to {MAX_BATCH} tasks, got {len(starts)}.", minimum=1, maximum=MAX_BATCH, seen=len(starts)
        )
    used: dict[tuple[str, int], Workflow] = {}
    tasks = [_new_task(start, index, len(starts), used, source) for index, start in enumerate(starts)]
    with scope_of(tenant_id):
        for workflow in used.values():
            _store_definition(tenant_id, workflow)
        return enqueue(tenant_id=tenant_id, tasks=tasks, principal=principal, immediate=immediate)


def start_task(*, tenant_id: UUID, start: Start, principal: Principal, source: str = "api") -> tuple[TaskView, bool]:
    """Start one task and return it; True with a new one, False with the one that its key started before.

    As `start_tasks`, in the caller's transaction or in one of its own. Where none is open and the workflow's definition
    is known to be stored, all of it is one exchange with the server.

    Raises: as `start_tasks`.
    """
    used: dict[tuple[str, int], Workflow] = {}
    task = _new_task(start, 0, 1, used, source)
    [workflow] = used.values()
    if _mark(tenant_id, workflow) in _known:
        return enqueue_one(tenant_id=tenant_id, task=task, principal=principal)
    with scope_of(tenant_id):
        _store_definition(tenant_id, workflow)
        return enqueue_one(tenant_id=tenant_id, task=task, principal=principal)


def start_handles(
    starts: Sequence[Start], *, tenant: UUID | str | None = None, principal: Principal | None = None
) -> list[TaskHandle]:
    """Start tasks in the attached tenant, or in `tenant` (its id or slug) where none is attached.

    A slug can be looked up in processes of the operator and of the owner only.

    Raises:
        ScopeConflict: a tenant is named although one is attached.
        ScopeMissing: neither is there.
        TenantNotFound: there is no tenant of this slug.
    """
    tenant_id = _tenant_of(tenant)
    actor = principal or Principal.code()
    started = start_tasks(tenant_id=tenant_id, starts=starts, principal=actor, source="code")
    return [TaskHandle(tenant_id, done.task_id, done.created) for done in started]


def _tenant_of(tenant: UUID | str | None) -> UUID:
    current = attached()
    if tenant is None:
        if current is None:
            raise ScopeMissing("No tenant is attached; name one by `start(..., tenant=...)` or attach it.")
        return current
    if current is not None:
        raise ScopeConflict("A tenant is attached here; `start()` takes no other, and none by name.")
    return tenant if isinstance(tenant, UUID) else get_tenant(slug=tenant).id


def _new_task(start: Start, index: int, count: int, used: dict[tuple[str, int], Workflow], source: str) -> NewTask:
    workflow = _workflow(start, used, source)
    value = dump_input(start.input)
    found = [
        *[{**flaw, "pointer": "/input" + flaw["pointer"]} for flaw in input_flaws(workflow.input_validator, value)],
        *_head_flaws(start),
    ]
    if found:
        place = f"/{index}" if count > 1 else ""
        errors = [{**flaw, "pointer": place + flaw["pointer"]} for flaw in found]
        raise InputInvalid(f"The start of {workflow.name} is not lawful.", errors=errors)
    return NewTask(
        workflow=workflow.name,
        version=workflow.version,
        input=value,
        key=start.key,
        queue=start.queue or workflow.queue,
        priority=start.priority,
        due_at=start.due_at,
        delay_seconds=start.delay_seconds,
        max_failures=workflow.max_failures,
        origin_source=source,
        id=start.id,
    )


def _workflow(start: Start, used: dict[tuple[str, int], Workflow], source: str) -> Workflow:
    workflow = registry.get(start.workflow, start.version)
    if workflow.internal and source not in _CODE:
        raise UnknownWorkflow(workflow=workflow.name, version=start.version)
    known = used.setdefault((workflow.name, workflow.version), workflow)
    if not known.is_sound:
        raise UnknownWorkflow(
            "This workflow's definition is wrong; `manage.py check` says what.",
            workflow=workflow.name,
            version=workflow.version,
        )
    return known


def _head_flaws(start: Start) -> list[Flaw]:
    found: list[Flaw] = []
    key = start.key
    if key is not None and (not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY or flaws(key)):
        found.append(_flaw("/key", f"a key is a text of 1 to {MAX_KEY} characters without NUL"))
    if type(start.priority) is not int or not -MAX_PRIORITY <= start.priority <= MAX_PRIORITY:
        found.append(_flaw("/priority", f"a whole number from {-MAX_PRIORITY} to {MAX_PRIORITY}"))
    if start.due_at is not None and start.delay_seconds is not None:
        found.append(_flaw("/delay_seconds", "either a time or a delay, not both"))
    if start.due_at is not None and not _lies_near(start.due_at):
        found.append(_flaw("/at", "a time with a time zone, at most 366 days away"))
    delay = start.delay_seconds
    if delay is not None and not (isinstance(delay, int | float) and 0 <= delay <= MAX_DELAY_SECONDS):
        found.append(_flaw("/delay_seconds", "seconds from 0 to 366 days"))
    return found


def _lies_near(at: datetime) -> bool:
    return at.tzinfo is not None and abs(at - datetime.now(UTC)) <= timedelta(seconds=MAX_DELAY_SECONDS)


def _flaw(pointer: str, detail: str) -> Flaw:
    return {"pointer": pointer, "code": "out_of_bounds", "detail": detail}


_Mark = tuple[UUID, str, int, str]
_known: "OrderedDict[_Mark, None]" = OrderedDict()
_latch = threading.Lock()


def _mark(tenant_id: UUID, workflow: Workflow) -> _Mark:
    return tenant_id, workflow.name, workflow.version, workflow.checksum


def _store_definition(tenant_id: UUID, workflow: Workflow) -> None:
    """Store the tenant's copy of the definition; what is known to be committed is not looked up again."""
    mark = _mark(tenant_id, workflow)
    if mark in _known:
        return
    stored = ensure_definition(
        tenant_id=tenant_id,
        name=workflow.name,
        version=workflow.version,
        checksum=workflow.checksum,
        graph=workflow.graph.as_json(),
        input_schema=workflow.input_schema,
    )
    if stored:
        transaction.on_commit(lambda: _remember(mark))


def _remember(mark: _Mark) -> None:
    with _latch:
        _known[mark] = None
        while len(_known) > _MAX_KNOWN:
            _known.popitem(last=False)
