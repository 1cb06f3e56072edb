"""The shop's functions in this process, a worker beside them, and clusters that have the shop installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ductor.contrib.q2 import functions
from tests.cluster.conftest import StartCluster, cluster_env, start_cluster  # noqa: F401  fixtures
from tests.compat.shop import tasks
from tests.workflows.conftest import TestWorker, flows, worker  # noqa: F401  fixtures

SHOP = "tests.compat.shop.tasks"


@pytest.fixture
def shop(worker: TestWorker, flows: None) -> Iterator[TestWorker]:  # noqa: F811
    """A worker whose process has the shop's functions."""
    functions.allow_module(tasks)
    yield worker


@pytest.fixture
def shop_cluster(start_cluster: StartCluster) -> StartCluster:  # noqa: F811
    """Start clusters that have the shop installed."""

    def start(*options: str, **env: str) -> object:
        return start_cluster(*options, **{"DUCTOR_APPS": "tests.watching,tests.compat.shop", **env})

    return start  # type: ignore[return-value]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
