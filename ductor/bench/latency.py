"""How soon an idle cluster starts a task: from before the enqueueing call to the handler's first line."""

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from ductor.bench import ground
from ductor.bench.server import ROOT, BenchFailed, ended
from ductor.children import spawn
from workflows.admission import NewTask, enqueue

QUEUE = "bench-start"
READY_SECONDS = 90.0
TASK_SECONDS = 30.0


def figures(owner: "psycopg.Connection[Any]", samples: int, **environment: str) -> dict[str, float]:
    """p50 and p99 in milliseconds, one task at a time, each met by workers that sleep; at most some 0.2 s a sample.

    `environment` goes to the cluster.

    Raises:
        BenchFailed: the cluster does not come up, or a task is not run.
    """
    (tenant_id,) = ground.make_tenants(owner, "start", 1)
    latencies: list[float] = []
    with _cluster(environment):
        for _ in range(samples + 5):
            # Long enough for the workers to have looked once more and to sleep.
            time.sleep(random.uniform(0.06, 0.14))  # noqa: S311
            begun = time.time()
            task = NewTask("bench-start", 1, {}, queue=QUEUE)
            [started] = enqueue(tenant_id=tenant_id, tasks=[task], principal=ground.PRINCIPAL)
            latencies.append(_first_line(owner, tenant_id, started.task_id) - begun)
    # The first few meet processes that have yet to load and connect.
    cuts = statistics.quantiles(latencies[5:], n=100)
    return {"enqueue_to_start_p50_ms": cuts[49] * 1000, "enqueue_to_start_p99_ms": cuts[98] * 1000}


def _first_line(owner: "psycopg.Connection[Any]", tenant_id: Any, task_id: Any) -> float:
    deadline = time.monotonic() + TASK_SECONDS
    find = "select output from workflows_task where tenant_id = %s and id = %s and state = 'completed'"
    while time.monotonic() < deadline:
        for (output,) in owner.execute(find, [tenant_id, task_id]):
            return float(output)
        time.sleep(0.005)
    raise BenchFailed("a task was not run")


@contextmanager
def _cluster(more: dict[str, str]) -> Iterator[None]:
    environment = {**os.environ, "DUCTOR_ROLE": "worker", "DUCTOR_QUEUES": QUEUE, **more}
    command = [sys.executable, str(ROOT / "manage.py"), "qcluster"]
    with tempfile.TemporaryDirectory(prefix="ductor-bench-") as folder:
        path = Path(folder) / "cluster.log"
        with open(path, "wb") as log:
            process = spawn(command, environment=environment, folder=ROOT, output=log, new_session=True)
        with ended(process, 30.0):
            deadline = time.monotonic() + READY_SECONDS
            while b"qcluster ready" not in path.read_bytes():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise BenchFailed("the cluster did not come up")
                time.sleep(0.1)
            yield
