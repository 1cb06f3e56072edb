"""SIGKILL of any process: nothing stays behind, tasks come back when their leases end, nothing stands still."""

import random
import signal
import time

import pytest

from tests.builders import assert_counters_true, build_tenant, rows
from tests.cluster.conftest import StartCluster
from tests.cluster.running import until
from tests.cluster.tasks import chores, states, task, until_states

QUICK_LEASE = {"DUCTOR_LEASE_SECONDS": "1", "DUCTOR_HEARTBEAT_SECONDS": "0.25"}


def test_a_killed_workers_task_comes_back_with_a_higher_token(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    (long,) = chores(tenant, "nap", seconds=1)
    cluster = start_cluster(**QUICK_LEASE)
    until(lambda: cluster.executions().total() == 1, what=lambda: cluster.log)
    first = task(long)
    (owner,) = {int(line.split()[1]) for line in cluster.trace_file.read_text().splitlines()}
    cluster.signal_one(owner, signal.SIGKILL)
    until(lambda: len(cluster.workers) == 2 and owner not in cluster.workers)
    until_states(completed=1)
    second = task(long)
    assert second["token"] > first["token"]
    assert second["failures"] == 0
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert_counters_true()


def test_killing_idle_workers_again_and_again_stops_nothing(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    tenant = build_tenant()
    for _ in range(2):
        doomed = cluster.workers
        for worker in doomed:
            cluster.signal_one(worker, signal.SIGKILL)
        until(lambda gone=doomed: len(cluster.workers) == 2 and not set(gone) & set(cluster.workers))
    chores(tenant, "noop", 20)
    until_states(completed=20)
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert cluster.leftovers() == []


@pytest.mark.parametrize("target", ["sentinel", "cluster"])
def test_no_process_survives_its_parent(start_cluster: StartCluster, target: str) -> None:
    tenant = build_tenant()
    chores(tenant, "nap", 6, seconds=0.3)
    cluster = start_cluster()
    until(lambda: cluster.executions().total() >= 2, what=lambda: cluster.log)
    cluster.signal_one(cluster.sentinel if target == "sentinel" else cluster.process.pid, signal.SIGKILL)
    assert cluster.wait_end(5) == (1 if target == "sentinel" else -signal.SIGKILL)
    assert cluster.leftovers() == []


def test_the_work_of_a_killed_group_is_done_by_the_next_cluster(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    chores(tenant, "nap", 6, seconds=0.3)
    cluster = start_cluster(**QUICK_LEASE)
    until(lambda: cluster.executions().total() >= 2, what=lambda: cluster.log)
    cluster.signal_group(signal.SIGKILL)
    assert cluster.wait_end(5) == -signal.SIGKILL
    assert cluster.leftovers() == []
    second = start_cluster(**QUICK_LEASE)
    until_states(completed=6)
    assert [found for (found,) in rows("select failures from workflows_task where queue = 'default'")] == [0] * 6
    second.signal_group(signal.SIGTERM)
    assert second.wait_end() == 0
    assert_counters_true()


def test_a_poison_task_takes_nobody_with_it(start_cluster: StartCluster) -> None:
    others = [build_tenant() for _ in range(10)]
    (poison,) = chores(build_tenant(), "poison")
    for tenant in others:
        chores(tenant, "noop", 10)
    cluster = start_cluster(**QUICK_LEASE)
    until_states(completed=100, failed=1, seconds=30)
    assert (task(poison)["state"], task(poison)["failures"]) == ("failed", 3)
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert cluster.leftovers() == []
    assert_counters_true()


def test_two_clusters_run_each_task_once(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    first, second = start_cluster(ready=False), start_cluster(ready=False)
    chores(tenant, "nap", 40, seconds=0.02)
    until_states(completed=40)
    for cluster in (first.wait_ready(), second.wait_ready()):
        cluster.signal_group(signal.SIGTERM)
        assert cluster.wait_end() == 0
    assert set(first.executions().values()) == {1}
    assert states() == {"completed": 40}


def test_workers_are_replaced_after_so_many_tasks(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    chores(tenant, "noop", 200)
    cluster = start_cluster(DUCTOR_RECYCLE_TASKS="30")
    until_states(completed=200)
    assert cluster.log.count("worker_recycled") >= 2
    assert "worker_died" not in cluster.log
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert set(cluster.executions().values()) == {1}


@pytest.mark.full
def test_two_minutes_of_random_kills_stop_nothing(start_cluster: StartCluster) -> None:
    tenants = [build_tenant() for _ in range(5)]
    cluster = start_cluster(**QUICK_LEASE)
    chance = random.Random(34)
    started = 0
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for tenant in tenants:
            chores(tenant, "nap", 10, seconds=0.01)
        started += 50
        time.sleep(chance.uniform(0.3, 2.0))
        sentinel = cluster.sentinel
        victim = chance.choice([*cluster.workers, *cluster.workers, sentinel])
        cluster.signal_one(victim, signal.SIGKILL)
        if victim == sentinel:
            assert cluster.wait_end() == 1
            assert cluster.leftovers() == []
            cluster = start_cluster(**QUICK_LEASE)
    until_states(completed=started, seconds=60)
    assert cluster.executions().total() < started * 1.1
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert cluster.leftovers() == []
    assert_counters_true()
