"""One tenant's tasks put back from a file: what makes staged rows work again (see `tenants.archives`)."""

from dataclasses import dataclass
from uuid import UUID

from tenants.scope import scope_of
from tenants.store import call, query


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """What putting the file's tasks in the place of the live ones would mean for them.

    `gone` are live and not in the file; `back` are in the file and not live; `again` have ended since the backup and
    would run again; `leased` were running at the backup and come back queued.
    """

    gone: int
    back: int
    again: int
    leased: int


def compare_tasks(*, tenant_id: UUID) -> TaskChanges:
    """Compare a tenant's staged tasks with the live ones."""
    with scope_of(tenant_id):
        (row,) = query(
            "select count(*) filter (where s.id is null), count(*) filter (where k.id is null),"
            " count(*) filter (where k.terminal_at is not null and s.terminal_at is null and s.id is not null),"
            " count(*) filter (where s.state = 'leased')"
            " from (select id, terminal_at from workflows_task where tenant_id = %s) k full join"
            " (select id, state, terminal_at from pg_temp.staged_workflows_task where tenant_id = %s) s on s.id = k.id",
            [tenant_id, tenant_id],
        )
    return TaskChanges(*row)


def prepare_tasks(*, tenant_id: UUID, token: int) -> int:
    """Make a tenant's staged tasks fit to take the place of the live ones; returns the token that all of them get.

    Args:
        tenant_id: whose latch the transaction holds.
        token: the highest that an earlier restore gave.

    Raises:
        TenantBusy: a task of the tenant is leased.
        QueueUnknown: a task stands in a queue that is not there.
        ArchiveInvalid: the tasks contradict themselves or their keys.
    """
    with scope_of(tenant_id):
        ((given,),) = call("workflows_prepare_restore", tenant_id, token)
    return int(given)


def recount(*, tenant_id: UUID) -> None:
    """Set the counters of a tenant's load row and turns to a count of its tasks; the transaction holds its latch."""
    with scope_of(tenant_id):
        call("workflows_recount", tenant_id)
