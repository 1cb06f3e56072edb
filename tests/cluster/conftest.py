"""A cluster for a test: started with short leases and the chores' handlers, and gone when the test ends."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import database
from tests.cluster.running import RunningCluster

StartCluster = Callable[..., RunningCluster]


@pytest.fixture
def cluster_env(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DUCTOR_ROLE": "worker",
        "DUCTOR_APPS": "tests.cluster.chores,tests.watching",
        "DUCTOR_LEASE_SECONDS": "2",
        "DUCTOR_HEARTBEAT_SECONDS": "0.5",
        "DUCTOR_WORKERS": "2",
        "DUCTOR_TEST_TRACE": str(tmp_path / "trace"),
        "PYTHONFAULTHANDLER": "",
    }


@pytest.fixture
def start_cluster(cluster_env: dict[str, str], tmp_path: Path) -> Iterator[StartCluster]:
    """Start a cluster and wait for its ready line; keyword arguments go into its environment."""
    database.touch()
    clusters: list[RunningCluster] = []

    def start(*options: str, ready: bool = True, **env: str) -> RunningCluster:
        cluster = RunningCluster(*options, env={**cluster_env, **env}, folder=tmp_path)
        clusters.append(cluster)
        return cluster.wait_ready() if ready else cluster

    yield start
    for cluster in clusters:
        cluster.destroy()
