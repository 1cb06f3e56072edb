"""Who the embedded PostgreSQL runs as. The server refuses root, so root gets it a system user of its own.

That user must reach the server's programs and data, which may lie below folders closed to others (`/root`). It is let
through by an access control entry that allows passing, not listing or reading, and names this one user.
"""

import contextlib
import errno
import os
import pwd
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER_NAME = "ductor-pg"

_ACL = "system.posix_acl_access"
_ACL_VERSION = 2
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NO_ID = 0xFFFFFFFF
_EXECUTE = 1


class UserFailed(Exception):
    """No user for the server could be had; the message is one line."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The user that owns the server's data; `switch` says whether this process has to change to it."""

    uid: int
    gid: int
    switch: bool

    def process_options(self) -> dict[str, Any]:
        """Return what subprocess needs to run a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}

    def own(self, path: Path) -> None:
        """Hand a file or folder to this user."""
        if self.switch:
            os.chown(path, self.uid, self.gid)

    def let_through(self, paths: Iterable[Path]) -> None:
        """Make sure that this user can pass down to `paths`, opening as little as possible on the way."""
        if not self.switch:
            return
        for path in paths:
            if self._can_pass(path):
                continue
            for folder in reversed((path, *path.parents)):
                if not stat.S_IMODE(folder.stat().st_mode) & stat.S_IXOTH:
                    _allow_passing(folder, self.uid)

    def _can_pass(self, path: Path) -> bool:
        check = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)]
        return subprocess.run(check, cwd="/", **self.process_options()).returncode == 0

    def let_run(self, folder: Path) -> None:
        """Make programs installed under a strict umask readable for this user."""
        if not self.switch or self._can_pass(folder / "bin" / "postgres"):
            return
        for path in (folder, *folder.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            # Readable, and executable where it is for the owner: the same as an installation under umask 022.
            path.chmod(mode | (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 3 | (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 6)


def server_user(data: Path) -> ServerUser:
    """Return the user for the server whose data folder is `data`.

    Raises:
        UserFailed: the data belong to somebody else, or this is root and no user can be made.
    """
    own = os.geteuid()
    try:
        found = data.stat()
    except OSError:
        found = None
    if own != 0:
        if found is not None and found.st_uid != own:
            raise UserFailed(
                f"{data} belongs to user {_name(found.st_uid)}, not to {_name(own)}: run as the user that made it "
                "(root, if root did), or set DUCTOR_HOME to a folder of your own"
            )
        return ServerUser(own, os.getegid(), switch=False)
    if found is not None and found.st_uid != 0:
        return ServerUser(found.st_uid, found.st_gid, switch=True)
    entry = _system_user()
    return ServerUser(entry.pw_uid, entry.pw_gid, switch=True)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _system_user() -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(USER_NAME)
    program = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        raise UserFailed(
            f"PostgreSQL does not run as root and useradd is missing: make a user {USER_NAME}, or run as a plain user"
        )
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell"]
    made = subprocess.run([program, *options, "/usr/sbin/nologin", USER_NAME], capture_output=True, text=True)
    try:
        # Looked up whatever useradd answered: another process may have made the user at the same moment.
        return pwd.getpwnam(USER_NAME)
    except KeyError:
        lines = made.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"useradd ended with {made.returncode}"
        raise UserFailed(
            f"PostgreSQL does not run as root and user {USER_NAME} can't be made ({reason}): run as a plain user"
        ) from None


def _allow_passing(folder: Path, uid: int) -> None:
    mode = stat.S_IMODE(folder.stat().st_mode)
    try:
        entries = _read_acl(folder) or [
            (_USER_OBJ, mode >> 6 & 7, _NO_ID),
            (_GROUP_OBJ, mode >> 3 & 7, _NO_ID),
            (_OTHER, mode & 7, _NO_ID),
        ]
        os.setxattr(folder, _ACL, _acl_with(entries, uid))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.ENOSYS):
            raise
        folder.chmod(mode | stat.S_IXOTH)


def _read_acl(folder: Path) -> list[tuple[int, int, int]]:
    try:
        raw = os.getxattr(folder, _ACL)
    except OSError as error:
        if error.errno == errno.ENODATA:
            return []
        raise
    return list(struct.iter_unpack("<HHI", raw[4:]))


def _acl_with(entries: list[tuple[int, int, int]], uid: int) -> bytes:
    """Return the list with an entry that lets `uid` pass, in the order the kernel asks for."""
    kept = [entry for entry in entries if entry[0] != _MASK and (entry[0], entry[2]) != (_USER, uid)]
    kept.append((_USER, _EXECUTE, uid))
    mask = next((perm for tag, perm, _ in entries if tag == _MASK), 0)
    for tag, perm, _ in kept:
        mask |= perm if tag == _GROUP_OBJ else 0
    kept.append((_MASK, mask | _EXECUTE, _NO_ID))
    kept.sort(key=lambda entry: (entry[0], entry[2]))
    return struct.pack("<I", _ACL_VERSION) + b"".join(struct.pack("<HHI", *entry) for entry in kept)
