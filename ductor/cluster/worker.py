"""A worker process: one turn after the other until it is told to stop.

A turn (`workflows.turns.run_turn`) claims a bounded batch, runs it and finishes it. This module is the frame around
it: when to stop, what to do when the database is away, when to make room for a fresh process.
"""

import logging
import math
import multiprocessing
import os
import sys
import threading
import time
from datetime import UTC, datetime
from typing import NoReturn

import structlog
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import connections
from django_q.signals import post_spawn
from django_q.worker import rss_check

from ductor.cluster.lifeline import die_with_parent, is_orphan, on_stop_signals
from ductor.cluster.outage import Outage, one_line
from ductor.cluster.plan import Seat, worker_name
from ductor.cluster.shared import POLL_SECONDS, Flag, Phase, Timer
from tenants.errors import Unavailable
from workflows import wakeup
from workflows.turns import WorkerState, release_held, run_turn

log = structlog.get_logger("ductor.cluster")

DUE_SOON_SECONDS = 60.0
MIN_REST_SECONDS, MAX_REST_SECONDS = 0.5, 15.0
LEAVE_SECONDS = 10.0


def run_worker(seat: Seat, parent_pid: int) -> NoReturn:
    """The whole life of a worker process. It leaves by `os._exit`: a hung thread of a handler must not hold it."""
    code = 1
    try:
        die_with_parent(parent_pid)
        code = WorkerProcess(seat, parent_pid).run()
    finally:
        if code:
            log.critical("worker_failed", exc_info=True)
        flush()
        os._exit(code)


def flush() -> None:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()


class WorkerProcess:
    """One worker, from its first turn to its last."""

    def __init__(self, seat: Seat, parent_pid: int) -> None:
        self.seat = seat
        self.parent_pid = parent_pid
        self.stop = Flag()
        self.tasks_done = 0
        self.empty_turns = 0
        self.outage = Outage()
        # An ended lease announces itself to nobody: whoever claims next takes its task back.
        self.longest_rest = min(MAX_REST_SECONDS, max(MIN_REST_SECONDS, settings.DUCTOR_LEASE_SECONDS / 4))
        self.state = WorkerState(
            name=worker_name(), queues=seat.plan.queues, deadline=self.deadline, draining=self.draining
        )

    def draining(self) -> bool:
        return self.stop.is_set() or self.seat.drain.is_set()

    def deadline(self, seconds: float | None) -> None:
        """Have the guard kill this process in so many seconds; None: no handler runs, only the stall limit holds."""
        self.seat.timer.value = self.seat.plan.stall_seconds if seconds is None else max(seconds, 0.001)

    def run(self) -> int:
        on_stop_signals(self.stop.set)
        threading.Thread(target=self.watch, name="drain-watcher", daemon=True).start()
        post_spawn.send(sender="django_q", proc_name=multiprocessing.current_process().name)
        self.enter(Phase.WORKING)
        recycled = False
        while not (recycled or self.draining()):
            recycled = not self.turn()
        # A hung thread of a handler may hold a lock that the way out wants.
        self.deadline(LEAVE_SECONDS)
        self.state.close()
        connections.close_all()
        flush()
        if recycled:
            self.seat.timer.value = Timer.RECYCLED
        return 0

    def turn(self) -> bool:
        """One turn, and the rest after it when there was nothing to do. False: this process is to be replaced."""
        self.deadline(None)
        try:
            report = run_turn(worker=self.state)
            self.empty_turns = 0 if report.claimed else self.empty_turns + 1
            if self.empty_turns and not (report.retire or self.draining()):
                self.rest(report.next_due_at)
        except (DatabaseFailure, Unavailable) as failure:
            self.back_off(failure)
            return True
        self.outage.over()
        self.seat.board.turn_done(self.seat.number)
        self.tasks_done += report.claimed
        return not (report.retire or self.tasks_done >= self.seat.plan.recycle_tasks or rss_check())

    def rest(self, next_due_at: datetime | None) -> None:
        """Sleep until a turn is ready or `next_due_at` comes, and not long past the end of a dead worker's lease."""
        # What is due and still not claimed is held back by a limit: looking again at once would only load the server.
        floor = min(1.0, 0.01 * 2 ** min(self.empty_turns, 10))
        due_in = math.inf if next_due_at is None else (next_due_at - datetime.now(UTC)).total_seconds()
        self.enter(Phase.WORKING if due_in < DUE_SOON_SECONDS else Phase.IDLE)
        wakeup.wait(worker=self.state, seconds=min(self.longest_rest, max(floor, due_in)))
        self.enter(Phase.WORKING)

    def enter(self, phase: Phase) -> None:
        self.seat.board.enter(self.seat.number, phase)

    def back_off(self, failure: Exception) -> None:
        """The database is away, or refuses: drop the connections and try again later, all workers at other moments."""
        pause = self.outage.note(failure)
        connections.close_all()
        until = time.monotonic() + pause
        while time.monotonic() < until and not self.draining():
            time.sleep(POLL_SECONDS)

    def watch(self) -> None:
        """On a thread of its own: end this process when the grace of a drain is over, whatever its handlers do."""
        while not self.draining():
            if is_orphan(self.parent_pid):
                os._exit(1)
            time.sleep(2 * POLL_SECONDS)
        time.sleep(self.seat.plan.drain_seconds)
        try:
            released = release_held(self.state)
            log.warning("drain_grace_over", released=released)
        except (DatabaseFailure, Unavailable) as failure:
            log.warning("drain_grace_over", released=0, why=one_line(failure))
        finally:
            flush()
            os._exit(0)
