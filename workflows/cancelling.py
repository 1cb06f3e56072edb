"""Cancelling: one task ended by a person, key or command."""

from uuid import UUID

from tenants.audit import record
from tenants.principals import Principal
from tenants.scope import scope_of
from tenants.store import call
from workflows.queries import TaskView, get_task


def cancel(*, tenant_id: UUID, task_id: UUID, principal: Principal, reason: str = "") -> TaskView:
    """Cancel a task wherever it stands short of its end. A worker that has it learns so at its next heartbeat.

    Raises:
        TaskNotFound: the tenant has no such task.
        TaskFinished: it has ended already.
    """
    with scope_of(tenant_id):
        ((was,),) = call("workflows_cancel_task", tenant_id, task_id, reason)
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="task.cancel",
            target_kind="task",
            target_id=str(task_id),
            reason=reason,
            before={"state": was},
            after={"state": "cancelled"},
        )
        return get_task(tenant_id=tenant_id, task_id=task_id)
