"""Atomic steps: the handler's rows and the step's record commit together, once, under the claim (DESIGN D7).

The order is the point. The handler runs first; then SET CONSTRAINTS ALL IMMEDIATE lets every deferred trigger speak,
the admission's among them, which takes the tenant's load row; the record comes last and takes the load row, then the
task row. The other way round would deadlock with a cancel.
"""

import logging
from collections.abc import Callable
from typing import Any

from django.db import Error as DatabaseFailure

from tenants.errors import Contended, DuctorError
from tenants.scope import tenant_scope
from tenants.store import query
from workflows import claims, crashpoints
from workflows.claims import StepRecord
from workflows.context import Context, cancel
from workflows.control import Cancelled, RetryLater
from workflows.definitions import Step
from workflows.execution import Result, StepFailure, execute
from workflows.step_threads import GRACE_SECONDS

HELD_PAUSE_SECONDS = 1.0

logger = logging.getLogger("ductor.engine")


class _Undo(Exception):
    """Rolls the step's transaction back."""


def execute_atomic(step: Step, context: Context[Any], record: Callable[[Any], StepRecord]) -> Result:
    """Run an atomic step in a transaction of the attached tenant; a failure or a lost claim takes all of it back.

    Returns:
        As `execute`; `lost` also where the database did not confirm the commit: then only the lease settles it.
    """

    def finish(output: Any) -> None:
        try:
            query("set constraints all immediate")
            crashpoints.reach("before_record")
            lost = claims.record_steps(records=[record(output)], with_load=True)
        except Contended as held:
            # That others hold the tenant for long is no failure of the handler: its rows go back and it runs again.
            raise RetryLater(HELD_PAUSE_SECONDS) from held
        if lost:
            cancel(context, Cancelled)
            raise Cancelled

    result: Result = (None, StepFailure("lost", {}))
    try:
        with tenant_scope():
            # The role's own limit is for forgotten transactions; here the step's timeout says how long may be too long.
            idle = f"{int((step.timeout_seconds + GRACE_SECONDS) * 1000)}ms"
            query("select set_config('idle_in_transaction_session_timeout', %s, true)", [idle])
            result = execute(step, context, finish=finish)
            if result[1] is not None:
                raise _Undo
    except _Undo:
        return result
    except (DatabaseFailure, DuctorError) as error:
        logger.warning("atomic_step_unconfirmed", extra={"task_id": str(context.task_id), "why": type(error).__name__})
        return None, StepFailure("lost", {})
    crashpoints.reach("after_record")
    return result
