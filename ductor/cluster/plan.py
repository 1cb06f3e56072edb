"""What a cluster was asked to be."""

import os
import secrets
import socket
from dataclasses import dataclass

from ductor.cluster.shared import Board, Flag, Timer


@dataclass(frozen=True)
class ClusterPlan:
    """The options of one `qcluster`.

    `drain_seconds`: how long running tasks may go on after a stop signal before they are released.
    `stall_seconds`: a worker that comes to no decision for so long, with no handler running, is killed.
    `recycle_tasks`: after so many tasks a worker makes room for a fresh one.
    """

    workers: int
    queues: tuple[str, ...]
    drain_seconds: float = 25.0
    stall_seconds: float = 300.0
    recycle_tasks: int = 500_000
    once_idle: bool = False


@dataclass(frozen=True)
class Seat:
    """A place in the pool, as the worker who takes it sees it."""

    number: int
    board: Board
    timer: Timer
    drain: Flag
    plan: ClusterPlan


def worker_name() -> str:
    """`<host>:<pid>:<random>`: pids come again, on other hosts and after a restart; a name must not."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
