"""A worker's turn: claim a batch, run it, finish it (DESIGN D5, D12).

Each turn claims from the system lane first, at least one place, and then from each of the worker's queues, in
rotating order. A batch runs in rounds: every task's ready steps, then one write of all records, then the steps that
waited for them. What has not started 50 ms after the claim, or when the worker drains, is given back.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import close_old_connections, connections

from tenants.errors import Unavailable
from tenants.identity import SYSTEM_QUEUE
from workflows import claims, crashpoints, registry
from workflows.claims import Claim, ClaimedTask
from workflows.engine import Advance, Engine
from workflows.execution import install_alarm
from workflows.formats import TASK_FORMAT
from workflows.heartbeats import Heart
from workflows.pacing import START_SECONDS, Pace
from workflows.results import Results
from workflows.ticks import Tick
from workflows.wakeup import Listener

SYSTEM_PLACES = 10
UNKNOWN_DELAY_SECONDS = 30.0


@dataclass(eq=False)
class WorkerState:
    """One worker process.

    Args:
        name: the owner's name in its claims; never used again by another process.
        queues: the customers' queues that it serves.
        deadline: told after how many seconds the process is to be killed; None: no handler runs.
        draining: says whether the worker is to stop.
    """

    name: str
    queues: tuple[str, ...]
    deadline: Callable[[float | None], None]
    draining: Callable[[], bool]
    turns: int = field(default=0, init=False)
    pace: Pace = field(default_factory=Pace, init=False)
    unreleased: list[Claim] = field(default_factory=list, init=False)
    system_due_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.results = Results(self._settle)
        self.engine = Engine(self.deadline)
        self.heart: Heart | None = None
        self.listener = Listener(self.name, (SYSTEM_QUEUE, *self.queues))

    def beating(self) -> Heart:
        """Return the heart, started at the first call: threads do not survive a fork."""
        if self.heart is None or not self.heart.is_alive():
            install_alarm()
            self.heart = Heart(lambda: self.results, lambda tick: _leave(self, tick))
            self.heart.start()
        return self.heart

    def close(self) -> None:
        """End the threads and connections of this worker; it can be used again."""
        if self.heart is not None:
            self.heart.stop()
        self.engine.threads.close()
        self.listener.close()

    def _settle(self, ticks: Iterable[Tick]) -> None:
        if self.heart is not None:
            self.heart.drop(ticks)


@dataclass(frozen=True, slots=True)
class TurnReport:
    """How a turn went.

    Attributes:
        claimed: tasks that were claimed; 0 means that there was nothing to do.
        next_due_at: where nothing was claimed, when something of the customers' may become due.
        retire: a step's thread hangs; unstarted tasks were given back, and this process must end.
    """

    claimed: int
    next_due_at: datetime | None = None
    retire: bool = False


def run_turn(*, worker: WorkerState) -> TurnReport:
    """Claim, run and finish one batch of each lane.

    Raises:
        Unavailable, django.db.Error: the database failed; what is in memory was dropped and is settled by the leases.
    """
    heart = worker.beating()
    close_old_connections()
    claimed, next_due = 0, []
    try:
        _release_leftovers(worker)
        for lane, most in _lanes(worker):
            if worker.draining():
                break
            taken = claims.take(
                worker=worker.name,
                queue=lane,
                limit=worker.pace.size(lane, most),
                lease_seconds=settings.DUCTOR_LEASE_SECONDS,
            )
            if lane == SYSTEM_QUEUE:
                worker.system_due_at = taken.next_due_at
            elif taken.next_due_at is not None:
                next_due.append(taken.next_due_at)
            if taken.tasks:
                crashpoints.reach("after_claim")
                claimed += len(taken.tasks)
                if _Batch(worker, heart, lane).run(taken.tasks):
                    return TurnReport(claimed, retire=True)
        if claimed:
            worker.listener.leave()
    except (DatabaseFailure, Unavailable):
        _give_up(worker, heart)
        raise
    finally:
        worker.turns += 1
        worker.deadline(None)
        close_old_connections()
    return TurnReport(claimed, min(next_due, default=None))


def release_held(worker: WorkerState) -> int:
    """Give back every task that this process holds, running or not; returns how many. Callable from any thread.

    Their handlers are told to stop; whatever they return is not written.

    Raises:
        Unavailable, django.db.Error: the database failed; the leases will settle it.
    """
    heart = worker.heart
    if heart is None:
        return 0
    worker.results.flush_behind()
    ticks = heart.held()
    heart.drop(ticks)
    _release(worker, ticks)
    for tick in ticks:
        tick.lose()
    return len(ticks)


class _Batch:
    """One claimed batch on its way through its rounds."""

    def __init__(self, worker: WorkerState, heart: Heart, lane: str) -> None:
        self.worker = worker
        self.heart = heart
        self.lane = lane
        self.begun = time.monotonic()

    def run(self, tasks: list[ClaimedTask]) -> bool:
        """Run the batch to its end; True when the process must retire."""
        ticks = self._ticks(tasks)
        self.heart.hold(ticks)
        active, hung = self._first_round(ticks)
        while active and not hung:
            self.worker.results.flush()
            if self.worker.draining():
                self._yield(active)
                break
            active, hung = self._round(active)
        if hung:
            _leave(self.worker, hung)
        self.worker.results.flush()
        return hung is not None

    def _ticks(self, tasks: list[ClaimedTask]) -> list[Tick]:
        """Pair tasks with their workflows; what this process does not have, or can't read, goes to another one."""
        ticks, unknown, newer = [], [], []
        for claimed in tasks:
            workflow = registry.find(claimed.workflow, claimed.version)
            if claimed.format > TASK_FORMAT:
                newer.append(claimed.claim)
            elif workflow is None or not workflow.is_sound:
                unknown.append(claimed.claim)
            else:
                ticks.append(Tick(claimed, workflow, self.begun))
        for left, reason in ((unknown, "unknown_workflow"), (newer, "unknown_format")):
            if left:
                claims.release(claims=left, delay_seconds=UNKNOWN_DELAY_SECONDS, reason=reason)
        return ticks

    def _first_round(self, ticks: list[Tick]) -> tuple[list[Tick], Tick | None]:
        active: list[Tick] = []
        busy, started = 0.0, 0
        now = self.begun
        for place, tick in enumerate(ticks):
            if self._must_stop(place, now):
                late = ticks[place:]
                self.heart.drop(late)
                _release(self.worker, late)
                break
            if tick.lost:
                continue
            advance = self._advance(tick)
            before, now = now, time.monotonic()
            busy += now - before
            started += 1
            if advance.hung:
                return active, tick
            if advance.outcome is None and not tick.lost:
                active.append(tick)
            if self.worker.results.due(now):
                self.worker.results.flush()
                now = time.monotonic()
        self.worker.pace.note(self.lane, busy, started)
        return active, None

    def _must_stop(self, place: int, now: float) -> bool:
        if self.worker.draining() or self.worker.results.failed:
            return True
        return place > 0 and now - self.begun > START_SECONDS

    def _round(self, ticks: list[Tick]) -> tuple[list[Tick], Tick | None]:
        active: list[Tick] = []
        for tick in ticks:
            if tick.lost:
                continue
            advance = self._advance(tick)
            if advance.hung:
                return active, tick
            if advance.outcome is None and not tick.lost:
                active.append(tick)
            if self.worker.results.due(time.monotonic()):
                self.worker.results.flush()
        return active, None

    def _advance(self, tick: Tick) -> Advance:
        advance = self.worker.engine.advance(tick)
        if tick.lost:
            self.heart.drop([tick])
        self.worker.results.add(tick, advance)
        return advance

    def _yield(self, ticks: list[Tick]) -> None:
        for tick in ticks:
            if not tick.lost:
                self.worker.results.add(tick, Advance(outcome=tick.yielded()))


