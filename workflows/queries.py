"""What can be read about work: frozen values, bounded, never a queryset."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenants.queries import check_page
from tenants.scope import scope_of
from tenants.store import loaded, query
from workflows.errors import TaskNotFound
from workflows.formats import known_definition
from workflows.models import Definition, Step, Task, TaskKey
from workflows.states import State


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """One task without what its tenant put in and got out."""

    id: UUID
    key: str | None
    workflow: str
    version: int
    queue: str
    state: str
    reason: str | None
    priority: int
    attempt: int
    failures: int
    created_at: datetime
    due_at: datetime
    started_at: datetime | None
    terminal_at: datetime | None


@dataclass(frozen=True, slots=True)
class TaskView(TaskSummary):
    """One task as its tenant may see it."""

    input: Any
    output: Any
    error: dict[str, Any] | None
    progress: Any
    origin: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StepView:
    """One recorded step of a task."""

    name: str
    attempt: int
    state: str
    output: Any
    error: dict[str, Any] | None
    started_at: datetime
    finished_at: datetime


_SUMMARY_COLUMNS = [field.name for field in fields(TaskSummary)]
_TASK_COLUMNS = [field.name for field in fields(TaskView)]
_STEP_COLUMNS = [field.name for field in fields(StepView)]
_JSON = frozenset({"input", "output", "error", "progress", "origin"})
# What `as_task` takes.
TASK_COLUMNS = ", ".join(_TASK_COLUMNS)
_ONE_TASK = f"select {TASK_COLUMNS} from workflows_task where tenant_id = %s and id = %s"  # noqa: S608
MAX_STEPS = 1000


def get_task(*, tenant_id: UUID, task_id: UUID) -> TaskView:
    """Return one task of the tenant.

    Raises:
        TaskNotFound: the tenant has no such task.
    """
    with scope_of(tenant_id):
        rows = query(_ONE_TASK, [tenant_id, task_id])
    if not rows:
        raise TaskNotFound
    return as_task(rows[0])


def as_task(row: tuple[Any, ...]) -> TaskView:
    """Turn a row of `TASK_COLUMNS` into its view."""
    return TaskView(
        *(loaded(value) if name in _JSON else value for name, value in zip(_TASK_COLUMNS, row, strict=True))
    )


def list_tasks(
    *,
    tenant_id: UUID,
    state: str | None = None,
    workflow: str | None = None,
    key: str | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[TaskView]:
    """Return up to `limit` (1 to 1,000) tasks, newest first; `before` is the last id of the page before.

    Ids are UUIDv7, so their order is the order of starting.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    rows = _page(_TASK_COLUMNS, tenant_id, state, workflow, key, before, limit)
    return [TaskView(*row) for row in rows]


def list_summaries(
    *,
    tenant_id: UUID,
    state: str | None = None,
    workflow: str | None = None,
    key: str | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[TaskSummary]:
    """As `list_tasks`, without payload: a page of whole tasks may be hundreds of megabytes.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    rows = _page(_SUMMARY_COLUMNS, tenant_id, state, workflow, key, before, limit)
    return [TaskSummary(*row) for row in rows]


def _page(
    columns: list[str],
    tenant_id: UUID,
    state: str | None,
    workflow: str | None,
    key: str | None,
    before: UUID | None,
    limit: int,
) -> list[tuple[Any, ...]]:
    check_page(limit)
    with scope_of(tenant_id):
        tasks = Task.objects.all()
        if key is not None:
            tasks = tasks.filter(id__in=TaskKey.objects.filter(key=key).values("task_id"))
        if state is not None:
            tasks = tasks.filter(state=state)
        if workflow is not None:
            tasks = tasks.filter(workflow=workflow)
        if before is not None:
            tasks = tasks.filter(id__lt=before)
        return list(tasks.order_by("-id").values_list(*columns)[:limit])


def list_steps(*, tenant_id: UUID, task_id: UUID) -> list[StepView]:
    """Return the steps of a task that have ended (at most 1,000), in that order.

    The step of a one-step workflow has no row of its own and is read from the task's.

    Raises:
        TaskNotFound: the tenant has no such task.
        FormatUnknown: its definition is stored in a format of a newer Ductor.
    """
    with scope_of(tenant_id):
        task = get_task(tenant_id=tenant_id, task_id=task_id)
        steps = Step.objects.filter(task_id=task_id).order_by("finished_at", "name", "attempt")
        rows = list(steps.values_list(*_STEP_COLUMNS)[:MAX_STEPS])
        if not rows and task.state in (State.COMPLETED, State.FAILED):
            return _only_step(task)
    return [StepView(*row) for row in rows]


def _only_step(task: TaskView) -> list[StepView]:
    workflow, version = task.workflow, task.version
    stored = Definition.objects.filter(name=workflow, version=version).values_list("graph", flat=True)
    nodes = [
        n["name"] for graph in stored for n in known_definition(graph, workflow=workflow, version=version)["nodes"]
    ]
    if len(nodes) != 1 or task.started_at is None or task.terminal_at is None:
        return []
    step = StepView(nodes[0], task.attempt, task.state, task.output, task.error, task.started_at, task.terminal_at)
    return [step]
