"""What a verb reads is bounded by what it is about: never by a tenant's history, keys, or the number of tenants."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, transaction

from tenants.queries import TenantView
from tenants.scope import attach
from tenants.store import call
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, start
from tests.database import owner
from workflows.admission import NewTask, enqueue, enqueue_one
from workflows.cancelling import cancel
from workflows.claims import Outcome, StepRecord, finish, heartbeat, record_steps, release
from workflows.queries import list_summaries
from workflows.recovery import recover

HISTORY = 10_000
# What this transaction alone has read so far; the large values of rows are kept in tables of their own.
READS = """
select coalesce(sum(x.seq_tup_read + x.idx_tup_fetch), 0)::int from pg_stat_xact_all_tables x
join pg_class c on c.oid = x.relid or c.reltoastrelid = x.relid
where (c.relname like 'workflows!_%%' escape '!' or c.relname like 'tenants!_%%' escape '!') and (c.oid = x.relid) = %s
"""


def reads(act: Callable[[], Any], *, large: bool = False) -> int:
    """Run `act` in a transaction on a new connection; returns the rows (or pieces of large values) that it read."""
    connection.close()
    with transaction.atomic():
        act()
        with connection.cursor() as cursor:
            cursor.execute(READS, [not large])
            return int(cursor.fetchone()[0])


def build_crowd() -> None:
    """Add 3,000 tenants with idle turns."""
    owner().execute(
        "with made as (insert into tenants_tenant (id, slug, schema_name, name, status, service_class, created_at)"
        " select gen_random_uuid(), 'c' || i, 'c' || i, '', 'active', 'standard', now() from generate_series(1, 3000) i"
        " returning id),"
        " loads as (insert into tenants_load (tenant_id, outstanding, leased, max_outstanding, max_leases, weight,"
        " guaranteed_leases, frozen) select id, 0, 0, 9, 9, 1, 0, 0 from made)"
        " insert into tenants_turn (tenant_id, queue, id, key, blocked, below_floor, queued, waiting, expected_us,"
        " completed, failed, cancelled)"
        " select id, 'default', gen_random_uuid(), 5, 1, false, 0, 0, 9, 0, 0, 0 from made"
    )


def build_history(tenant: TenantView) -> None:
    """Add long-finished tasks and the keys that outlive them."""
    owner().execute(
        "with made as (insert into workflows_task (tenant_id, id, workflow, version, queue, partition, priority, state,"
        " origin, root_run_id, nesting_depth, created_at, due_at, terminal_at, attempt, failures, max_failures, alone,"
        " token, charged_us) select %s, i, 'w', 1, 'default', '', 0, 'completed', '{}', i, 0, now(), now(), now(),"
        " 1, 0, 3, false, 1, 0 from (select gen_random_uuid() as i from generate_series(1, %s)) g"
        " returning tenant_id, id)"
        " insert into workflows_taskkey (tenant_id, key, task_id, content_hash)"
        " select tenant_id, id, id, 'x' from made",
        [tenant.id, HISTORY],
    )
    owner().execute("update tenants_turn set completed = %s where tenant_id = %s", [HISTORY, tenant.id])


@pytest.fixture(params=["analyzed", "statistics of an empty table"])
def tenant(request: pytest.FixtureRequest) -> TenantView:
    """A tenant with a long history: in a crowd that the planner knows of, or grown since it last looked."""
    tables = "workflows_task, workflows_taskkey, tenants_turn, tenants_load"
    owner().execute(f"analyze {tables}")
    tenant = build_tenant(max_outstanding=100, max_leases=100)
    start(tenant, 40)
    start(tenant, 10, delay_seconds=30)
    build_history(tenant)
    if request.param == "analyzed":
        build_crowd()
        owner().execute(f"analyze {tables}")
    return tenant


def test_no_verb_reads_a_history(tenant: TenantView) -> None:
    kept: list[Any] = []
    counts = {"claim": reads(lambda: kept.extend(claim(20, per_tenant=20, lease_seconds=60)))}
    claims = [task.claim for task in kept]
    assert len(claims) == 20
    now = datetime.now(UTC)
    record = StepRecord(claims[0], "a", 1, "completed", None, None, now, now)
    counts["heartbeat"] = reads(lambda: heartbeat(claims=claims))
    counts["record"] = reads(lambda: record_steps(records=[record]))
    counts["record with load"] = reads(lambda: record_steps(records=[StepRecord(*_renamed(record))], with_load=True))
    counts["finish"] = reads(lambda: finish(outcomes=[Outcome(one, "completed") for one in claims[:5]]))
    counts["retry"] = reads(lambda: finish(outcomes=[Outcome(claims[5], "retry", delay_seconds=9)]))
    counts["release"] = reads(lambda: release(claims=claims[6:9]))
    counts["delayed release"] = reads(lambda: release(claims=claims[9:10], delay_seconds=9))
    with attach(tenant.id):
        for state in ("queued", "waiting", "leased"):
            ((task_id,),) = owner().execute(
                "select id from workflows_task where tenant_id = %s and state = %s order by id desc limit 1",
                [tenant.id, state],
            )
            counts[f"cancel {state}"] = reads(
                lambda task_id=task_id: cancel(tenant_id=tenant.id, task_id=task_id, principal=PRINCIPAL)
            )
        tasks = [NewTask("w", 1, None, key=f"k{n}") for n in range(5)]
        counts["start"] = reads(lambda: enqueue(tenant_id=tenant.id, tasks=tasks, principal=PRINCIPAL, immediate=True))
    counts["next due"] = reads(lambda: call("workflows_next_due", "default"))
    clock.advance(40)
    counts["promotion"] = reads(lambda: call("workflows_promote_due", "default"))
    clock.advance(100)
    counts["recovery"] = reads(lambda: recover(limit=100))
    counts["claim of one"] = reads(lambda: claim(1))
    counts["idle claim"] = reads(lambda: claim(1, queue="system"))
    assert {verb: count for verb, count in counts.items() if count > 400} == {}
    assert_counters_true()


def _renamed(record: StepRecord) -> tuple[Any, ...]:
    claim_, _, *rest = (getattr(record, name) for name in record.__slots__)
    return (claim_, "b", *rest)


def test_large_inputs_are_read_by_their_claim_alone() -> None:
    """Finishing, releasing, extending and taking back carry no rows about: no input is read for it."""
    tenant = build_tenant()
    text = "".join(chr(33 + (n * n * 7919 + n // 90) % 90) for n in range(100_000))
    start(tenant, 3, input={"text": text})
    ended, released, expired = claim(3, lease_seconds=30)

    def act() -> None:
        heartbeat(claims=[expired.claim])
        release(claims=[released.claim])
        finish(outcomes=[Outcome(ended.claim, "completed")])
        clock.advance(120)
        assert recover(limit=10) == 1

    assert reads(act, large=True) == 0
    assert reads(lambda: claim(1), large=True) > 0
    assert_counters_true()


@pytest.mark.parametrize("verb", [enqueue, enqueue_one])
def test_a_start_planned_on_an_empty_table_stays_as_cheap_when_the_table_has_grown(verb: Callable[..., Any]) -> None:
    """A server process that came up with a fresh platform keeps its plans until somebody analyzes the tables."""
    tenant, task = build_tenant(), NewTask("w", 1, {})
    given = {"tasks": [task]} if verb is enqueue else {"task": task}

    def act() -> None:
        with attach(tenant.id):
            verb(tenant_id=tenant.id, principal=PRINCIPAL, **given)

    owner().execute("analyze workflows_task")
    connection.close()
    for _ in range(8):
        act()
    build_history(tenant)
    with transaction.atomic(), connection.cursor() as cursor:
        act()
        cursor.execute(READS, [True])
        assert cursor.fetchone()[0] < 200


@pytest.mark.parametrize("workflow", ["rare", "unknown"])
def test_a_list_of_a_rare_workflow_reads_no_history(workflow: str) -> None:
    tenant = build_tenant()
    start(tenant, 3, workflow="rare")
    build_history(tenant)
    owner().execute("analyze workflows_task")
    with attach(tenant.id):
        found = reads(lambda: list_summaries(tenant_id=tenant.id, workflow=workflow))
    assert found < 20
