"""The system tenant's own work: a sweep that takes back tasks whose lease ran out and that no claim has met."""

from typing import Any

from django.db import Error as DatabaseFailure

from tenants.errors import Unavailable
from tenants.identity import SYSTEM_QUEUE, SYSTEM_TENANT_ID
from tenants.principals import Principal
from tenants.scope import scope_of
from workflows.context import Context
from workflows.control import RetryLater
from workflows.definitions import Workflow
from workflows.queries import get_task
from workflows.recovery import recover
from workflows.retries import MAX_ATTEMPTS
from workflows.starting import Start, start_tasks
from workflows.states import TERMINAL

SWEEP_SECONDS = 15.0
SWEEP_KEY = "recovery-sweep"
_MAX_GENERATIONS = 1_000

sweep = Workflow("recovery-sweep", version=1, queue=SYSTEM_QUEUE, max_failures=MAX_ATTEMPTS, internal=True)


@sweep.step(name="recover", timeout="1m")
def recover_expired(ctx: Context[Any]) -> None:
    """Take back what has expired, and come again: one task, for ever, that never fails by itself."""
    try:
        recover(limit=1000)
    except (DatabaseFailure, Unavailable):
        ctx.log.warning("recovery_sweep_failed")
    raise RetryLater(SWEEP_SECONDS)


def ensure_running(flow: Workflow = sweep, key: str = SWEEP_KEY) -> None:
    """Start a perpetual task of the system if it does not run: idempotent, from any number of processes at once.

    Its key carries a generation, since a task that was cancelled or ended failed keeps its key.

    Raises:
        Unavailable: the database can't be reached.
    """
    with scope_of(SYSTEM_TENANT_ID):
        for generation in range(1, _MAX_GENERATIONS + 1):
            start = Start(flow.name, flow.version, {}, key=f"{key}-{generation}")
            [started] = start_tasks(
                tenant_id=SYSTEM_TENANT_ID,
                starts=[start],
                principal=Principal.system(),
                immediate=True,
                source="system",
            )
            if started.created:
                return
            task = get_task(tenant_id=SYSTEM_TENANT_ID, task_id=started.task_id)
            if task.state not in TERMINAL:
                return
