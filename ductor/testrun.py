"""`manage.py test`: every check of the project, on PostgreSQL 18 servers of its own that are gone afterwards.

The whole suite is divided by files over two processes of pytest, each with a server of its own, so that neither sees
what the other does; with a path named, one of each will do.

pytest runs last, so that its closing line is the last thing to read; what failed before it is named just above.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import quote

import psycopg

from ductor import database_roles, databases, init_db
from ductor.children import spawn
from ductor.embedded import SUPERUSER, EmbeddedServer, ServerFailed

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "ductor-test-"
TEST_ROLE = "ductor_test"
PROCESSES = 2

# A test server may forget everything at a power cut; it is the same server otherwise.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "max_wal_size": "4GB",
    "max_connections": "300",
}

# By module and not by script: the scripts of an environment hold its first path, and a checkout may be moved.
CHECKS = (
    ("ruff check", [sys.executable, "-m", "ruff", "check", "."]),
    ("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "."]),
    ("mypy", [sys.executable, "-m", "mypy"]),
    ("lint-imports", [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]),
    ("makemigrations", [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"]),
)


class Stopped(Exception):
    """SIGTERM or Ctrl-C asked the run to end."""

    def __init__(self, number: int) -> None:
        self.number = number


def main(arguments: Sequence[str]) -> int:
    """Run the checks and pytest; return the exit code: pytest's own, or 1 where only a check failed.

    `--full` adds the long tests. Other arguments go to pytest; with a path among them only pytest runs.
    """
    rest = [argument for argument in arguments if argument != "--full"]
    if len(rest) < len(arguments):
        os.environ["DUCTOR_TEST_FULL"] = "1"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    remove_leftovers()
    count = 1 if _names_path(rest) else PROCESSES
    homes = [Path(tempfile.mkdtemp(prefix=PREFIX)) for _ in range(count)]
    servers = [EmbeddedServer(home, SETTINGS) for home in homes]
    try:
        ways = [_begin(server) for server in servers]
        os.environ["DUCTOR_TEST_SERVERS"] = json.dumps(ways)
        return _run(rest, count)
    except Stopped as stop:
        return 128 + stop.number
    except (ServerFailed, init_db.InitFailed) as failure:
        print(f"ductor: {failure}", file=sys.stderr)
        return 1
    finally:
        _remove(servers)


def _begin(server: EmbeddedServer) -> dict[str, str]:
    """Start a server with roles and tables; return the environment that leads to it."""
    server.acquire()
    way = prepare_server(server)
    os.environ.update(way)
    init_db.migrate()
    return way


def prepare_server(server: EmbeddedServer) -> dict[str, str]:
    """Make the roles as init-db does, and one for the tests; return the environment that leads to them.

    Raises:
        InitFailed: the server refused.
    """
    socket_dir = str(server.socket_dir)
    base = {"HOST": socket_dir, "PORT": "", "PASSWORD": "", "USER": SUPERUSER}
    init_db.prepare({**base, "NAME": databases.DATABASE_NAME}, trusted=True)
    with psycopg.connect(host=socket_dir, user=SUPERUSER, dbname="template1", autocommit=True) as connection:
        # Databases that tests make are copies of template1: they get the same closed schema.
        database_roles.own_schema(connection)
        connection.execute(f"alter role {database_roles.OWNER} createdb")
        connection.execute(f"create role {TEST_ROLE} login in role ductor_web, ductor_worker")
    names = [(role.removeprefix("ductor_"), role) for role in (*database_roles.LOGINS, TEST_ROLE)]
    urls = {f"DUCTOR_DATABASE_URL_{name.upper()}": _url(role, databases.DATABASE_NAME, server) for name, role in names}
    return {**urls, "DUCTOR_TEST_ADMIN_URL": _url(SUPERUSER, "postgres", server), "DUCTOR_HOME": str(server.home)}


def remove_leftovers() -> None:
    """Remove the servers of earlier runs that were killed outright; running ones hold their lock and stay."""
    for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if home.stat().st_uid == os.geteuid():
                EmbeddedServer(home, SETTINGS).destroy()
                shutil.rmtree(home)
        except (ServerFailed, OSError):
            continue


def _url(role: str, database: str, server: EmbeddedServer) -> str:
    return f"postgresql://{role}@/{database}?host={quote(str(server.socket_dir), safe='')}"


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


def _remove(servers: Sequence[EmbeddedServer]) -> None:
    # A second signal must not leave a server behind.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for server in servers:
        server.destroy(evict=True)
        shutil.rmtree(server.home, ignore_errors=True)


def _run(arguments: Sequence[str], processes: int) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in _foreign()}
    failed = [] if _names_path(arguments) else [name for name, command in CHECKS if _check(name, command, environment)]
    if failed:
        print(f"ductor: failed before the tests: {', '.join(failed)}", file=sys.stderr, flush=True)
    divided = ["-n", str(processes), "--dist", "loadfile"] if processes > 1 else []
    code = _call([sys.executable, "-m", "pytest", *divided, *arguments], environment)
    return code or (1 if failed else 0)


def _foreign() -> set[str]:
    """Name what would lead the tests to another database, role or setting than the ones they ask for."""
    ours = ("DUCTOR_HOME", "DUCTOR_DATABASE_URL_", "DUCTOR_TEST_")
    own = {name for name in os.environ if name.startswith("DUCTOR_") and not name.startswith(ours)}
    return own | {"DATABASE_URL", "DATABASE_DIRECT_URL", "VALKEY_URL"}


def _names_path(arguments: Sequence[str]) -> bool:
    return any(not item.startswith("-") and (ROOT / item.partition("::")[0]).exists() for item in arguments)


def _check(name: str, command: list[str], environment: dict[str, str]) -> bool:
    """Run one check; return whether it failed."""
    print(f"{name} …", flush=True)
    return _call(command, environment) != 0


def _call(command: list[str], environment: dict[str, str]) -> int:
    """Run a command to its end; when this run is told to stop, the command ends first."""
    with spawn(command, environment=environment, folder=ROOT) as process:
        try:
            return process.wait()
        except Stopped as stop:
            _end(process, patient=stop.number == signal.SIGINT)
            raise


def _end(process: "subprocess.Popen[bytes]", *, patient: bool) -> None:
    """End a command. A terminal's Ctrl-C has reached it as well: let it close with its own words."""
    for number, seconds in ((None, 10 if patient else 0), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        if number is not None:
            process.send_signal(number)
        try:
            process.wait(timeout=seconds)
        except (subprocess.TimeoutExpired, Stopped):
            continue
        return
