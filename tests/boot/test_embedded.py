"""The embedded server: private, shared by locks, adopted after a kill, honest about damage."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ductor.embedded import MAX_SOCKET_PATH, SOCKET_NAME, EmbeddedServer, ServerInUse
from ductor.postgres import DataDamaged, ServerFailed, VersionMismatch, prepare_folder
from ductor.server_user import server_user

ROOT = Path(__file__).resolve().parents[2]
USER = """
import sys
from pathlib import Path
from ductor.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.acquire()
print(server.pid(), flush=True)
sys.stdin.read()
server.release()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ductor-boot-"))
    yield folder
    EmbeddedServer(folder).destroy(evict=True)
    shutil.rmtree(folder)


class OtherUser:
    """Another process that uses the server until it is told to end."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-c", USER, str(home)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def server_pid(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


def ask(server: EmbeddedServer, query: str) -> str:
    with psycopg.connect(host=str(server.socket_dir), user="postgres", dbname="postgres") as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def test_it_serves_one_private_socket_and_keeps_what_it_confirms(home: Path) -> None:
    server = EmbeddedServer(home)
    server.acquire()

    assert ask(server, "show server_version").startswith("18.")
    assert ask(server, "show listen_addresses") == ""
    assert ask(server, "show fsync") == ask(server, "show full_page_writes") == "on"
    for folder in (server.data, server.socket_dir):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert server.data.stat().st_uid != 0

    server.release()
    assert server.pid() is None
    assert not (server.socket_dir / SOCKET_NAME).exists()


def test_variables_for_another_server_do_not_matter(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "7777")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    server = EmbeddedServer(home)
    server.acquire()

    assert (server.socket_dir / SOCKET_NAME).is_socket()
    server.release()


def test_the_last_user_stops_it_and_nobody_else(home: Path) -> None:
    first, second = OtherUser(home), OtherUser(home)
    pid = first.server_pid()
    assert second.server_pid() == pid
    server = EmbeddedServer(home)
    server.acquire()
    server.acquire()

    first.end()
    assert server.pid() == pid
    server.release()
    assert server.pid() == pid
    server.release()
    assert server.pid() == pid
    second.end()
    assert server.pid() is None


def test_a_killed_users_server_is_adopted(home: Path) -> None:
    user = OtherUser(home)
    pid = user.server_pid()
    user.kill()
    server = EmbeddedServer(home)
    assert server.pid() == pid

    server.acquire()
    assert server.pid() == pid
    server.release()
    assert server.pid() is None


def test_a_forked_child_does_not_stop_its_parents_server(home: Path) -> None:
    server = EmbeddedServer(home)
    server.acquire()
    child = os.fork()
    if child == 0:
        server.release()
        os._exit(0)
    os.waitpid(child, 0)

    assert server.is_running()
    server.release()


def test_a_killed_server_starts_again_with_its_data(home: Path) -> None:
    server = EmbeddedServer(home)
    server.acquire()
    with psycopg.connect(host=str(server.socket_dir), user="postgres", dbname="postgres") as connection:
        connection.execute("create table kept as select 1 as one")
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while server.pid() is not None and time.monotonic() < deadline:
        time.sleep(0.02)

    server.revive()
    assert ask(server, "select one from kept") == "1"
    assert server.pid() != pid
    server.release()


def test_a_pid_file_with_another_processs_number_is_no_server(home: Path) -> None:
    server = EmbeddedServer(home)
    server.acquire()
    lines = (server.data / "postmaster.pid").read_text().splitlines()
    server.release()
    # As after the restart of a container, where small numbers come again.
    (server.data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")

    assert server.pid() is None
    server.acquire()
    assert server.is_running()
    server.release()


def test_a_long_path_gets_its_socket_elsewhere(home: Path) -> None:
    far = home / ("long-" * 12) / ("longer-" * 12)
    server = EmbeddedServer(far)
    server.acquire()

    assert len(os.fsencode(far / "pg-socket" / SOCKET_NAME)) > MAX_SOCKET_PATH
    assert server.socket_dir.parent == Path("/tmp")
    assert stat.S_IMODE(server.socket_dir.stat().st_mode) == 0o700
    assert ask(server, "select 1") == "1"
    server.release()
    server.destroy()
    assert not server.socket_dir.exists()


def test_a_socket_folder_that_others_may_enter_is_refused(home: Path) -> None:
    folder = home / "open"
    folder.mkdir(mode=0o755)

    with pytest.raises(ServerFailed, match="not a private folder"):
        prepare_folder(folder, server_user(home / "pg"))


@pytest.mark.parametrize(
    ("damage", "failure", "told"),
    [
        ("no version", DataDamaged, "PG_VERSION is missing"),
        ("old version", VersionMismatch, "made by PostgreSQL 16"),
        ("no control file", DataDamaged, "global/pg_control is missing"),
        ("garbled control file", DataDamaged, "database files are incompatible|incorrect checksum|invalid"),
        ("no log", DataDamaged, "pg_wal is missing"),
    ],
)
def test_a_damaged_folder_is_one_line_and_left_as_it_is(
    home: Path, damage: str, failure: type[ServerFailed], told: str
) -> None:
    server = EmbeddedServer(home)
    server.acquire()
    server.release()
    control = server.data / "global" / "pg_control"
    if damage == "no version":
        (server.data / "PG_VERSION").unlink()
    elif damage == "old version":
        (server.data / "PG_VERSION").write_text("16\n")
    elif damage == "no control file":
        control.unlink()
    elif damage == "garbled control file":
        control.write_bytes(b"\x55" * 8192)
    else:
        shutil.rmtree(server.data / "pg_wal")

    with pytest.raises(failure, match=told) as refusal:
        server.acquire()

    assert "\n" not in str(refusal.value)
    assert str(server.data) in str(refusal.value)
    assert (server.data / "base").exists()
    assert server.pid() is None


def test_a_killed_first_start_leaves_nothing_half_made(home: Path) -> None:
    (home / "pg.new").mkdir()
    (home / "pg.new" / "PG_VERSION").write_text("18\n")
    server = EmbeddedServer(home)

    server.acquire()

    assert server.is_running()
    assert not (home / "pg.new").exists()
    server.release()


def test_data_in_use_are_not_removed(home: Path) -> None:
    user = OtherUser(home)
    pid = user.server_pid()
    server = EmbeddedServer(home)

    with pytest.raises(ServerInUse, match="other Ductor processes"):
        server.destroy()
    assert server.pid() == pid
    user.end()
    server.destroy()
    assert not server.data.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user to change to")
def test_root_gives_passage_through_closed_folders_and_nothing_more(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedServer(closed / "home")
    server.acquire()

    user = server_user(server.data)
    options = {"cwd": "/", **user.process_options()}
    assert user.uid != 0
    assert subprocess.run(["/bin/ls", str(closed)], capture_output=True, **options).returncode != 0
    other = {"cwd": "/", "user": 65534, "group": 65534, "extra_groups": []}
    assert subprocess.run(["/bin/sh", "-c", f"test -x {closed}"], **other).returncode != 0
    server.release()
    server.destroy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a user to change to")
def test_a_way_that_was_closed_under_the_running_server_is_opened_again(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedServer(closed / "home")
    server.acquire()
    closed.chmod(0o700)
    (closed / "home").chmod(0o700)

    assert ask(server, "select 1") == "1"
    server.release()
    assert server.pid() is None
    server.destroy()
