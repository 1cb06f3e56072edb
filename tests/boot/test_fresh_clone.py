"""A newcomer's first hour: clone, `up --once` twice, serve, stop, kill, come back. Long: a whole installation."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from ductor.embedded import EmbeddedServer
from tests.boot.clones import INSTALL_SECONDS, Clone, NamedServer, RunningUp, table_of, until

pytestmark = pytest.mark.full

FIRST_TASK_SECONDS = 120
SECOND_READY_SECONDS = 15


@pytest.fixture(scope="module")
def clone() -> Iterator[Clone]:
    # Below a folder closed to others, as a home is, and with a path too long for a socket beside the data.
    base = Path(tempfile.mkdtemp(prefix="ductor-clone-"))
    folder = base / ("a-rather-long-folder-name-" * 3)
    folder.mkdir()
    clone = Clone(folder)
    yield clone
    EmbeddedServer(folder / ".ductor").destroy(evict=True)
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def first(clone: Clone) -> str:
    """What the very first `up --once` printed."""
    begun = time.monotonic()
    done = clone.manage("up", "--once", *clone.ports, seconds=INSTALL_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    # The table closes the demo: the first finished task lies before it.
    assert time.monotonic() - begun < FIRST_TASK_SECONDS + 60
    return done.stderr + done.stdout


def get(running: RunningUp, path: str, key: str = "") -> int:
    connection = HTTPConnection("127.0.0.1", running.clone.port, timeout=10)
    connection.request("GET", path, headers={"Host": "localhost"} | ({"Authorization": f"Bearer {key}"} if key else {}))
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_first_up_shows_what_it_does_and_then_the_table(clone: Clone, first: str) -> None:
    for words in ("making", "fetching package", "installing", "migrating workflows.0001_initial", "Ductor is ready"):
        assert words in first
    rows = {line.split()[0]: line.split() for line in table_of(first).splitlines() if line.strip()}
    acme, globex = rows["acme"], rows["globex"]
    assert (acme[1], globex[1]) == ("2,000", "20")
    assert all(int(figure.replace(",", "")) > 0 for figure in acme[2:6] + globex[2:6])
    # Enqueued after 2,000 tasks of acme, and done long before them.
    assert float(globex[8]) < float(acme[8].replace(",", "")) / 4
    assert clone.processes() == []


def test_a_second_up_once_prints_the_same_table_again(clone: Clone, first: str) -> None:
    done = clone.manage("up", "--once", *clone.ports, seconds=120)

    assert done.returncode == 0, done.stdout + done.stderr
    assert table_of(done.stdout) == table_of(first)
    assert "fetching package" not in done.stderr
    assert clone.processes() == []


def test_it_serves_beside_other_commands_until_ctrl_c(clone: Clone, first: str) -> None:
    running = clone.start_up().serving()

    assert running.ready_after < SECOND_READY_SECONDS
    assert get(running, "/api/v1/tasks", running.key("acme")) == 200
    assert get(running, "/api/v1/tasks") == 401
    assert running.key("acme") in first
    listed = clone.manage("ductor", "tenants", "list", "--json")
    assert '"acme"' in listed.stdout
    second = clone.manage("up", *clone.ports)
    assert (second.returncode, second.stderr.count("\n")) == (1, 1)
    assert f"already runs (process {(clone.folder / '.ductor' / 'up.lock').read_text()})" in second.stderr

    assert running.stop(signal.SIGINT) == 0
    assert clone.processes() == []


def test_a_closed_terminal_stops_everything(clone: Clone, first: str) -> None:
    terminal, other_end = os.openpty()
    command = [clone.python, str(clone.folder / "manage.py"), "up", "--no-demo", *clone.ports]
    process = subprocess.Popen(
        command, cwd="/", env=clone.environment, stdin=other_end, stdout=other_end, stderr=other_end
    )
    os.close(other_end)
    shown = b""
    while b"serving;" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    process.send_signal(signal.SIGHUP)

    assert process.wait(timeout=60) == 0
    assert clone.processes() == []


def test_sigterm_stops_everything_too_even_what_hangs(clone: Clone, first: str) -> None:
    running = clone.start_up("--no-demo", DUCTOR_DRAIN_SECONDS="1")
    pid = int((clone.folder / ".ductor" / "up.lock").read_text())
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        os.kill(int(child), signal.SIGSTOP)

    assert running.stop(signal.SIGTERM) == 0
    assert clone.processes() == []


def test_another_program_on_the_port_is_one_line(clone: Clone, first: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", clone.operator_port))
        listener.listen()
        done = clone.manage("up", *clone.ports)

    assert done.returncode == 1
    assert done.stderr == (
        f"ductor: port {clone.operator_port} is taken: stop what listens there, or choose another with "
        "--operator-port N\n"
    )


def test_a_killed_up_leaves_only_the_database_and_the_next_goes_on(clone: Clone, first: str) -> None:
    running = clone.start_up("--no-demo")
    running.process.kill()
    running.process.wait()
    until(lambda: len([line for line in clone.processes() if "postgres" not in line]) == 0, 10, clone.processes)
    (server,) = [line for line in clone.processes() if " -D " in line]
    assert "pginstall18" in server

    again = clone.start_up().serving()
    assert again.ready_after < SECOND_READY_SECONDS
    assert get(again, "/api/v1/tasks", again.key("globex")) == 200
    assert again.stop() == 0
    assert clone.processes() == []


def test_a_killed_worker_process_ends_up_with_its_name(clone: Clone, first: str) -> None:
    running = clone.start_up("--no-demo")
    pid = int((clone.folder / ".ductor" / "up.lock").read_text())
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    (cluster,) = [child for child in children if b"qcluster" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(cluster, signal.SIGKILL)

    assert running.process.wait(timeout=60) == 1
    assert "ductor: the cluster process was killed by signal 9" in running.text()
    assert clone.processes() == []


def test_a_killed_database_is_started_again_under_the_running_up(clone: Clone, first: str) -> None:
    running = clone.start_up("--no-demo")
    server = EmbeddedServer(clone.folder / ".ductor")
    pid = server.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    until(lambda: server.is_running() and server.pid() != pid, 30, running.text)
    until(lambda: get(running, "/health/ready") == 200, 30, running.text)
    assert running.stop() == 0


def test_the_same_code_runs_on_a_named_server_by_a_login_without_superuser(clone: Clone, first: str) -> None:
    base = Path(tempfile.mkdtemp(prefix="ductor-named-"))
    server = NamedServer(base)
    home = base / "home"
    variables = {"DATABASE_URL": server.url, "DUCTOR_HOME": str(home)}
    try:
        for _ in range(2):
            prepared = clone.manage("ductor", "init-db", seconds=120, **variables)
            assert prepared.returncode == 0, prepared.stderr
        done = clone.manage("up", "--once", *clone.ports, seconds=300, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2,000" in table_of(done.stdout)
        checked = clone.manage("ductor", "doctor", **variables)
        assert checked.returncode == 0, checked.stdout
        assert not (home / "pg").exists()
        passwords = next(iter(json.loads((home / "roles.json").read_text()).values()))
        assert [password for password in passwords.values() if password in server.log()] == []
    finally:
        server.stop()
        shutil.rmtree(base)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_plain_user_needs_nothing_more(clone: Clone, first: str) -> None:
    python = next((path for path in ("/usr/bin/python3", sys.executable) if os.access(path, os.X_OK)), "")
    base = Path(tempfile.mkdtemp(prefix="ductor-plain-"))
    plain = Clone(base, python)
    for path in (base, *base.rglob("*")):
        os.chown(path, 65534, 65534)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if shutil.which("setpriv") is None or os.system(f"{' '.join(command)} {python} -c 'import ensurepip'") != 0:
        pytest.skip("no Python here that another user may run")
    done = subprocess.run(
        [*command, python, str(base / "manage.py"), "up", "--once", "--no-demo", *plain.ports],
        cwd="/",
        env={**plain.environment, "HOME": str(base)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Ductor is ready.* after", done.stdout)
    assert (base / ".ductor" / "pg").stat().st_uid == 65534
    assert plain.processes() == []
    shutil.rmtree(base)
