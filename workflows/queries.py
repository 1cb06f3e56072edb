"""What can be read about work: frozen values, bounded, never a queryset."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenants.queries import check_page
from tenants.scope import scope_of
from workflows.errors import TaskNotFound
from workflows.models import Step, Task, TaskKey


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
MAX_STEPS = 1000


def get_task(*, tenant_id: UUID, task_id: UUID) -> TaskView:
    """Return one task of the tenant.

    Raises:
        TaskNotFound: the tenant has no such task.
    """
    with scope_of(tenant_id):
        row = Task.objects.filter(id=task_id).values_list(*_TASK_COLUMNS).first()
    if row is None:
        raise TaskNotFound
    return TaskView(*row)


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
    """Return the recorded steps of a task (at most 1,000), in the order in which they ended.

    Raises:
        TaskNotFound: the tenant has no such task.
    """
    with scope_of(tenant_id):
        if not Task.objects.filter(id=task_id).exists():
            raise TaskNotFound
        steps = Step.objects.filter(task_id=task_id).order_by("finished_at", "name", "attempt")
        rows = list(steps.values_list(*_STEP_COLUMNS)[:MAX_STEPS])
    return [StepView(*row) for row in rows]


def completed_outputs(*, tenant_id: UUID, task_id: UUID) -> dict[str, Any]:
    """Return the outputs of a task's completed steps, by name: what a resumed task goes on from."""
    with scope_of(tenant_id):
        steps = Step.objects.filter(task_id=task_id, state="completed")
        return dict(steps.values_list("name", "output")[:MAX_STEPS])
