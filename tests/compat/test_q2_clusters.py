"""django-q2's interface with real clusters: kills, two clusters on one schedule, a timeout."""

import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django_q.models import Schedule, Task
from django_q.tasks import async_chain, async_iter, async_task, count_group, fetch, result, schedule

from tenants.scope import attach
from tests.builders import assert_counters_true, build_tenant, rows
from tests.cluster.conftest import StartCluster
from tests.cluster.running import RunningCluster, until
from tests.compat.conftest import SHOP, lines
from tests.workflows.conftest import TestWorker

QUICK = {"DUCTOR_LEASE_SECONDS": "1", "DUCTOR_HEARTBEAT_SECONDS": "0.25"}
OPEN = "select count(*) from workflows_task where workflow like 'q2:%%' and terminal_at is null"


def drained(cluster: RunningCluster) -> None:
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert cluster.leftovers() == []


def ended() -> bool:
    return rows(OPEN) == [(0,)]


def test_a_killed_workers_call_is_made_again_and_kept_once(
    shop: TestWorker, shop_cluster: StartCluster, tmp_path: Path
) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        alone = async_task(f"{SHOP}.die_once", str(tmp_path / "alone"), hook=f"{SHOP}.note")
        dying = (f"{SHOP}.die_once", (str(tmp_path / "link"),))
        chain = async_chain([(f"{SHOP}.add", (1,)), dying, (f"{SHOP}.add", (2,))])
    cluster = shop_cluster(**QUICK)
    until(ended, seconds=30, what=lambda: cluster.log)
    with attach(tenant.id):
        assert result(alone) == 7
        assert result(f"after-{alone}") == 1007
        assert [task.result for task in Task.objects.filter(group=chain).order_by("started")] == [1, 7, 2]
    seen = Counter(line.split()[0] for line in lines(cluster.trace_file))
    assert seen == {"die_once": 4, "add": 3, "note": 1}
    assert rows("select distinct state from workflows_task where workflow like 'q2:%%'") == [("completed",)]
    drained(cluster)
    assert_counters_true()


def test_a_call_that_outlasts_its_own_timeout_is_a_failure(shop: TestWorker, shop_cluster: StartCluster) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task_id = async_task(f"{SHOP}.nap", 60, timeout=0.3)
        after = async_task(f"{SHOP}.add", 1)
    cluster = shop_cluster("--workers", "1")
    until(ended, what=lambda: cluster.log)
    with attach(tenant.id):
        assert fetch(task_id).result == "Task exceeded its timeout."
        assert result(after) == 1
    assert rows("select error ->> 'class' from workflows_task where state = 'failed'") == [("StepTimeout",)]
    drained(cluster)
    assert_counters_true()


def test_two_clusters_fire_one_schedule_exactly_as_often_as_it_is_due(
    shop: TestWorker, shop_cluster: StartCluster
) -> None:
    tenant = build_tenant()
    first, second = shop_cluster(ready=False), shop_cluster(ready=False)
    begin = datetime.now(UTC) - timedelta(minutes=19, seconds=30)
    with attach(tenant.id):
        schedule(f"{SHOP}.add", 1, schedule_type=Schedule.MINUTES, minutes=1, repeats=20, next_run=begin, name="often")
    until(lambda: rows("select repeats from django_q_schedule") == [(0,)], seconds=40, what=lambda: first.log)
    until(ended)
    with attach(tenant.id):
        assert count_group("often") == 20
    assert len(lines(first.trace_file)) == 20
    assert rows("select count(*) from workflows_task where workflow like 'q2:%%'") == [(20,)]
    for cluster in (first.wait_ready(), second.wait_ready()):
        drained(cluster)
    assert_counters_true()


@pytest.mark.full
def test_kills_while_schedules_fire_lose_none_and_double_none(shop: TestWorker, shop_cluster: StartCluster) -> None:
    tenants = [build_tenant() for _ in range(4)]
    begin = datetime.now(UTC) - timedelta(minutes=49, seconds=30)
    for tenant in tenants:
        with attach(tenant.id):
            schedule(f"{SHOP}.add", 1, schedule_type=Schedule.MINUTES, minutes=1, repeats=50, next_run=begin, name="s")
            async_iter(f"{SHOP}.add", [(number,) for number in range(50)])
    for _ in range(6):
        clusters = [shop_cluster(**QUICK), shop_cluster(**QUICK)]
        for cluster in clusters:
            cluster.signal_group(signal.SIGKILL)
            cluster.wait_end(5)
    last = shop_cluster(**QUICK)
    until(lambda: rows("select distinct repeats from django_q_schedule") == [(0,)], seconds=60, what=lambda: last.log)
    until(ended, seconds=60)
    for tenant in tenants:
        with attach(tenant.id):
            assert count_group("s") == 50
            (collected,) = Task.objects.exclude(group="s")
            assert collected.result == list(range(50))
    drained(last)
    assert_counters_true()
