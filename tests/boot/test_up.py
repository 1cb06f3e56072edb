"""`up` before it starts anything: its flags, its lock, its ports, its question."""

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ductor.up import UpFailed
from ductor.up.options import Options, read
from ductor.up.session import answers, check_port, drain_seconds

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def up(home: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    """Run the session as manage.py does, on the embedded server of `home`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DUCTOR_")}
    code = "import sys; from ductor.up import session; sys.exit(session.main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *flags],
        cwd=ROOT,
        env={**kept, "DUCTOR_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_flags() -> None:
    assert read([]) == Options(
        once=False, demo=True, reset=False, yes=False, port=8000, operator_port=8001, workers=None
    )
    flags = "--once --no-demo --reset --yes --port 9000 --operator-port 9001 --workers 4"
    assert read(flags.split()) == Options(
        once=True, demo=False, reset=True, yes=True, port=9000, operator_port=9001, workers=4
    )


@pytest.mark.parametrize(
    "flags", ["--port 0", "--port 65536", "--port x", "--workers 0", "--workers 257", "--port 8001", "--nonsense"]
)
def test_wrong_flags_end_with_2(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        read(flags.split())

    assert end.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_taken_port_is_named_with_the_flag_that_helps(taken: int) -> None:
    with pytest.raises(UpFailed, match=rf"port {taken} is taken.*--operator-port N"):
        check_port(taken, "--operator-port")


def test_a_port_that_nobody_serves_does_not_answer(taken: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]

    assert not answers(free)
    check_port(free, "--port")


def test_the_drain_time_is_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUCTOR_DRAIN_SECONDS", raising=False)
    assert drain_seconds() == 25.0
    monkeypatch.setenv("DUCTOR_DRAIN_SECONDS", "2.5")
    assert drain_seconds() == 2.5
    monkeypatch.setenv("DUCTOR_DRAIN_SECONDS", "soon")
    with pytest.raises(UpFailed, match="DUCTOR_DRAIN_SECONDS must be a number of seconds"):
        drain_seconds()


def test_a_taken_port_is_one_line_and_starts_nothing(tmp_path: Path, taken: int) -> None:
    done = up(tmp_path / "home", "--port", str(taken))

    assert done.returncode == 1
    assert done.stderr == (f"ductor: port {taken} is taken: stop what listens there, or choose another with --port N\n")
    assert not (tmp_path / "home" / "pg").exists()


def test_a_second_up_is_one_line_and_starts_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with (home / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        done = up(home)

    assert done.returncode == 1
    assert done.stderr == f"ductor: an `up` already runs (process 4711) on {home}: stop it first\n"
    assert not (home / "pg").exists()


def test_a_reset_that_nobody_can_answer_removes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "pg").mkdir(parents=True)
    (home / "pg" / "kept").touch()

    done = up(home, "--reset", "--port", "18411", "--operator-port", "18412")

    assert done.returncode == 1
    assert done.stderr == "ductor: --reset asks before it removes the database: add --yes where nobody can answer\n"
    assert (home / "pg" / "kept").exists()


def test_a_damaged_folder_is_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "pg").mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(home / "pg", 65534, 65534)
    (home / "pg" / "something").touch()

    done = up(home, "--port", "18413", "--operator-port", "18414")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"ductor: the database folder {home / 'pg'} is damaged")
    assert (home / "pg" / "something").exists()


def test_a_named_database_is_not_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://a:b@127.0.0.1:9/shop")

    done = up(tmp_path / "home", "--reset", "--yes", "--port", "18415", "--operator-port", "18416")

    assert done.returncode == 1
    assert "--reset removes the embedded database only" in done.stderr
