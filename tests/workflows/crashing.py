"""Worker processes that die at a named point, and what they traced before."""

import os
import signal
import subprocess
import sys
from pathlib import Path


class CrashingWorker:
    """Runs workers over the authors' app; each execution of a handler leaves a line in the trace."""

    def __init__(self, folder: Path) -> None:
        self.trace = folder / "trace"

    def run(self, crash_point: str = "") -> int:
        """Run a worker to its end; returns its exit code, -9 where it died at the point."""
        env = {
            **os.environ,
            "DUCTOR_ROLE": "worker",
            "DUCTOR_APPS": "tests.workflows.authors",
            "DUCTOR_TEST_TRACE": str(self.trace),
            "DUCTOR_TEST_CRASH_POINT": crash_point,
        }
        done = subprocess.run([sys.executable, "-m", "tests.workflows.run_worker"], env=env, timeout=60)
        return done.returncode

    def dies_at(self, crash_point: str) -> None:
        assert self.run(crash_point) == -signal.SIGKILL

    def executions(self) -> list[str]:
        """Return one line `step attempt` for each execution so far."""
        return self.trace.read_text().splitlines() if self.trace.exists() else []
