"""Handlers that hang: stopped softly, then by the end of their process, at last by the sentinel's kill."""

import signal

from tests.builders import assert_counters_true, build_tenant
from tests.cluster.conftest import StartCluster
from tests.cluster.running import until
from tests.cluster.tasks import chores, task, until_states

SHORT_GRACE = {"DUCTOR_TEST_GRACE": "0.5", "DUCTOR_LEASE_SECONDS": "1", "DUCTOR_HEARTBEAT_SECONDS": "0.25"}


def test_a_handler_past_its_timeout_is_interrupted_and_its_worker_goes_on(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    (hung,) = chores(tenant, "hang")
    chores(tenant, "noop", 20)
    cluster = start_cluster()
    workers = set(cluster.workers)
    until_states(completed=20, failed=1)
    assert task(hung)["failures"] == 3
    assert set(cluster.workers) == workers
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert_counters_true()


def test_a_handler_that_no_signal_reaches_ends_its_process_and_only_its_own(start_cluster: StartCluster) -> None:
    (hung,) = chores(build_tenant(), "deaf", max_failures=1)
    chores(build_tenant(), "noop", 20)
    cluster = start_cluster(**SHORT_GRACE)
    until(lambda: "worker_gave_up_hung_handler" in cluster.log, what=lambda: cluster.log)
    until_states(completed=20, failed=1, seconds=20)
    assert set(executions_of_others(cluster.executions(), hung)) == {1}
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert cluster.leftovers() == []
    assert_counters_true()


def test_a_handler_that_stops_every_thread_is_killed_by_the_sentinel(start_cluster: StartCluster) -> None:
    (hung,) = chores(build_tenant(), "frozen", max_failures=1)
    chores(build_tenant(), "noop", 20)
    cluster = start_cluster("--workers", "1", **SHORT_GRACE)
    until(lambda: "worker_hung_killed" in cluster.log, what=lambda: cluster.log)
    until_states(completed=20, failed=1, seconds=20)
    assert set(executions_of_others(cluster.executions(), hung)) == {1}
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert_counters_true()


def test_a_step_thread_that_hangs_ends_its_process(start_cluster: StartCluster) -> None:
    (hung,) = chores(build_tenant(), "split")
    chores(build_tenant(), "noop", 20)
    cluster = start_cluster(**SHORT_GRACE)
    workers = set(cluster.workers)
    until(lambda: len(set(cluster.workers) - workers) >= 1, what=lambda: cluster.log)
    until_states(completed=20, failed=1, seconds=20)
    assert set(executions_of_others(cluster.executions(), hung)) == {1}
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0
    assert_counters_true()


def executions_of_others(executions: dict[str, int], hung: str) -> list[int]:
    return [count for task_id, count in executions.items() if task_id != hung]