def _lanes(worker: WorkerState) -> list[tuple[str, int]]:
    first = worker.turns % len(worker.queues) if worker.queues else 0
    rotated = (*worker.queues[first:], *worker.queues[:first])
    most = min(settings.DUCTOR_BATCH, claims.MAX_CLAIM)
    return [(SYSTEM_QUEUE, SYSTEM_PLACES), *((queue, most) for queue in rotated)]


def _leave(worker: WorkerState, hung: Tick) -> None:
    """Let go of everything but the hung task, whose lease runs out; its neighbours lose no attempt by it."""
    heart = worker.heart
    ticks = [] if heart is None else [tick for tick in heart.held() if tick is not hung]
    if heart is not None:
        heart.drop([hung, *ticks])
    worker.results.flush_behind()
    _release(worker, ticks)


def _release(worker: WorkerState, ticks: list[Tick]) -> None:
    """Give tasks back: at no cost where they were not started, as an unfinished tick where they were."""
    fresh = [tick.claim for tick in ticks if not tick.started and not tick.lost]
    started = [tick.yielded() for tick in ticks if tick.started and not tick.lost]
    worker.unreleased = fresh
    if started:
        claims.finish(outcomes=started)
    if fresh:
        claims.release(claims=fresh)
    worker.unreleased = []


def _release_leftovers(worker: WorkerState) -> None:
    """Give back what a failed database kept this process from giving back; the claims say whether they still hold."""
    leftovers, worker.unreleased = worker.unreleased, []
    if leftovers:
        claims.release(claims=leftovers)


def _give_up(worker: WorkerState, heart: Heart) -> None:
    ticks = heart.held()
    heart.drop(ticks)
    fresh = [tick.claim for tick in ticks if not tick.started and not tick.lost]
    worker.unreleased = [*worker.unreleased, *fresh][: claims.MAX_BATCH]
    worker.results.forget()
    connections.close_all()
