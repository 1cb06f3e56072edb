"""Ticks of many tenants, interleaved on two processes and their threads: each reads its own tenant, always."""

import subprocess
import sys
from pathlib import Path

from tests.builders import assert_counters_true, build_tenant, rows
from tests.workflows.authors import workflows as authors
from tests.workflows.crashing import worker_environment

TENANTS = 50
TASKS_EACH = 3


def test_interleaved_ticks_read_their_own_tenant_before_and_after_every_step(tmp_path: Path) -> None:
    tenants = [build_tenant() for _ in range(TENANTS)]
    for _ in range(TASKS_EACH):
        for tenant in tenants:
            authors.looks.start({"expected": str(tenant.id)}, tenant=tenant.id)

    command = [sys.executable, "-m", "tests.workflows.run_worker"]
    workers = [subprocess.Popen(command, env=worker_environment(tmp_path / "trace")) for _ in range(2)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]

    assert rows("select error from workflows_task where state <> 'completed'") == []
    assert rows("select count(*)::int from workflows_task") == [(TENANTS * TASKS_EACH,)]
    steps = rows("select state, count(*)::int from workflows_step group by 1 order by 1")
    assert steps == [("completed", TENANTS * TASKS_EACH * 6), ("failed", TENANTS * TASKS_EACH)]
    assert_counters_true()
