"""Child processes that do not outlive the process that started them, not even when that one is killed outright."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec nothing may be loaded.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def spawn(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    output: IO[bytes] | None = None,
    new_session: bool = False,
) -> "subprocess.Popen[bytes]":
    """Start a command that the kernel kills when this process ends.

    Call it from the main thread: the kernel watches the thread that forks.

    Args:
        output: where stdout and stderr go; None leaves them as this process has them.
        new_session: keep the terminal's signals away, so that only this process decides when the child ends.
    """
    return subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL if new_session else None,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        start_new_session=new_session,
        preexec_fn=_die_with(os.getpid()),
    )


def _die_with(parent: int) -> Callable[[], None]:
    def act() -> None:
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # A parent that died before the line above can no longer be watched.
        if os.getppid() != parent:
            os._exit(1)

    return act


def die_with_parent() -> None:
    """Have the kernel kill this very process when its parent ends."""
    _die_with(os.getppid())()
