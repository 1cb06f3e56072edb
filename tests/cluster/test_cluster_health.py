"""The health record: django-q2's Stat in the cache, and what happens when there is no cache."""

import signal
import uuid

import pytest
from django.conf import settings
from django.db import ProgrammingError
from django.test import override_settings
from django_q.status import Stat
from structlog.testing import capture_logs

from ductor.cluster.health import HealthRecorder
from ductor.cluster.plan import ClusterPlan
from ductor.cluster.shared import Board, Flag, Phase
from tenants.store import query
from tests import clock, database
from tests.builders import rows
from tests.cluster.conftest import StartCluster
from tests.cluster.running import until
from workflows.clusters import list_clusters


def recorder(board: Board) -> HealthRecorder:
    started = Flag()
    started.set()
    plan = ClusterPlan(workers=2, queues=("default", "mail"))
    return HealthRecorder(
        pid=1, sentinel_pid=2, cluster_id=uuid.uuid4(), plan=plan, board=board, drain=Flag(), started=started
    )


def test_a_cluster_shows_itself_with_its_workers(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    own = {"default": {**settings.CACHES["default"], "LOCATION": "tenants_cache_worker"}}
    with database.as_role("worker"), override_settings(CACHES=own):
        until(Stat.get_all)
        (stat,) = Stat.get_all()
        assert (stat.pid, stat.sentinel) == (cluster.process.pid, cluster.sentinel)
        until(lambda: sorted(Stat.get_all()[0].workers) == sorted(cluster.workers))
        until(list_clusters)
        (row,) = list_clusters()
        assert (row.pid, row.queues, row.workers) == (cluster.process.pid, ("default",), 2)
        cluster.signal_group(signal.SIGTERM)
        assert cluster.wait_end() == 0
        assert list_clusters() == []


def test_the_record_says_idle_working_and_stopping() -> None:
    board = Board(2)
    record = recorder(board)
    assert record.status() == "Idle"
    board.enter(1, Phase.WORKING)
    assert record.status() == "Working"
    record.drain.set()
    assert record.status() == "Stopping"


def test_a_heartbeat_row_follows_the_board() -> None:
    board = Board(2)
    record = recorder(board)
    record.save()
    board.enter(1, Phase.WORKING)
    clock.advance(31)
    with database.as_role("operator"):
        (seen,) = list_clusters()
        assert (seen.pid, seen.queues, seen.workers, seen.busy, seen.is_silent) == (1, ("default", "mail"), 2, 0, True)
    record.save()
    with database.as_role("operator"):
        (seen,) = list_clusters()
        assert (seen.status, seen.busy, seen.is_silent) == ("Working", 1, False)
        assert (seen.beat_at - seen.started_at).total_seconds() > 30


def test_the_row_of_a_cluster_that_was_killed_goes_after_a_day_with_the_next_heartbeat() -> None:
    recorder(Board(1)).save()
    clock.advance(86_000)
    recorder(Board(1)).save()
    assert len(list_clusters()) == 2
    clock.advance(1_000)
    recorder(Board(1)).save()
    assert len(list_clusters()) == 2


def test_the_web_neither_reads_nor_writes_clusters() -> None:
    with database.as_role("web"):
        for sql in ("select 1 from workflows_cluster", "delete from workflows_cluster"):
            with pytest.raises(ProgrammingError, match="permission denied"):
                query(sql)


def test_its_key_in_the_cache_belongs_to_the_system() -> None:
    recorder(Board(1)).save()
    keys = [key for (key,) in rows("select cache_key from tenants_cache_web")]
    assert len(keys) == 2
    assert all(key.startswith("system:") for key in keys)


def test_a_lost_cache_is_one_line_and_one_more_when_it_was_back_and_is_lost_again() -> None:
    record = recorder(Board(1))
    with capture_logs() as lines:
        for exists in (False, False, True, False):
            rename("tenants_cache_web" if exists else "gone")
            record.save()
        rename("tenants_cache_web")
    assert lines == [{"event": "health_record_lost", "why": "ProgrammingError", "log_level": "warning"}] * 2


def rename(name: str) -> None:
    found = database.owner().execute("select to_regclass('tenants_cache_web') is not null").fetchone()
    present = "tenants_cache_web" if found and found[0] else "gone"
    if present != name:
        database.owner().execute(f"alter table {present} rename to {name}")
