"""How an idle worker waits for work: registered, listening, and asleep until a turn becomes ready (DESIGN D12).

The order is: register as idle and LISTEN, claim once more, then sleep. So a task that becomes ready in between is
either claimed or announced. Where notifications do not arrive (behind a transaction pooler without
DATABASE_DIRECT_URL), the worker polls.
"""

import contextlib
import logging
import random
import secrets
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from tenants.errors import Unavailable
from workflows import waking

if TYPE_CHECKING:
    from workflows.turns import WorkerState

logger = logging.getLogger("ductor.engine")

POLL_SECONDS = 2.0
REGISTERED_SECONDS = 90.0
RETRY_LISTEN_SECONDS = 60.0
PROBE_SECONDS = 2.0
_LOOK_SECONDS = 0.25


def wait(*, worker: "WorkerState", seconds: float) -> None:
    """Sleep up to `seconds`, until a turn becomes ready, the system lane has work due, or the worker drains.

    The first call after work only registers the worker and returns, so that the caller claims once more before it
    sleeps.

    Raises:
        Unavailable, django.db.Error: the database can't be reached.
    """
    listener = worker.listener
    if not listener.registered and listener.enter():
        return
    if worker.system_due_at is not None:
        seconds = min(seconds, max(_LOOK_SECONDS, (worker.system_due_at - datetime.now(UTC)).total_seconds()))
    if not listener.registered:
        seconds = min(seconds, POLL_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311
    deadline = time.monotonic() + seconds
    listener.stay()
    while (left := deadline - time.monotonic()) > 0 and not worker.draining():
        if listener.heard(min(left, _LOOK_SECONDS)):
            return


class Listener:
    """One process's registration as idle and its direct connection for notifications."""

    def __init__(self, worker: str, queues: tuple[str, ...]) -> None:
        self.registered = False
        self._worker = worker
        self._queues = queues
        self._connection: psycopg.Connection[Any] | None = None
        self._until = 0.0
        self._not_before = 0.0

    def enter(self) -> bool:
        """Register as idle and listen; False where notifications can't be had and the worker must poll."""
        if time.monotonic() < self._not_before:
            return False
        try:
            if self._connection is None:
                self._connection = _connect()
                if not _arrives(self._connection):
                    raise psycopg.OperationalError("a notification did not arrive")
            self._connection.execute(f"listen {waking.CHANNEL}")
            # What was announced before is covered by the claim that follows.
            for _ in self._connection.notifies(timeout=0):
                pass
        except psycopg.Error as failure:
            logger.warning("listen_failed_polling_instead", extra={"why": type(failure).__name__})
            self._not_before = time.monotonic() + RETRY_LISTEN_SECONDS
            self.close()
            return False
        self._register()
        self.registered = True
        return True

    def stay(self) -> None:
        """Renew the registration before it runs out."""
        if self.registered and time.monotonic() > self._until - REGISTERED_SECONDS / 2:
            self._register()

    def _register(self) -> None:
        waking.listen_idle(worker=self._worker, queues=self._queues, seconds=REGISTERED_SECONDS)
        self._until = time.monotonic() + REGISTERED_SECONDS

    def leave(self) -> None:
        """Take the registration back: a busy worker is not to be notified, which costs every commit a lock."""
        if not self.registered:
            return
        self.registered = False
        waking.clear_idle(worker=self._worker)
        if self._connection is not None:
            try:
                self._connection.execute(f"unlisten {waking.CHANNEL}")
            except psycopg.Error:
                self.close()

    def heard(self, seconds: float) -> bool:
        """Wait up to `seconds` for a notification; True if one came or the connection broke."""
        if not self.registered or self._connection is None:
            time.sleep(seconds)
            return False
        try:
            return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))
        except psycopg.Error:
            self.close()
            return True

    def close(self) -> None:
        """Close the connection; what is registered runs out by itself, or is removed here where that is possible."""
        if self.registered:
            self.registered = False
            with contextlib.suppress(DatabaseFailure, Unavailable):
                waking.clear_idle(worker=self._worker)
        broken, self._connection = self._connection, None
        if broken is not None:
            broken.close()


def _connect() -> psycopg.Connection[Any]:
    """Open a connection past any pooler, as this process's role."""
    params: dict[str, Any] = connection.get_connection_params()
    for name in ("pool", "cursor_factory", "context"):
        params.pop(name, None)
    if settings.DUCTOR_DIRECT_URL:
        direct = conninfo_to_dict(settings.DUCTOR_DIRECT_URL)
        for name in ("host", "hostaddr", "port", "dbname"):
            params.pop(name, None)
        params.update({name: value for name, value in direct.items() if name not in ("user", "password")})
    return psycopg.connect(**params, autocommit=True)


def _arrives(listening: psycopg.Connection[Any]) -> bool:
    """Try it: behind a transaction pooler LISTEN succeeds and nothing ever arrives."""
    channel = f"ductor_probe_{secrets.token_hex(4)}"
    listening.execute(f"listen {channel}")
    with connection.cursor() as cursor:
        cursor.execute("select pg_notify(%s, '')", [channel])
    arrived = any(True for _ in listening.notifies(timeout=PROBE_SECONDS, stop_after=1))
    listening.execute(f"unlisten {channel}")
    return arrived
