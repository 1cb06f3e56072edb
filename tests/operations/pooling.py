"""PgBouncer in transaction mode before the suite's server. A system package, no wheel: absent on clean machines."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from ductor.database_roles import LOGINS
from ductor.databases import login_settings
from ductor.server_user import server_user
from ductor.testrun import TEST_ROLE
from tests.operations.servers import url_of
from tests.races import wait_until

CONFIG = """
[databases]
* = host={socket_dir}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
"""


class Pooler:
    """A running PgBouncer."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url_of(self, role: str) -> str:
        """Return the URL of a role's login through the pooler."""
        parts = urlsplit(url_of(role))
        return urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.port}", query=""))

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url_of("test"), connect_timeout=3).close()
        except psycopg.OperationalError:
            return False
        return True


def program() -> str:
    """Return PgBouncer's path; without it the test is skipped, or fails where all tests are asked for."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
    if found is None:
        say = pytest.fail if os.environ.get("DUCTOR_TEST_FULL") == "1" else pytest.skip
        say("PgBouncer is not installed here (Debian: apt-get install pgbouncer)")
    return str(found)


@contextmanager
def pooler(size: int) -> Iterator[Pooler]:
    """Run PgBouncer with `size` connections to the server for each role."""
    path = program()
    socket_dir = Path(login_settings(os.environ["DUCTOR_TEST_ADMIN_URL"])["OPTIONS"]["host"])
    # Only the server's own user may reach its socket, and PgBouncer does not run as root.
    user = server_user(socket_dir)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="ductor-pooler-"))
    (folder / "users.txt").write_text("".join(f'"{role}" ""\n' for role in (*LOGINS, TEST_ROLE)))
    (folder / "pgbouncer.ini").write_text(CONFIG.format(socket_dir=socket_dir, port=port, folder=folder, size=size))
    for made in (folder, *folder.iterdir()):
        user.own(made)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [path, str(folder / "pgbouncer.ini")], stdout=log, stderr=subprocess.STDOUT, **user.process_options()
        )
    try:
        running = Pooler(port)
        try:
            wait_until(lambda: running.answers() or process.poll() is not None, timeout=10)
        except AssertionError:
            process.kill()
            raise AssertionError((folder / "log").read_text()) from None
        yield running
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)
