"""A fresh clone as a newcomer has it: the project's files in a folder of its own, nothing installed, a clean shell."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from ductor.postgres import binaries
from ductor.server_user import server_user

ROOT = Path(__file__).resolve().parents[2]
INSTALL_SECONDS = 600


def until(holds: Callable[[], object], seconds: float, what: Callable[[], object] = lambda: "") -> None:
    """Wait until `holds()`; fails after `seconds` with what `what()` says then."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so after {seconds} s: {what()}"
        time.sleep(0.1)


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def project_files() -> list[str]:
    """The files that belong to the project: tracked ones, and new ones that are not ignored."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def clean_environment(home: Path) -> dict[str, str]:
    """What a login shell has: nothing of Ductor's, nothing of this virtual environment."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    parts = [part for part in kept["PATH"].split(os.pathsep) if ".venv" not in part]
    return {**kept, **pip, "PATH": os.pathsep.join(parts), "HOME": str(home)}


class Clone:
    """A folder with the project's files and the commands a person gives in it."""

    def __init__(self, folder: Path, python: str = "") -> None:
        self.folder = folder
        # The interpreter behind this virtual environment, as a newcomer would have it.
        self.python = python or getattr(sys, "_base_executable", sys.executable)
        self.port, self.operator_port = free_port(), free_port()
        self.environment = clean_environment(Path(os.environ.get("HOME", "/")))
        for name in project_files():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)

    @property
    def ports(self) -> list[str]:
        return ["--port", str(self.port), "--operator-port", str(self.operator_port)]

    def manage(self, *arguments: str, seconds: float = 60, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run `python3 manage.py …` from another folder, as nothing may depend on the current one."""
        return subprocess.run(
            [self.python, str(self.folder / "manage.py"), *arguments],
            cwd="/",
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def start_up(self, *flags: str, **variables: str) -> "RunningUp":
        """Start `up` and wait for its ready line."""
        return RunningUp(self, list(flags), variables)

    def processes(self) -> list[str]:
        """Command lines of what runs in this clone: its working directory or its program lies here."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                if not folder.name.isdigit():
                    continue
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                here = Path(os.readlink(folder / "cwd")).is_relative_to(self.folder)
                if line and (here or str(self.folder) in line):
                    found.append(line)
            except OSError:
                continue
        return found


class NamedServer:
    """PostgreSQL 16 on a TCP port, as a platform's own server: logins need passwords, and ours is no superuser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "server"
        self.port = free_port()
        self.url = f"postgresql://boss:b%40ss@127.0.0.1:{self.port}/platform"
        self._user = server_user(self.folder)
        self._user.let_through([folder])
        self.folder.mkdir(mode=0o700)
        (self.folder / "password").write_text("secret")
        for path in (self.folder, self.folder / "password"):
            self._user.own(path)
        data = ["-D", str(self.folder / "data")]
        self._run("initdb", *data, "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={self.folder / 'password'}")
        options = f"-p {self.port} -h 127.0.0.1 -k '{self.folder}' -c fsync=off -c password_encryption=scram-sha-256"
        self._run("pg_ctl", *data, "-w", "-l", str(self.folder / "log"), "-o", options, "start")
        admin = f"postgresql://postgres:secret@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("create role boss login createrole createdb password 'b@ss'")

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        # The wheel brings version 16 beside 18.
        path = binaries().parent / "pginstall" / "bin" / program
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        with open(os.devnull, "w") as nowhere:
            subprocess.run(
                [str(path), *arguments],
                cwd="/",
                env=environment,
                stdout=nowhere,
                check=True,
                **self._user.process_options(),
            )


class RunningUp:
    """An `up` in the background; its output goes to a file."""

    def __init__(self, clone: Clone, flags: list[str], variables: dict[str, str]) -> None:
        self.clone = clone
        self.output = clone.folder / "up.out"
        self.begun = time.monotonic()
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [clone.python, str(clone.folder / "manage.py"), "up", *clone.ports, *flags],
                cwd="/",
                env={**clone.environment, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(lambda: "Ductor is ready" in self.text() or self.process.poll() is not None, INSTALL_SECONDS, self.text)
        self.ready_after = time.monotonic() - self.begun
        assert self.process.poll() is None, self.text()

    def text(self) -> str:
        return self.output.read_text()

    def key(self, slug: str) -> str:
        """The key that was printed for a tenant."""
        found = re.search(rf"key of {slug}\s+(\S+)", self.text())
        assert found is not None, self.text()
        return found[1]

    def serving(self) -> "RunningUp":
        """Wait until the demo, if any, is over."""
        until(lambda: "serving; Ctrl-C" in self.text(), 300, self.text)
        return self

    def stop(self, number: int = signal.SIGINT, seconds: float = 60) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=seconds)


def table_of(text: str) -> str:
    """The demo's table as it was printed."""
    start = text.index("file-audit: two tenants")
    return text[start : text.index("stopping", start)].rstrip()
