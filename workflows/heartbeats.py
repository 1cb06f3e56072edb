"""The heart: one thread per process, with a connection of its own, that keeps the process's leases (DESIGN D6).

It beats for all leases that grow old in one call, sends progress along, cancels the handlers of lost leases, writes
results that the busy main thread can't write in time, and ends the process when the handler in the main thread hangs
past its timeout and grace. Short batches never cost a beat: only leases older than the interval are extended.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import connections

from tenants.errors import Unavailable
from workflows import claims
from workflows.results import Results
from workflows.ticks import Tick

logger = logging.getLogger("ductor.engine")

EXIT_HUNG = 70
PROGRESS_SECONDS = 2.0
_LOOK_SECONDS = 0.020
_AGAIN_SECONDS = 0.5


class Heart(threading.Thread):
    """Beats for the ticks that it is given to hold.

    Args:
        results: the process's unwritten results.
        hung: called with the tick whose handler hangs in the main thread, before the process ends.
    """

    def __init__(self, results: Callable[[], Results], hung: Callable[[Tick], None]) -> None:
        super().__init__(name="ductor-heart", daemon=True)
        self._results = results
        self._hung = hung
        self._held: dict[UUID, Tick] = {}
        self._wake = threading.Event()
        self._stopped = False
        self._not_before = 0.0
        self._progress_at = 0.0

    def hold(self, ticks: Iterable[Tick]) -> None:
        """Keep the leases of these ticks from now on."""
        self._held.update((tick.claim.task_id, tick) for tick in ticks)
        self._wake.set()

    def drop(self, ticks: Iterable[Tick]) -> None:
        """Keep the leases of these ticks no longer."""
        for tick in ticks:
            if self._held.get(tick.claim.task_id) is tick:
                self._held.pop(tick.claim.task_id, None)

    def held(self) -> list[Tick]:
        """Return the ticks whose leases are kept."""
        return list(self._held.values())

    def stop(self) -> None:
        """End the thread and its connection; waits for a beat that is under way."""
        self._stopped = True
        self._wake.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(timeout=5.0)

    def run(self) -> None:
        """Look at the held ticks 50 times a second; sleep while there are none."""
        try:
            while not self._stopped:
                if not self._held:
                    self._wake.wait()
                    self._wake.clear()
                    continue
                time.sleep(_LOOK_SECONDS)
                self.look(time.monotonic())
        finally:
            connections.close_all()

    def look(self, now: float) -> None:
        """Do what is due now."""
        results = self._results()
        if results.due(now):
            results.flush_behind()
        ticks = self.held()
        for tick in ticks:
            if tick.hard_deadline and now > tick.hard_deadline:
                self._end_process(tick)
        if now >= self._not_before and (due := self._due(ticks, now)):
            self._beat(due, now)

    def _due(self, ticks: list[Tick], now: float) -> list[Tick]:
        interval: float = settings.DUCTOR_HEARTBEAT_SECONDS
        if any(now - tick.confirmed_at >= interval for tick in ticks):
            # Those that would be due soon ride along, so that a process beats once an interval and not once a lease.
            return [tick for tick in ticks if now - tick.confirmed_at >= interval / 2]
        if now - self._progress_at >= PROGRESS_SECONDS:
            return [tick for tick in ticks if tick.progress is not tick.progress_sent]
        return []

    def _beat(self, ticks: list[Tick], now: float) -> None:
        sent = {tick.claim: tick.progress for tick in ticks if tick.progress is not tick.progress_sent}
        self._progress_at = now
        try:
            beats = claims.heartbeat(
                claims=[tick.claim for tick in ticks], lease_seconds=settings.DUCTOR_LEASE_SECONDS, progress=sent
            )
        except (DatabaseFailure, Unavailable) as failure:
            logger.warning("heartbeat_failed", extra={"why": type(failure).__name__, "leases": len(ticks)})
            connections.close_all()
            self._not_before = now + 1.0
            self._lose_expired(now)
            return
        for tick in ticks:
            if beats[tick.claim] == "extended":
                tick.confirmed_at = now
                tick.progress_sent = sent.get(tick.claim, tick.progress_sent)
            elif beats[tick.claim] == "lost":
                self._lose(tick)
            else:
                self._not_before = now + _AGAIN_SECONDS

    def _lose_expired(self, now: float) -> None:
        """Without an answer from the database a lease counts as lost when its time is over here."""
        for tick in self.held():
            if now - tick.confirmed_at >= settings.DUCTOR_LEASE_SECONDS:
                self._lose(tick)

    def _lose(self, tick: Tick) -> None:
        logger.info("lease_lost", extra={"task_id": str(tick.claim.task_id), "token": tick.claim.token})
        self.drop([tick])
        tick.lose()

    def _end_process(self, tick: Tick) -> None:
        logger.error(
            "handler_hung",
            extra={"task_id": str(tick.claim.task_id), "workflow": tick.workflow.name, "exit": EXIT_HUNG},
        )
        self.drop([tick])
        try:
            self._hung(tick)
        finally:
            logging.shutdown()
            os._exit(EXIT_HUNG)
