"""The database refuses, goes away and comes back: the cluster says so in a line and goes on with the same workers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ductor import testrun
from ductor.embedded import EmbeddedServer
from tests import database
from tests.builders import build_tenant
from tests.cluster.conftest import StartCluster
from tests.cluster.running import ROOT, until
from tests.cluster.tasks import chores, until_states

ADMIN_URL = os.environ.get("DUCTOR_TEST_ADMIN_URL", "")


def test_a_role_that_row_security_does_not_bind_is_refused_in_one_line(start_cluster: StartCluster) -> None:
    owner = os.environ["DUCTOR_DATABASE_URL_OWNER"]
    cluster = start_cluster(ready=False, DUCTOR_DATABASE_URL_WORKER=owner)
    assert cluster.wait_end() == 1
    (line,) = cluster.log.splitlines()
    assert line.startswith("CommandError: Ductor does not start as database role 'ductor_owner'")
    assert cluster.leftovers() == []


def test_a_cluster_as_the_operator_is_refused_in_one_line(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ready=False, DUCTOR_ROLE="operator")
    assert cluster.wait_end() == 1
    assert cluster.log == "CommandError: A cluster runs as the worker, not as the operator: unset DUCTOR_ROLE.\n"


def test_a_database_that_is_not_there_is_one_line_and_an_exit_code(start_cluster: StartCluster) -> None:
    nowhere = "postgresql://ductor_worker@/ductor?host=%2Fnonexistent"
    cluster = start_cluster(ready=False, DUCTOR_DATABASE_URL_WORKER=nowhere)
    assert cluster.wait_end() == 1
    (line,) = cluster.log.splitlines()
    assert line.startswith("CommandError: The database can't be used: ")


def test_a_queue_that_nobody_made_is_refused_in_one_line(start_cluster: StartCluster) -> None:
    cluster = start_cluster("--queues", "default,nowhere", ready=False)
    assert cluster.wait_end() == 1
    assert cluster.log.splitlines() == [
        "CommandError: There is no queue 'nowhere': make it with `manage.py ductor queues create nowhere`."
    ]


def test_workers_survive_the_loss_of_all_their_connections(start_cluster: StartCluster) -> None:
    tenant = build_tenant()
    chores(tenant, "nap", 60, seconds=0.05)
    cluster = start_cluster()
    workers = set(cluster.workers)
    with psycopg.connect(ADMIN_URL, autocommit=True) as admin:
        for _ in range(3):
            begun = cluster.executions().total()
            admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'ductor_worker'")
            until(lambda before=begun: cluster.executions().total() > before, what=lambda: cluster.log)
    until_states(completed=60)
    assert set(cluster.workers) == workers
    assert "Traceback" not in cluster.log
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0


@pytest.fixture
def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServer]:
    """A migrated server of this test's own; while it lives, roles and clusters of the test are led to it."""
    server = EmbeddedServer(tmp_path / "home", testrun.SETTINGS)
    server.acquire()
    try:
        for name, value in testrun.prepare_server(server).items():
            monkeypatch.setenv(name, value)
        owner = {**os.environ, "DUCTOR_ROLE": "owner", "DJANGO_SETTINGS_MODULE": "ductor.settings"}
        command = [sys.executable, "-m", "django", "migrate", "--no-input", "--verbosity=0"]
        subprocess.run(command, cwd=ROOT, env=owner, check=True)
        yield server
    finally:
        server.release()
        server.destroy(evict=True)


@pytest.fixture
def cluster_of_own_server(own_server: EmbeddedServer, start_cluster: StartCluster) -> StartCluster:
    urls = {name: value for name, value in os.environ.items() if name.startswith("DUCTOR_DATABASE_URL_")}
    return lambda *options, **env: start_cluster(*options, **{**urls, **env})


@pytest.mark.full
def test_workers_survive_a_restart_of_the_server(
    own_server: EmbeddedServer, cluster_of_own_server: StartCluster
) -> None:
    tenant = build_tenant()
    with database.as_role("web"):
        chores(tenant, "nap", 100, seconds=0.05)
    cluster = cluster_of_own_server()
    workers = set(cluster.workers)
    until(lambda: cluster.executions().total() > 5, what=lambda: cluster.log)
    own_server.release()
    time.sleep(2)
    own_server.acquire()
    until(lambda: completed_on(own_server) == 100, seconds=30, what=lambda: cluster.log)
    assert set(cluster.workers) == workers
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end() == 0


@pytest.mark.full
def test_a_cluster_without_its_database_still_stops_at_once(
    own_server: EmbeddedServer, cluster_of_own_server: StartCluster
) -> None:
    cluster = cluster_of_own_server()
    own_server.release()
    time.sleep(3)
    cluster.signal_group(signal.SIGTERM)
    assert cluster.wait_end(5) == 0, cluster.log
    assert cluster.leftovers() == []


def completed_on(server: EmbeddedServer) -> int:
    query = "select count(*)::int from workflows_task where state = 'completed' and queue <> 'system'"
    with psycopg.connect(host=str(server.socket_dir), user="postgres", dbname="ductor") as connection:
        return int(connection.execute(query).fetchone()[0])  # type: ignore[index]
