"""What can be read about a task's steps without their payload: a thousand outputs may be hundreds of megabytes."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tenants.scope import scope_of
from tenants.store import loaded, query
from workflows.errors import TaskNotFound
from workflows.queries import MAX_STEPS, StepView, list_steps


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One recorded step of a task without what it put out; `error_class` is '' where it did not fail."""

    name: str
    attempt: int
    state: str
    error_class: str
    started_at: datetime
    finished_at: datetime

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return (self.finished_at - self.started_at).total_seconds()


_SUMMARIES = """
select name, attempt, state, coalesce(error ->> 'class', ''), started_at, finished_at
from workflows_step where tenant_id = %s and task_id = %s order by finished_at, name, attempt limit %s
"""
_ONE = """
select name, attempt, state, output, error, started_at, finished_at
from workflows_step where tenant_id = %s and task_id = %s and name = %s and attempt = %s
"""


def list_step_summaries(*, tenant_id: UUID, task_id: UUID) -> list[StepSummary]:
    """Return the steps of a task that have ended (at most 1,000), in that order.

    The step of a one-step workflow has no row of its own and is read from the task's.

    Raises:
        TaskNotFound: the tenant has no such task.
    """
    with scope_of(tenant_id):
        rows = query(_SUMMARIES, [tenant_id, task_id, MAX_STEPS])
        if rows:
            return [StepSummary(*row) for row in rows]
        return [_summary(step) for step in list_steps(tenant_id=tenant_id, task_id=task_id)]


def get_step(*, tenant_id: UUID, task_id: UUID, name: str, attempt: int) -> StepView:
    """Return one step of a task with what it put out.

    Raises:
        TaskNotFound: the tenant has no such task, or the task no such step.
    """
    with scope_of(tenant_id):
        rows = query(_ONE, [tenant_id, task_id, name, attempt])
        if rows:
            (found_name, found_attempt, state, output, error, started_at, finished_at) = rows[0]
            known = (found_name, found_attempt, state, loaded(output), loaded(error))
            return StepView(*known, started_at, finished_at)
        steps = list_steps(tenant_id=tenant_id, task_id=task_id)
    found = next((step for step in steps if (step.name, step.attempt) == (name, attempt)), None)
    if found is None:
        raise TaskNotFound
    return found


def _summary(step: StepView) -> StepSummary:
    error_class = str((step.error or {}).get("class", ""))
    return StepSummary(step.name, step.attempt, step.state, error_class, step.started_at, step.finished_at)
