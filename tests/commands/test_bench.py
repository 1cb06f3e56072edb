"""The bench's parts that start processes of their own, for a moment each; the whole command in the long run."""

import json
import subprocess
import sys
from typing import Any

import pytest

from ductor.bench import http, latency
from ductor.bench.load import Job, requests_of
from ductor.bench.server import BenchFailed
from tests.builders import assert_counters_true, build_queue, rows
from tests.commands.running import ROOT
from tests.database import owner, touch

COUNT = "select count(*) from workflows_task where queue = %s and workflow = %s"


def test_starts_over_http_are_measured_and_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    touch()
    build_queue("bench-http")
    loads: list[Any] = []
    drive = http._drive
    monkeypatch.setattr(http, "_drive", lambda job: loads.append(drive(job)) or loads[-1])

    figures = http.figures(owner(), 0.3, DUCTOR_APPS="ductor.bench")

    assert set(figures) == {"http_enqueue_per_s", "http_p50_ms", "http_p95_ms"}
    assert 0 < figures["http_p50_ms"] <= figures["http_p95_ms"]
    assert figures["http_enqueue_per_s"] == loads[1].started / loads[1].seconds
    assert loads[2].started == 0.3 * http.PACE
    assert rows(COUNT, "bench-http", "bench-noop") == [(sum(load.started for load in loads),)]
    assert_counters_true()


def test_a_surface_that_refuses_is_no_figure() -> None:
    touch()
    build_queue("bench-http")
    with pytest.raises(BenchFailed, match="refused"):
        # Without its app no process knows the workflow.
        http.figures(owner(), 0.1, DUCTOR_APPS="")
    assert rows(COUNT, "bench-http", "bench-noop") == [(0,)]


def test_how_soon_a_task_starts_is_measured_by_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    touch()
    build_queue(latency.QUEUE)

    figures = latency.figures(owner(), 3, DUCTOR_APPS="ductor.bench")

    assert set(figures) == {"enqueue_to_start_p50_ms", "enqueue_to_start_p99_ms"}
    assert 0 < figures["enqueue_to_start_p50_ms"] <= figures["enqueue_to_start_p99_ms"]
    assert rows(COUNT + " and state = 'completed'", latency.QUEUE, "bench-start") == [(8,)]
    assert_counters_true()


def test_the_clients_share_the_keys_and_ask_for_nothing_but_a_start() -> None:
    one, two = requests_of(Job(1, "/api/v1/tasks", '{"workflow": "w"}', ["a", "b"], 1, 1.0))
    assert one.splitlines()[0] == b"POST /api/v1/tasks HTTP/1.1"
    assert one.endswith(b'\r\nAuthorization: Bearer a\r\nContent-Length: 17\r\n\r\n{"workflow": "w"}')
    assert two == one.replace(b"Bearer a", b"Bearer b")


@pytest.mark.full
def test_the_command_prints_the_figures_as_one_flat_document() -> None:
    command = [sys.executable, "manage.py", "ductor", "bench", "--http", "--start", "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    assert set(json.loads(done.stdout)) == {
        "http_enqueue_per_s",
        "http_p50_ms",
        "http_p95_ms",
        "enqueue_to_start_p50_ms",
        "enqueue_to_start_p99_ms",
    }
