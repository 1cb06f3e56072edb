"""What ticks leave behind on its way into the database: step records and outcomes, written for many tasks in one call.

At most 20 ms pass between the first unwritten result and its write: the turn looks after each task, and the heart's
thread writes while the main thread is busy in a handler. Nothing is acknowledged before it is committed. When a write
fails, its results are dropped: whether they were committed or not, the leases settle it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from django.db import Error as DatabaseFailure

from tenants.errors import Unavailable
from workflows import claims, crashpoints
from workflows.claims import Claim, Outcome, StepRecord
from workflows.engine import Advance
from workflows.ticks import Tick

logger = logging.getLogger("ductor.engine")

FLUSH_SECONDS = 0.020


class Results:
    """The unwritten results of one process.

    Args:
        settled: told which ticks this process holds no longer: finished, lost, or dropped with a failed write.
    """

    def __init__(self, settled: Callable[[Iterable[Tick]], None]) -> None:
        self._settled = settled
        self._latch = threading.Lock()
        self._writing = threading.Lock()
        self._records: list[tuple[Tick, tuple[StepRecord, ...]]] = []
        self._outcomes: list[tuple[Tick, Outcome]] = []
        self._first_at = 0.0
        self._failure: Exception | None = None

    def add(self, tick: Tick, advance: Advance) -> None:
        """Take over what one advance left behind."""
        with self._latch:
            if advance.records:
                self._records.append((tick, advance.records))
            elif advance.outcome is not None:
                self._outcomes.append((tick, advance.outcome))
            else:
                return
            self._first_at = self._first_at or time.monotonic()

    def due(self, now: float) -> bool:
        """Say whether a result waits for 20 ms."""
        return bool(self._first_at) and now - self._first_at >= FLUSH_SECONDS

    def flush(self) -> None:
        """Write everything that was added before this call, and wait for a write that is under way.

        Raises:
            Unavailable, django.db.Error: this write, or one by the heart's thread since the last flush, failed.
        """
        self._write()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def flush_behind(self) -> None:
        """Write from the heart's thread; a failure is raised by the turn's next flush."""
        try:
            self._write()
        except (DatabaseFailure, Unavailable) as failure:
            self._failure = failure

    @property
    def failed(self) -> bool:
        """Whether a write behind the turn's back has failed."""
        return self._failure is not None

    def forget(self) -> None:
        """Drop what is unwritten: the turn was given up."""
        with self._latch:
            self._records, self._outcomes, self._first_at = [], [], 0.0
        self._failure = None

    def _write(self) -> None:
        with self._writing:
            with self._latch:
                records, self._records = self._records, []
                outcomes, self._outcomes = self._outcomes, []
                self._first_at = 0.0
            try:
                if records:
                    self._write_records(records)
                if outcomes:
                    self._write_outcomes(outcomes)
            except (DatabaseFailure, Unavailable):
                self._settled([tick for tick, _ in records] + [tick for tick, _ in outcomes])
                raise

    def _write_records(self, records: list[tuple[Tick, tuple[StepRecord, ...]]]) -> None:
        crashpoints.reach("before_record")
        lost = claims.record_steps(records=[record for _, some in records for record in some])
        crashpoints.reach("after_record")
        if lost:
            self._lose([tick for tick, _ in records], lost)

    def _write_outcomes(self, outcomes: list[tuple[Tick, Outcome]]) -> None:
        crashpoints.reach("before_finish")
        lost = claims.finish(outcomes=[outcome for _, outcome in outcomes])
        crashpoints.reach("after_finish")
        self._settled([tick for tick, _ in outcomes])
        if lost:
            self._lose([tick for tick, _ in outcomes], lost)

    def _lose(self, ticks: Iterable[Tick], lost: set[Claim]) -> None:
        """A stale owner's late write is harmless: nothing of it was written."""
        gone = [tick for tick in ticks if tick.claim in lost]
        for tick in gone:
            logger.info("lease_lost", extra={"task_id": str(tick.claim.task_id), "token": tick.claim.token})
            tick.lose()
        self._settled(gone)
