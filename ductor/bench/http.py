"""Single starts over HTTP: a tenant surface as an operator runs it, and clients in a process of their own."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg

from ductor.bench import ground
from ductor.bench.load import Job, Load
from ductor.bench.server import ROOT, BenchFailed, ended
from ductor.children import spawn
from ductor.serving import STOP_SECONDS

TENANTS = 10
# Enough to keep two server processes busy, few enough that what is measured is the server and not a crowd.
CONNECTIONS = 16
READY_SECONDS = 60.0
PACE = 200.0
BODY = json.dumps({"workflow": "bench-noop", "input": ground.PAYLOAD, "queue": "bench-http"})


def figures(owner: "psycopg.Connection[Any]", seconds: float, **environment: str) -> dict[str, float]:
    """Starts a second with the next sent when one is answered, and p50 and p95 (ms) at 200 a second by the clock.

    Each start is a request, a transaction and a commit of its own, of ten tenants in turn; the database is asked
    afterwards whether it holds as many tasks as were answered with 201. `environment` goes to the surface.

    Raises:
        BenchFailed: the surface does not come up, a start was refused, or one is missing.
    """
    tenants = ground.make_tenants(owner, "http", TENANTS)
    keys = [ground.make_key(owner, tenant_id) for tenant_id in tenants]
    with surface(**environment) as port:
        # Connections, prepared statements, the tenants' definitions and turns.
        warm = _drive(Job(port, "/api/v1/tasks", BODY, keys, CONNECTIONS, min(2.0, seconds)))
        full = _drive(Job(port, "/api/v1/tasks", BODY, keys, CONNECTIONS, seconds))
        paced = _drive(Job(port, "/api/v1/tasks", BODY, keys, CONNECTIONS, seconds, rate=PACE))
    ((held,),) = owner.execute("select count(*) from workflows_task where queue = 'bench-http'").fetchall()
    if held != warm.started + full.started + paced.started:
        raise BenchFailed(f"the surface said that it started more or fewer tasks than the {held} that are there")
    cuts = statistics.quantiles(paced.latencies, n=100)
    return {
        "http_enqueue_per_s": full.started / full.seconds,
        "http_p50_ms": cuts[49] * 1000,
        "http_p95_ms": cuts[94] * 1000,
    }


@contextmanager
def surface(**more: str) -> Iterator[int]:
    """Run a tenant surface of this environment on a free loopback port; yields the port.

    Raises:
        BenchFailed: it does not answer in a minute.
    """
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="ductor-bench-") as folder:
        # As `up` has it: HTTP figures shared by the processes, and the log in a file.
        environment = {**os.environ, "DUCTOR_PORT": str(port), "PROMETHEUS_MULTIPROC_DIR": folder, **more}
        with open(Path(folder) / "web.log", "wb") as log:
            command = [sys.executable, "-m", "ductor.serving", "web"]
            process = spawn(command, environment=environment, folder=ROOT, output=log, new_session=True)
        with ended(process, STOP_SECONDS + 5):
            _await_ready(process, port)
            yield port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/health/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise BenchFailed("the tenant surface did not come up")


def _drive(job: Job) -> Load:
    command = [sys.executable, "-m", "ductor.bench.load"]
    done = subprocess.run(command, input=json.dumps(asdict(job)), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise BenchFailed("the clients broke off: the surface closed a connection or did not answer")
    load = Load(**json.loads(done.stdout))
    if load.refused or not load.started:
        raise BenchFailed(f"the surface refused {load.refused} of {load.refused + load.started} starts")
    return load
