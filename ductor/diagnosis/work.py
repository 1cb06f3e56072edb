"""The work itself: do the counters add up, does anything stand still, does anything hold the past open."""

from collections.abc import Callable

from ductor.diagnosis import Finding, judged
from tenants.store import query
from workflows.formats import DEFINITION_FORMAT, TASK_FORMAT

MAX_READY_SECONDS = 60.0
MAX_EXPIRED_SECONDS = 120.0
MAX_SNAPSHOT_TRANSACTIONS = 1_000_000


def counters() -> Finding:
    """The counters of every tenant equal a count of its tasks, in one snapshot."""
    rows = query(
        """
        with work as (
          select tenant_id, queue, count(*) filter (where state = 'queued') as queued,
            count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'leased') as leased
          from workflows_task where state in ('queued', 'leased', 'waiting') group by tenant_id, queue),
        owners as (
          select tenant_id, sum(queued + waiting + leased) as outstanding, sum(leased) as leased
          from work group by tenant_id)
        select 'load of ' || coalesce(l.tenant_id, o.tenant_id), l.outstanding || '/' || l.leased,
          coalesce(o.outstanding, 0) || '/' || coalesce(o.leased, 0)
        from tenants_load l full join owners o on o.tenant_id = l.tenant_id
        where (l.outstanding, l.leased) is distinct from (coalesce(o.outstanding, 0), coalesce(o.leased, 0))
        union all
        select 'turn of ' || coalesce(t.tenant_id, w.tenant_id) || ' in ' || coalesce(t.queue, w.queue),
          t.queued || '/' || t.waiting, coalesce(w.queued, 0) || '/' || coalesce(w.waiting, 0)
        from tenants_turn t full join work w on w.tenant_id = t.tenant_id and w.queue = t.queue
        where (t.queued, t.waiting) is distinct from (coalesce(w.queued, 0), coalesce(w.waiting, 0))
        limit 100
        """
    )
    wrong = [f"the {what} says {says}, its tasks say {counted}" for what, says, counted in rows]
    return judged("counters", wrong, "every counter equals a count of tasks")


def admission() -> Finding:
    """No admission row outlives its transaction."""
    [(left,)] = query("select count(*) from workflows_admission")
    wrong = [f"{left} admission rows were left behind"] if left else []
    return judged("admission", wrong, "nothing is left half admitted")


def faults() -> Finding:
    """No tenant's turn carries the bit `fault`: a batch of theirs raised when it ran alone."""
    rows = query("select tenant_id, queue from tenants_turn where blocked & 64 <> 0 order by 1, 2 limit 100")
    wrong = [f"tenant {tenant_id} is stopped in queue {queue}" for tenant_id, queue in rows]
    remedy = "Mend what the worker's log names, then `ductor tenants clear-fault`."
    return judged("faults", wrong, "no tenant is stopped by a fault", remedy=remedy)


def claims() -> Finding:
    """Ready work is being claimed."""
    [(ready, waited, last)] = query(
        "select (select count(*) from tenants_turn where blocked = 0),"
        " (select extract(epoch from ductor_now() - min(next_due_at))::float from tenants_turn where blocked = 0),"
        " (select extract(epoch from ductor_now() - max(claimed_at))::float from workflows_task where state = 'leased')"
    )
    seen = "no task is leased now" if last is None else f"the last claim was {last:.0f} s ago"
    wrong = []
    if waited is not None and waited > MAX_READY_SECONDS:
        wrong = [f"{ready} turns are ready, the oldest work for {waited:.0f} s, and {seen}"]
    return judged("claims", wrong, f"{ready} turns ready, {seen}", remedy="Is a cluster running?", verdict="warning")


def formats() -> Finding:
    """Nothing is stored in a format that this Ductor can't read."""
    tasks = query(
        "select tenant_id, count(*) from workflows_task where state in ('queued', 'leased', 'waiting') and format > %s"
        " group by 1 order by 1 limit 100",
        [TASK_FORMAT],
    )
    definitions = query(
        "select tenant_id, name, version from workflows_definition"
        " where case jsonb_typeof(graph -> 'format') when 'number' then (graph ->> 'format')::numeric > %s"
        " else true end"
        " order by 1, 2, 3 limit 100",
        [DEFINITION_FORMAT],
    )
    wrong = [f"{count} tasks of tenant {tenant_id}" for tenant_id, count in tasks]
    wrong += [f"{name} version {version} of tenant {tenant_id}" for tenant_id, name, version in definitions]
    remedy = "They are left as they are: run the version of Ductor that wrote them, or a newer one."
    return judged("formats", wrong, "everything can be read", remedy=remedy)


def leases() -> Finding:
    """No lease stays long after it ran out."""
    [(expired,)] = query(
        "select count(*) from workflows_task where state = 'leased'"
        " and lease_expires_at < ductor_now() - make_interval(secs => %s)",
        [MAX_EXPIRED_SECONDS],
    )
    wrong = [f"{expired} leases ran out more than {MAX_EXPIRED_SECONDS:.0f} s ago and were not recovered"]
    return judged("leases", wrong if expired else [], "no expired lease is left", verdict="warning")


def snapshots() -> Finding:
    """No transaction holds back the clean-up of dead rows for long."""
    [(behind,)] = query(
        "select pg_snapshot_xmax(s)::text::bigint - pg_snapshot_xmin(s)::text::bigint from pg_current_snapshot() s"
    )
    wrong = [f"the oldest open transaction is {behind} transactions old"] if behind > MAX_SNAPSHOT_TRANSACTIONS else []
    return judged("snapshots", wrong, f"the oldest open transaction is {behind} transactions old", verdict="warning")


CHECKS: tuple[Callable[[], Finding], ...] = (counters, admission, faults, formats, claims, leases, snapshots)
