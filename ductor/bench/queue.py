"""Enqueueing, and no-op tasks end to end through a real cluster of two workers."""

import os
import subprocess
import sys
import time
from typing import Any

import psycopg

from ductor.bench import ground
from ductor.bench.server import ROOT
from workflows.admission import NewTask, enqueue

WORKERS = 2


def enqueue_bulk_per_s(owner: "psycopg.Connection[Any]", tasks: int) -> float:
    """Tasks a second, 1,000 a call, over 100 tenants; what is enqueued is what `noop_per_s` runs."""
    tenants = ground.make_tenants(owner, "noop", 100)
    begun = time.monotonic()
    count = ground.fill(tenants, tasks // 100, "default")
    return count / (time.monotonic() - begun)


def enqueue_single_per_s(owner: "psycopg.Connection[Any]", calls: int) -> float:
    """Tasks a second, one a transaction, one client after the other."""
    (tenant_id,) = ground.make_tenants(owner, "single", 1)
    begun = time.monotonic()
    for _ in range(calls):
        task = NewTask("bench-noop", 1, ground.PAYLOAD, queue="bench-few")
        enqueue(tenant_id=tenant_id, tasks=[task], principal=ground.PRINCIPAL)
    return calls / (time.monotonic() - begun)


def noop_per_s(owner: "psycopg.Connection[Any]") -> float:
    """Tasks a second from the first claim to the last finish, everything durable; waits until the queue is empty."""
    owner.execute("vacuum analyze workflows_task")
    command = [sys.executable, str(ROOT / "manage.py"), "qcluster", "--workers", str(WORKERS), "--once-idle"]
    environment = {**os.environ, "DUCTOR_ROLE": "worker", "DUCTOR_QUEUES": "default"}
    subprocess.run(command, env=environment, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ((done, seconds),) = owner.execute(
        "select count(*), extract(epoch from max(terminal_at) - min(claimed_at))::float from workflows_task"
        " where queue = 'default' and state = 'completed'"
    ).fetchall()
    return float(done / seconds)
