"""Running one handler as the engine does, outside any worker."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connection

from ductor import Context, Workflow
from workflows.execution import StepFailure, execute

Handler = Callable[[Context[Any]], Any]


def run(
    handler: Handler, *, timeout: float = 5.0, context: Context[Any] | None = None
) -> tuple[Any, StepFailure | None]:
    flow = Workflow("executed", version=1)
    flow.step("only", timeout=timeout)(handler)
    return execute(flow.steps["only"], context or context_of(flow))


def context_of(flow: Workflow | None = None, **more: Any) -> Context[Any]:
    given: dict[str, Any] = {
        "input": {"n": 1},
        "tenant": UUID(int=1),
        "task_id": UUID(int=2),
        "definition": flow or Workflow("contextual", version=1),
        "step": "only",
        "attempt": 1,
        "outputs": {},
        "report": lambda progress: None,
    }
    return Context(**{**given, **more})


def failure_of(handler: Handler, **more: Any) -> StepFailure:
    output, failure = run(handler, **more)
    assert output is None
    assert failure is not None
    return failure


def one() -> int:
    """Ask the database something."""
    with connection.cursor() as cursor:
        cursor.execute("select 1")
        return int(cursor.fetchone()[0])
