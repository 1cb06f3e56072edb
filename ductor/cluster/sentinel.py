"""The sentinel: keeps the pool's seats taken, kills who hangs, empties the pool when the cluster drains.

It never talks to the database, to the cache or to anything else that can keep it waiting.
"""

import multiprocessing.connection
import os
import time
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from uuid import UUID

import django_q.cluster
import structlog
from django_q.conf import Conf, prometheus_multiprocess

from ductor.cluster.lifeline import die_with_parent, on_stop_signals, stop_signals_held
from ductor.cluster.plan import ClusterPlan, Seat
from ductor.cluster.shared import POLL_SECONDS, Board, Flag, Phase, Timer
from ductor.cluster.worker import run_worker
from workflows.heartbeats import EXIT_HUNG

log = structlog.get_logger("ductor.cluster")

KILL_MARGIN_SECONDS = 5.0
JOIN_SECONDS = 2.0
MAX_DELAY_SECONDS = 5.0
FREE_CRASHES = 3


class WorkerHandle(ForkProcess):
    """A worker as the sentinel holds it. `timer` is where django-q2 looks for it, in both processes."""

    def __init__(self, seat: Seat, parent_pid: int) -> None:
        super().__init__(target=run_worker, args=(seat, parent_pid), name=f"worker-{seat.number}", daemon=False)
        self.seat = seat
        self.timer = seat.timer


class Sentinel(django_q.cluster.Sentinel):
    """django-q2's sentinel without pusher, monitor and queues: its workers fetch their work themselves.

    django-q2's constructor makes the queues, so it is not called; the names it sets are kept where they mean the same.
    """

    def __init__(
        self, *, plan: ClusterPlan, board: Board, drain: Flag, started: Flag, cluster_id: UUID, parent_pid: int
    ) -> None:
        die_with_parent(parent_pid)
        on_stop_signals(drain.set)
        self.plan = plan
        self.board = board
        self.stop_event = drain
        self.start_event = started
        self.cluster_id = cluster_id
        self.parent_pid = parent_pid
        self.pid = os.getpid()
        self.pool: list[WorkerHandle] = []
        self.vacant: dict[int, float] = dict.fromkeys(range(plan.workers), 0.0)
        self.crashes = CrashLoop()
        self.start()

    def start(self) -> None:
        try:
            self.spawn_cluster()
            self.guard()
        finally:
            # A sentinel that fails must not wait for workers that nobody guards any more.
            self.kill(*self.pool)

    def spawn_cluster(self) -> None:
        now = time.monotonic()
        for seat in [seat for seat, due in self.vacant.items() if due <= now]:
            self.spawn_worker(seat)

    def spawn_worker(self, seat: int) -> None:
        del self.vacant[seat]
        self.board.open(seat)
        place = Seat(number=seat, board=self.board, timer=Timer(), drain=self.stop_event, plan=self.plan)
        worker = WorkerHandle(place, self.pid)
        try:
            with stop_signals_held():
                worker.start()
        except OSError as failure:
            # A host out of processes or memory is no reason to kill the workers that run.
            log.critical("worker_not_started", why=failure.strerror)
            self.vacate(seat, delay=MAX_DELAY_SECONDS)
            return
        self.board.seat(seat, worker.pid or 0)
        self.pool.append(worker)

    def guard(self) -> None:
        while not self.stop_event.is_set():
            self.check_pool()
            if not self.start_event.is_set() and Phase.STARTING not in self.board.phases:
                self.start_event.set()
            if self.plan.once_idle and self.board.all_are(Phase.IDLE):
                self.stop_event.set()
            self.wait_for_events(Conf.GUARD_CYCLE)
        self.stop()

    def wait_for_events(self, seconds: float) -> None:
        """Until a worker ends or a stop is asked for, at most `seconds`."""
        until = time.monotonic() + seconds
        while not self.stop_event.is_set() and time.monotonic() < until:
            ends = [worker.sentinel for worker in self.pool]
            if multiprocessing.connection.wait(ends, timeout=POLL_SECONDS):
                return
            if not ends:
                time.sleep(POLL_SECONDS)

    def check_pool(self) -> None:
        for worker in list(self.pool):
            if worker.is_alive() and worker.timer.value == Timer.KILL:
                log.critical("worker_hung_killed", pid=worker.pid)
                self.kill(worker)
                self.reincarnate(worker, delay=0.0)
            elif not worker.is_alive():
                self.reincarnate(worker, delay=self.delay_after(worker))
        if not self.stop_event.is_set():
            self.spawn_cluster()

    def delay_after(self, worker: WorkerHandle) -> float:
        if worker.exitcode == 0:
            recycled = worker.timer.value == Timer.RECYCLED
            log.info("worker_recycled" if recycled else "worker_stopped", pid=worker.pid)
            return 0.0
        if worker.exitcode == EXIT_HUNG:
            log.critical("worker_gave_up_hung_handler", pid=worker.pid)
            return 0.0
        delay = self.crashes.next_delay(self.board.turns)
        log.critical("worker_died", pid=worker.pid, exit_code=worker.exitcode, next_in_seconds=delay)
        return delay

    def reincarnate(self, worker: WorkerHandle, *, delay: float) -> None:
        """Clear a dead worker's seat; the next one takes it after `delay` seconds, unless the cluster drains."""
        self.pool.remove(worker)
        self.vacate(worker.seat.number, delay=delay)
        if not self.stop_event.is_set():
            self.board.reincarnated()
        if prometheus_multiprocess and os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            prometheus_multiprocess.mark_process_dead(worker.pid)

    def vacate(self, seat: int, *, delay: float) -> None:
        self.board.vacate(seat)
        self.vacant[seat] = time.monotonic() + delay

    def kill(self, *workers: WorkerHandle) -> None:
        for worker in workers:
            worker.kill()
        for worker in workers:
            # A process stuck in the kernel ends when it gets out of there; the guard can't wait for that.
            worker.join(JOIN_SECONDS)

    def stop(self) -> None:
        """Wait until the workers have drained. They end themselves after the grace; who does not is killed."""
        until = time.monotonic() + self.plan.drain_seconds + KILL_MARGIN_SECONDS
        while self.pool and time.monotonic() < until:
            self.check_pool()
            multiprocessing.connection.wait([worker.sentinel for worker in self.pool], timeout=POLL_SECONDS)
        for worker in list(self.pool):
            log.critical("worker_undrained_killed", pid=worker.pid)
            self.kill(worker)
            self.reincarnate(worker, delay=0.0)


@dataclass
class CrashLoop:
    """How soon the seat of a crashed worker is taken again.

    At once, as long as turns come to their end between the crashes: a tenant whose tasks kill their workers must not
    hold up the others. Where none does, the crashes are slowed down, so that they burn neither processor nor log.
    """

    crashes: int = 0
    turns: int = 0

    def next_delay(self, turns: int) -> float:
        """Note a crash; `turns` is how many turns the pool has finished up to now. Returns seconds."""
        self.crashes = 1 if turns > self.turns else self.crashes + 1
        self.turns = turns
        surplus = self.crashes - FREE_CRASHES
        return 0.0 if surplus <= 0 else min(MAX_DELAY_SECONDS, 0.5 * 2.0 ** min(surplus - 1, 10))
