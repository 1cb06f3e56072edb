"""The child processes of `up`, as the Procfile names them: started, watched, and stopped to the last one.

honcho reads the Procfile; it does not run it: its manager knows no readiness, kills five seconds after a stop signal
(a cluster drains for longer), and leaves the children of a killed child behind (docs/adr/0005-supervisor.md).
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from honcho.environ import parse_procfile

from ductor.children import spawn
from ductor.up import Stopped, UpFailed

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_LOG_BYTES = 10_000_000
MAX_RELAYED_LINES = 20
KILL_SECONDS = 5.0
ERROR_LEVELS = frozenset({"error", "critical"})


class ChildDied(UpFailed):
    """A process that should serve has ended."""


@dataclass
class Child:
    """A running process and its log."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    read_to: int
    started_at_byte: int

    def new_lines(self) -> list[str]:
        """Return the complete lines written to the log since the last call."""
        with self.log.open("rb") as handle:
            handle.seek(self.read_to)
            data = handle.read()
        whole, newline, _ = data.rpartition(b"\n")
        self.read_to += len(whole) + len(newline)
        return whole.decode(errors="replace").splitlines() if newline else []

    def said(self, text: str) -> bool:
        """Whether this run of the process has written `text` to its log."""
        with self.log.open("rb") as handle:
            handle.seek(self.started_at_byte)
            return text.encode() in handle.read()

    def last_words(self) -> str:
        """The last line of the log that says something."""
        with self.log.open("rb") as handle:
            handle.seek(max(self.started_at_byte, self.log.stat().st_size - 8192))
            lines = [line.strip(" ─╰╯│") for line in handle.read().decode(errors="replace").splitlines()]
        words = [plain(line) for line in lines if line and not line.startswith("[INFO]")]
        return words[-1] if words else "it left no word"


class Supervisor:
    """Starts processes in sessions of their own, so that the terminal's Ctrl-C reaches only `up`, which stops them."""

    def __init__(
        self, logs: Path, say: Callable[[str], None], stop_seconds: float, procfile: Path = ROOT / "Procfile"
    ) -> None:
        self._logs = logs
        self._procfile = procfile
        self._say = say
        self._stop_seconds = stop_seconds
        self.children: list[Child] = []

    def start(self, environment: Mapping[str, str]) -> None:
        """Start every process of the Procfile; call it from the main thread."""
        self._logs.mkdir(parents=True, exist_ok=True)
        for name, command in parse_procfile(self._procfile.read_text()).processes.items():
            log = self._logs / f"{name}.log"
            if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
                log.replace(log.with_suffix(".log.1"))
            with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
                size = output.tell()
                process = _spawn_held(["/bin/sh", "-c", command], environment, output)
            self.children.append(Child(name, process, log, size, size))

    def child(self, name: str) -> Child:
        """Return the process of a name."""
        return next(child for child in self.children if child.name == name)

    def watch(self) -> None:
        """Show new errors of the processes.

        Raises:
            ChildDied: one of them has ended.
        """
        for child in self.children:
            errors = [words for line in child.new_lines() if (words := error_words(line))]
            for words in errors[:MAX_RELAYED_LINES]:
                self._say(f"{child.name}: {words}")
            if len(errors) > MAX_RELAYED_LINES:
                self._say(f"{child.name}: {len(errors) - MAX_RELAYED_LINES} more errors, see {child.log}")
        for child in self.children:
            code = child.process.poll()
            if code is not None:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}: {child.last_words()}"
                raise ChildDied(f"the {child.name} process {how} (log: {child.log})")

    def stop(self) -> None:
        """End every process and all that it started: asked first, killed when the time is up or at a second signal."""
        for child in self.children:
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self._stop_seconds
        try:
            while any(child.process.poll() is None for child in self.children) and time.monotonic() < deadline:
                time.sleep(0.05)
        except Stopped:
            self._say("killing what still runs")
        for child in self.children:
            _kill_session(child.process.pid)
            child.process.wait()


def _spawn_held(command: list[str], environment: Mapping[str, str], output: IO[bytes]) -> "subprocess.Popen[bytes]":
    return spawn(command, environment=environment, folder=ROOT, output=output, new_session=True)


def _kill_session(leader: int) -> None:
    """Kill what is left of a session and wait until it is gone: until then it still holds its locks and its port."""
    deadline = time.monotonic() + KILL_SECONDS
    while (left := _session_of(leader)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _session_of(leader: int) -> list[int]:
    """Return the living processes in the session that `leader` began, itself included."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            # The command's name, in brackets, may hold spaces; after it come state, parent, group and session.
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found.append(int(name))
    return found


def error_words(line: str) -> str:
    """Return what a log line says if it tells of an error, else an empty string."""
    with contextlib.suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict):
            return plain(line) if event.get("level") in ERROR_LEVELS else ""
    return line.strip() if line.startswith(("[ERROR]", "ERROR", "CRITICAL")) or "Error: " in line else ""


def plain(line: str) -> str:
    """Return a log line as a sentence: the event of a JSON line, with the class of its exception."""
    try:
        event = json.loads(line)
    except ValueError:
        return line.strip()
    if not isinstance(event, dict):
        return line.strip()
    exceptions = event.get("exception")
    first = exceptions[0].get("class", "") if isinstance(exceptions, list) and exceptions else ""
    return f"{event.get('event', '')} ({first})" if first else str(event.get("event", line))
