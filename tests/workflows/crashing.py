"""Worker processes that die at a named point, and what they traced before."""

import os
import signal
import subprocess
import sys
from pathlib import Path


def worker_environment(trace: Path, crash_point: str = "") -> dict[str, str]:
    """Return the environment of a worker process that has the authors' app."""
    return {
        **os.environ,
        "DUCTOR_ROLE": "worker",
        "DUCTOR_APPS": "tests.workflows.authors,tests.watching",
        "DUCTOR_TEST_TRACE": str(trace),
        "DUCTOR_TEST_CRASH_POINT": crash_point,
    }


class CrashingWorker:
    """Runs workers over the authors' app; each execution of a handler leaves a line in the trace."""

    def __init__(self, folder: Path) -> None:
        self.trace = folder / "trace"

    def run(self, crash_point: str = "") -> int:
        """Run a worker to its end; returns its exit code, -9 where it died at the point."""
        command = [sys.executable, "-m", "tests.workflows.run_worker"]
        return subprocess.run(command, env=worker_environment(self.trace, crash_point), timeout=60).returncode

    def dies_at(self, crash_point: str) -> None:
        assert self.run(crash_point) == -signal.SIGKILL

    def executions(self) -> list[str]:
        """Return one line `step attempt` for each execution so far."""
        return self.trace.read_text().splitlines() if self.trace.exists() else []
