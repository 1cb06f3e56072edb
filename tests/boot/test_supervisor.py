"""The processes of `up`: what they say is relayed, and none of them outlives it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ductor.up.supervisor import ChildDied, Supervisor, error_words, plain

ROOT = Path(__file__).resolve().parents[2]
# A child that a child starts; the marker is how the test finds them.
FAMILY = "sleep 3{mark} & exec sleep 2{mark}"
STUBBORN = "trap '' TERM INT; sleep 3{mark} & while true; do sleep 0.1; done"


def until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def living(mark: int) -> list[int]:
    """Processes whose command line holds the marker, zombies aside."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and str(mark).encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


@pytest.fixture
def mark() -> int:
    return 100_000_000 + time.monotonic_ns() % 100_000_000


@pytest.fixture
def said() -> list[str]:
    return []


def started(tmp_path: Path, said: list[str], **commands: str) -> Supervisor:
    procfile = tmp_path / "Procfile"
    procfile.write_text("".join(f"{name}: {command}\n" for name, command in commands.items()))
    supervisor = Supervisor(tmp_path / "logs", said.append, stop_seconds=1.0, procfile=procfile)
    supervisor.start(os.environ)
    return supervisor


def test_a_stop_ends_every_process_and_its_children(tmp_path: Path, said: list[str], mark: int) -> None:
    supervisor = started(tmp_path, said, web=FAMILY.format(mark=mark), cluster=FAMILY.format(mark=mark))
    until(lambda: len(living(mark)) == 4)

    supervisor.stop()

    assert living(mark) == []


def test_a_process_that_hangs_is_killed_when_its_time_is_up(tmp_path: Path, said: list[str], mark: int) -> None:
    supervisor = started(tmp_path, said, web=STUBBORN.format(mark=mark), cluster=FAMILY.format(mark=mark))
    until(lambda: len(living(mark)) == 4)
    begun = time.monotonic()

    supervisor.stop()

    assert 1.0 <= time.monotonic() - begun < 5.0
    assert living(mark) == []


def test_a_stopped_process_is_ended_too(tmp_path: Path, said: list[str], mark: int) -> None:
    supervisor = started(tmp_path, said, web=FAMILY.format(mark=mark))
    until(lambda: len(living(mark)) == 2)
    os.kill(supervisor.child("web").process.pid, signal.SIGSTOP)

    supervisor.stop()

    assert living(mark) == []


def test_a_death_is_told_with_the_process_and_its_last_words(tmp_path: Path, said: list[str]) -> None:
    supervisor = started(tmp_path, said, web="echo first; echo the port is gone; exit 3")
    supervisor.child("web").process.wait(timeout=10)

    with pytest.raises(ChildDied, match=r"the web process ended with code 3: the port is gone \(log: .*web\.log\)"):
        supervisor.watch()
    supervisor.stop()


def test_a_kill_is_told_as_one(tmp_path: Path, said: list[str]) -> None:
    supervisor = started(tmp_path, said, cluster="exec sleep 60")
    supervisor.watch()
    supervisor.child("cluster").process.kill()
    supervisor.child("cluster").process.wait(timeout=10)

    with pytest.raises(ChildDied, match="the cluster process was killed by signal 9"):
        supervisor.watch()
    supervisor.stop()


def test_errors_in_the_logs_are_relayed_and_the_rest_is_kept(tmp_path: Path, said: list[str]) -> None:
    error = json.dumps({"event": "turn failed", "level": "error", "exception": [{"class": "builtins.OSError"}]})
    info = json.dumps({"event": "request", "level": "info"})
    supervisor = started(tmp_path, said, web=f"echo '{info}'; echo '{error}'; exec sleep 60")
    log = tmp_path / "logs" / "web.log"
    until(lambda: log.read_text().count("\n") == 2)

    supervisor.watch()
    supervisor.watch()

    assert said == ["web: turn failed (builtins.OSError)"]
    assert log.stat().st_mode & 0o777 == 0o600
    supervisor.stop()


def test_only_this_runs_words_count_as_said(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "cluster.log").write_text("qcluster ready\n")
    supervisor = started(tmp_path, said, cluster="sleep 0.3; echo qcluster ready; exec sleep 60")

    assert not supervisor.child("cluster").said("qcluster ready")
    until(lambda: supervisor.child("cluster").said("qcluster ready"))
    supervisor.stop()


def test_children_die_with_a_killed_up(tmp_path: Path, mark: int) -> None:
    (tmp_path / "Procfile").write_text(f"web: exec sleep 2{mark}\ncluster: exec sleep 3{mark}\n")
    code = (
        "import os, time; from pathlib import Path; from ductor.up.supervisor import Supervisor\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "Supervisor(folder / 'logs', print, 1.0, folder / 'Procfile').start(os.environ); time.sleep(60)"
    )
    up = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    until(lambda: len(living(mark)) == 2)

    up.kill()
    up.wait()

    until(lambda: living(mark) == [], seconds=5)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"event": "stopped", "level": "warning"}', ""),
        ('{"event": "broken", "level": "critical"}', "broken"),
        ("[ERROR] Unexpected exit from worker-1", "[ERROR] Unexpected exit from worker-1"),
        ("ModuleNotFoundError: No module named 'x'", "ModuleNotFoundError: No module named 'x'"),
        ("[INFO] Listening at: http://127.0.0.1:8000", ""),
        ("[1, 2]", ""),
    ],
)
def test_error_words(line: str, words: str) -> None:
    assert error_words(line) == words


def test_a_log_line_becomes_a_sentence() -> None:
    assert plain('{"event": "gone", "level": "error"}') == "gone"
    assert plain(" as it is ") == "as it is"
