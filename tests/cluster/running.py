"""A real `qcluster` in its own process group, and what the tests want to know of it. Linux: it reads /proc."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 20.0


def until(holds: Callable[[], object], *, seconds: float = 15.0, what: Callable[[], object] = lambda: "") -> None:
    """Wait until `holds()`; fails after `seconds` with what `what()` says then."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"still not so after {seconds} s: {what()}"
        time.sleep(0.03)


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class RunningCluster:
    """One `qcluster` and all processes it was ever seen to have."""

    def __init__(self, *options: str, env: dict[str, str], folder: Path) -> None:
        self.log_file = folder / f"qcluster-{time.monotonic_ns()}.log"
        self.trace_file = Path(env["DUCTOR_TEST_TRACE"])
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "django", "qcluster", *options],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.seen = {self.process.pid}

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def sentinel(self) -> int:
        return children_of(self.process.pid)[0]

    @property
    def workers(self) -> list[int]:
        return children_of(self.sentinel)

    def wait_ready(self) -> "RunningCluster":
        until(lambda: "qcluster ready" in self.log or self.process.poll() is not None, seconds=READY_SECONDS)
        assert self.process.poll() is None, self.log
        self.note_processes()
        return self

    def note_processes(self) -> None:
        sentinels = children_of(self.process.pid)
        self.seen.update(sentinels, *(children_of(sentinel) for sentinel in sentinels))

    def signal_group(self, number: signal.Signals) -> None:
        self.note_processes()
        os.killpg(self.process.pid, number)

    def signal_one(self, pid: int, number: signal.Signals) -> None:
        self.note_processes()
        os.kill(pid, number)

    def wait_end(self, seconds: float = 10.0) -> int:
        """Return the exit code; fails when the cluster does not end in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the cluster did not end within {seconds} s:\n{self.log}") from None

    def leftovers(self) -> list[int]:
        """Processes of this cluster that are still there a second after its end."""
        end = time.monotonic() + 1
        while time.monotonic() < end and any(map(is_alive, self.seen)):
            time.sleep(0.02)
        return [pid for pid in self.seen if is_alive(pid)]

    def executions(self) -> Counter[str]:
        """How often each task's handler was begun."""
        if not self.trace_file.exists():
            return Counter()
        return Counter(line.split()[0] for line in self.trace_file.read_text().splitlines())

    def destroy(self) -> None:
        """For the end of a test, however it went."""
        if self.process.poll() is None:
            self.signal_group(signal.SIGKILL)
            self.process.wait()
