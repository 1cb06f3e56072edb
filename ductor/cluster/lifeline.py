"""How a process of the cluster is born and dies: without its parent's connections, and never after its parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_inherited: list[object] = []


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends. Only Linux can; see `is_orphan`."""
    if _libc is not None and _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # A parent that died before the line above can no longer be waited for.
    if is_orphan(parent_pid):
        os._exit(1)


def is_orphan(parent_pid: int) -> bool:
    return os.getppid() != parent_pid


@contextmanager
def stop_signals_held() -> Iterator[None]:
    """Fork inside this block: a signal that arrives before the child has its own handlers waits for them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def on_stop_signals(act: Callable[[], None]) -> None:
    """Call `act` at each SIGTERM and SIGINT. It runs between two byte codes of anything: it may set a flag, no more."""

    def handler(number: int, frame: FrameType | None) -> None:
        act()

    for stop_signal in STOP_SIGNALS:
        signal.signal(stop_signal, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def forget_connections() -> None:
    """Leave every database connection and pool to the parent.

    Two processes on one socket read each other's rows. They are kept, not closed: closing would send the server a
    goodbye on the parent's socket, and a pool's destructor waits for threads that did not survive the fork.
    """
    for connection in connections.all(initialized_only=True):
        _inherited.append(connection)
        del connections[connection.alias]
    pools = DatabaseWrapper._connection_pools  # type: ignore[attr-defined]
    _inherited.append(dict(pools))
    pools.clear()


os.register_at_fork(after_in_child=forget_connections)
