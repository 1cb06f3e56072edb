"""Stop signals: running tasks finish or are released, unstarted ones stay queued, the exit code is 0."""

import signal
import time

import pytest

from tests.builders import assert_counters_true, build_tenant
from tests.cluster.conftest import StartCluster
from tests.cluster.running import RunningCluster, is_alive, until
from tests.cluster.tasks import chores, states, task, until_states


def send(cluster: RunningCluster, target: str, number: signal.Signals) -> None:
    if target == "group":
        cluster.signal_group(number)
    else:
        cluster.signal_one({"cluster": cluster.process.pid, "sentinel": cluster.sentinel}[target], number)


@pytest.mark.parametrize(
    ("target", "number"),
    [
        ("cluster", signal.SIGTERM),
        ("sentinel", signal.SIGTERM),
        ("group", signal.SIGTERM),
        ("group", signal.SIGINT),
    ],
)
def test_a_stop_signal_lets_running_tasks_finish_and_a_second_one_changes_nothing(
    start_cluster: StartCluster, target: str, number: signal.Signals
) -> None:
    tenant = build_tenant()
    chores(tenant, "nap", 20, seconds=0.4)
    cluster = start_cluster()
    until(lambda: cluster.executions().total() >= 2, what=lambda: cluster.log)
    send(cluster, target, number)
    time.sleep(0.05)
    send(cluster, "group", signal.SIGTERM)
    assert cluster.wait_end() == 0, cluster.log
    assert cluster.leftovers() == []
    begun = cluster.executions().total()
    assert states() == {"completed": begun, "queued": 20 - begun}
    assert "Traceback" not in cluster.log
    assert_counters_true()


def test_what_still_runs_after_the_grace_is_released_without_a_failure(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    (long,) = chores(tenant, "nap", seconds=50)
    cluster = start_cluster("--drain-seconds", "0.5")
    until(lambda: cluster.executions().total() == 1, what=lambda: cluster.log)
    cluster.signal_group(signal.SIGTERM)
    began = time.monotonic()
    assert cluster.wait_end() == 0, cluster.log
    assert time.monotonic() - began < 4
    assert cluster.leftovers() == []
    assert task(long) == {"state": "queued", "attempt": 1, "failures": 0, "token": 1}
    assert '"released": 1' in cluster.log
    assert_counters_true()


def test_a_stopped_worker_finishes_its_task_and_another_takes_its_seat(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    chores(tenant, "nap", 12, seconds=0.3)
    cluster = start_cluster()
    until(lambda: cluster.executions().total() >= 2, what=lambda: cluster.log)
    stopped, neighbour = cluster.workers
    cluster.signal_one(stopped, signal.SIGTERM)
    until(lambda: not is_alive(stopped) and len(cluster.workers) == 2, what=lambda: cluster.log)
    assert neighbour in cluster.workers
    until_states(completed=12)
    assert set(cluster.executions().values()) == {1}
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0


def test_a_cluster_told_to_stop_when_idle_stops_by_itself(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    chores(tenant, "noop", 30)
    cluster = start_cluster("--once-idle", ready=False)
    assert cluster.wait_end(20) == 0, cluster.log
    assert cluster.leftovers() == []
    assert states() == {"completed": 30}
    assert set(cluster.executions().values()) == {1}
    assert cluster.log.count("qcluster ready: 2 workers, queues default") == 1
