"""Tasks and steps as JSON documents. A list holds no inputs and outputs: a page of them could be 100 MB."""

from collections.abc import Sequence
from typing import Any

from tenants.api.documents import timestamp
from workflows.queries import StepView, TaskSummary, TaskView


def task_summary(task: TaskSummary) -> dict[str, Any]:
    """Return a task as it stands in a list."""
    return {
        "id": str(task.id),
        "key": task.key,
        "workflow": task.workflow,
        "version": task.version,
        "queue": task.queue,
        "priority": task.priority,
        "state": task.state,
        "reason": task.reason,
        "attempt": task.attempt,
        "failures": task.failures,
        "created_at": timestamp(task.created_at),
        "due_at": timestamp(task.due_at),
        "started_at": timestamp(task.started_at),
        "terminal_at": timestamp(task.terminal_at),
    }


def task_document(task: TaskView, steps: Sequence[StepView] | None = None) -> dict[str, Any]:
    """Return a task with all that its tenant may see of it; `steps` as far as they were read."""
    document = task_summary(task) | {
        "input": task.input,
        "output": task.output,
        "error": task.error,
        "progress": task.progress,
        "origin": task.origin,
    }
    if steps is not None:
        document["steps"] = [_step_document(step) for step in steps]
    return document


def _step_document(step: StepView) -> dict[str, Any]:
    return {
        "name": step.name,
        "attempt": step.attempt,
        "state": step.state,
        "output": step.output,
        "error": step.error,
        "started_at": timestamp(step.started_at),
        "finished_at": timestamp(step.finished_at),
    }
