"""The embedded PostgreSQL 18 of one home folder, shared by every process that needs it.

    <home>/pg          the data folder, 0700, owned by the server's user
    <home>/pg.lock     exclusive while a process starts, stops or removes the server
    <home>/pg.users    held shared by every process that uses the server
    <home>/logs/       postgres.log

The server listens on a Unix socket only, in a folder that only its user (and root) may enter; inside it logins are
trusted. Who uses it holds `pg.users` shared; who lets go and finds nobody else there stops the server. A lock ends with
its process, so a process killed outright holds nothing: the next one adopts the server that still runs.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from ductor.postgres import START_SECONDS, SUPERUSER, DataDamaged, DataFolder, ServerFailed, VersionMismatch
from ductor.server_user import UserFailed

__all__ = ["SUPERUSER", "DataDamaged", "EmbeddedServer", "ServerFailed", "ServerInUse", "VersionMismatch"]

SOCKET_NAME = ".s.PGSQL.5432"
MAX_SOCKET_PATH = 107


class ServerInUse(ServerFailed):
    """Other processes use the server, so it can't be removed."""


class EmbeddedServer:
    """The server of one home folder; every process makes its own object and agrees with the others by locks."""

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None) -> None:
        self.home = home.absolute()
        self._folder = DataFolder(
            self.home / "pg", self.socket_dir, self.home / "logs" / "postgres.log", settings or {}
        )
        self._users: IO[str] | None = None
        self._user_pid = 0
        self._count = 0

    @property
    def data(self) -> Path:
        """The data folder."""
        return self._folder.path

    @property
    def prepared(self) -> Path:
        """The file that says that init-db has been through with these data; it goes with them."""
        return self.data / "ductor.prepared"

    @property
    def socket_dir(self) -> Path:
        """The folder of the socket: under home, or under /tmp where home's path is too long for a socket."""
        near = self.home / "pg-socket"
        if len(os.fsencode(near / SOCKET_NAME)) <= MAX_SOCKET_PATH:
            return near
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        # Not gettempdir(): every process must find the same folder, whatever its TMPDIR. Its owner is checked.
        return Path("/tmp") / f"ductor-{digest}"  # noqa: S108

    def acquire(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Use the server from now on, starting it (and making its data folder) if need be.

        Raises:
            ServerFailed: with the reason in one line.
        """
        if self._users is not None and self._user_pid == os.getpid():
            self._count += 1
            return
        with self._reported(), self._transition():
            users = self._open_lock("pg.users")
            try:
                # Never waits: who holds it exclusively holds pg.lock as well.
                fcntl.flock(users, fcntl.LOCK_SH)
                self._ensure_running(progress)
            except BaseException:
                users.close()
                raise
            self._users, self._user_pid, self._count = users, os.getpid(), 1

    def revive(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Start the server again if it has ended under this process's use.

        Raises:
            ServerFailed: it doesn't start.
        """
        with self._reported(), self._transition():
            self._ensure_running(progress)

    def release(self) -> None:
        """Stop using the server; the last user stops it. A forked child that inherited the use has no say.

        Raises:
            ServerFailed: the server doesn't stop.
        """
        if self._users is None or self._user_pid != os.getpid():
            return
        self._count -= 1
        if self._count > 0:
            return
        users, self._users = self._users, None
        with users, self._reported(), self._transition():
            if _try_exclusive(users):
                self._folder.stop()

    def pid(self) -> int | None:
        """Return the process id of the running server, or None."""
        info = self._folder.postmaster()
        return info[0] if info else None

    def is_running(self) -> bool:
        """Say whether the server accepts connections."""
        info = self._folder.postmaster()
        return info is not None and info[1] == "ready"

    def destroy(self, *, evict: bool = False) -> None:
        """Remove all data for good; a server left behind by a killed process is stopped first.

        Args:
            evict: take the server from those who use it.

        Raises:
            ServerInUse: another process uses the server.
        """
        with self._reported(), self._transition(), self._open_lock("pg.users") as users:
            if not evict and not _try_exclusive(users):
                raise ServerInUse("other Ductor processes use the database: end them first")
            if self.data.exists():
                self._folder.stop()
            for folder in (self.data, self.data.with_suffix(".new"), self.socket_dir):
                if folder.exists():
                    shutil.rmtree(folder)

    def _ensure_running(self, progress: Callable[[str], None]) -> None:
        deadline = time.monotonic() + START_SECONDS
        # A server may be starting or stopping on its own: its starter was killed meanwhile.
        while (info := self._folder.postmaster()) and time.monotonic() < deadline:
            if info[1] == "ready":
                return
            time.sleep(0.1)
        if self.data.exists():
            self._folder.check()
        else:
            progress("making the database folder")
            self._folder.make()
        progress("starting PostgreSQL")
        self._folder.start()

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn what the operating system refuses into one line."""
        try:
            yield
        except UserFailed as error:
            raise ServerFailed(str(error)) from error
        except PermissionError as error:
            raise ServerFailed(
                f"{error.filename or self.home} belongs to another user: run as that user, or set DUCTOR_HOME to a "
                "folder of your own"
            ) from error
        except OSError as error:
            raise ServerFailed(f"can't use {error.filename or self.home}: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _transition(self) -> Iterator[None]:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._open_lock("pg.lock") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _open_lock(self, name: str) -> IO[str]:
        return open(self.home / name, "a", opener=lambda path, flags: os.open(path, flags, 0o600))


def _try_exclusive(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
