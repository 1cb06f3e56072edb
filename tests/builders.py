"""Everything a test starts from, made through the real verbs."""

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

from tenants.errors import QueueTaken
from tenants.keys import create_api_key
from tenants.policy import set_tenant_policy
from tenants.principals import Principal
from tenants.provisioning import create_tenant
from tenants.queries import TenantView
from tenants.queues import create_queue
from tests.database import as_role, owner
from workflows.admission import NewTask, enqueue
from workflows.claims import Claim, ClaimedTask, Outcome, finish, take

PRINCIPAL = Principal.command()
_numbers = itertools.count(1)


def build_tenant(
    slug: str = "",
    *,
    max_outstanding: int = 1000,
    max_leases: int = 20,
    weight: int = 1,
    guaranteed_leases: int = 0,
    service_class: str = "standard",
    policy: bool = True,
) -> TenantView:
    """Make a tenant with a policy."""
    with as_role("owner"):
        tenant = create_tenant(
            slug=slug or f"tenant-{next(_numbers)}", service_class=service_class, principal=PRINCIPAL
        )
    if policy:
        build_policy(
            tenant,
            max_outstanding=max_outstanding,
            max_leases=max_leases,
            weight=weight,
            guaranteed_leases=guaranteed_leases,
        )
    return tenant


def build_policy(tenant: TenantView, **limits: int) -> None:
    """Set a tenant's policy."""
    with as_role("operator"):
        set_tenant_policy(tenant_id=tenant.id, principal=PRINCIPAL, **limits)


def build_queue(name: str) -> None:
    """Make a queue, or find it made by an earlier test: queues are not emptied."""
    with as_role("owner"), contextlib.suppress(QueueTaken):
        create_queue(name=name, principal=PRINCIPAL)


def build_key(tenant: TenantView, *scopes: str, **more: Any) -> str:
    """Make an API key and return its plain text."""
    with as_role("operator"):
        _, plaintext = create_api_key(
            tenant_id=tenant.id,
            name="test",
            scopes=scopes or ("tasks:read", "tasks:write"),
            principal=PRINCIPAL,
            **more,
        )
    return plaintext


def start(tenant: TenantView, count: int = 1, **fields: Any) -> list[Any]:
    """Enqueue `count` tasks of a plain workflow; returns their ids."""
    fields.setdefault("workflow", "order-review")
    fields.setdefault("version", 1)
    fields.setdefault("input", {"order": 1})
    tasks = [NewTask(**fields) for _ in range(count)]
    return [done.task_id for done in enqueue(tenant_id=tenant.id, tasks=tasks, principal=PRINCIPAL)]


def claim(limit: int = 100, *, worker: str = "w1", queue: str = "default", **more: Any) -> list[ClaimedTask]:
    """Claim and return the tasks."""
    return take(worker=worker, queue=queue, limit=limit, **more).tasks


def complete(tasks: Sequence[ClaimedTask], output: Any = None) -> set[Claim]:
    """Finish tasks as completed; returns the stale claims."""
    return finish(outcomes=[Outcome(task.claim, "completed", output) for task in tasks])


def rows(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """Look behind the curtain as the owner."""
    return owner().execute(sql, params or None).fetchall()


def assert_counters_true() -> None:
    """Check that every counter equals `count(*)`, and that each turn's bits follow from them."""
    wrong = rows(
        """
        select l.tenant_id, l.outstanding, l.leased, t.outstanding, t.leased from tenants_load l
        left join lateral (select count(*) filter (where terminal_at is null) as outstanding,
          count(*) filter (where state = 'leased') as leased from workflows_task k where k.tenant_id = l.tenant_id) t
          on true
        where (l.outstanding, l.leased) is distinct from (t.outstanding::int, t.leased::int)
        """
    )
    assert wrong == []
    wrong = rows(
        """
        select t.tenant_id, t.queue, t.queued, t.waiting, t.blocked, c.*, l.leased, l.max_leases from tenants_turn t
        join tenants_load l using (tenant_id) cross join lateral (
          select count(*) filter (where state = 'queued') as queued,
            count(*) filter (where state = 'waiting') as waiting,
            count(*) filter (where state = 'completed') as completed,
            count(*) filter (where state = 'failed') as failed,
            count(*) filter (where state = 'cancelled') as cancelled
          from workflows_task k where k.tenant_id = t.tenant_id and k.queue = t.queue) c
        where (t.queued, t.waiting, t.completed, t.failed, t.cancelled)
            is distinct from (c.queued::int, c.waiting::int, c.completed, c.failed, c.cancelled)
          or t.blocked <> tenants_turn_blocked(t.blocked, t.queued, t.waiting, l.leased, l.max_leases, l.frozen)
        """
    )
    assert wrong == []
    assert rows("select count(*) from workflows_admission") == [(0,)]
