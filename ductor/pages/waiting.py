"""Why a task is not running: one sentence out of its state and its tenant's policy."""

from datetime import UTC, datetime
from uuid import UUID

from tenants.errors import PolicyMissing
from tenants.policy import frozen_names
from tenants.queries import get_policy
from workflows.queries import TaskView
from workflows.states import State


def explain(task: TaskView, tenant_id: UUID) -> str:
    """Return what keeps a task from running, or ''."""
    if task.state == State.WAITING:
        if task.due_at <= datetime.now(UTC):
            return "It has become due and will be ready at the next claim."
        again = f" Failures so far: {task.failures}." if task.failures else ""
        return f"Not due before {task.due_at:%Y-%m-%d %H:%M:%S} UTC.{again}"
    return _why_queued(tenant_id) if task.state == State.QUEUED else ""


def _why_queued(tenant_id: UUID) -> str:
    try:
        policy = get_policy(tenant_id=tenant_id)
    except PolicyMissing:
        return "The operator has set no policy, so nothing runs."
    if "claims" in frozen_names(policy.frozen):
        return "The operator has frozen this tenant: nothing is claimed until that is lifted."
    limit = policy.effective_max_leases
    if policy.leased >= limit:
        return f"All {limit} leases of this tenant are in use; it goes on when one of them ends."
    return "It is ready and is claimed in its turn, as soon as a worker of its queue is free."
