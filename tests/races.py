"""Races with real connections: threads behind a barrier, and a wait for a lock that PostgreSQL itself reports."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

import psycopg
from django.db import connections

from tests import database

T = TypeVar("T")


def together(*acts: Callable[[], Any], timeout: float = 60.0) -> list[Any]:
    """Run the acts at once, each on a connection of its own; returns their results or the exceptions they raised."""
    database.touch()
    barrier = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)

    def run(index: int) -> None:
        try:
            barrier.wait()
            results[index] = acts[index]()
        except Exception as error:
            results[index] = error
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
        assert not thread.is_alive(), "an act of the race hangs"
    return results


@contextmanager
def counted_waits() -> Iterator[list[Any]]:
    """Note each time that a connection of this process waits for the server."""
    waits: list[Any] = []
    real = psycopg.Connection.wait

    def wait(self: Any, *args: Any, **named: Any) -> Any:
        waits.append(self)
        return real(self, *args, **named)

    with patch.object(psycopg.Connection, "wait", wait):
        yield waits


class Aside:
    """An act on a connection of its own that goes on beside the test; `result()` waits for it."""

    def __init__(self, act: Callable[[], Any]) -> None:
        database.touch()
        self._value: Any = None
        self._error: BaseException | None = None

        def run() -> None:
            try:
                self._value = act()
            except Exception as error:
                self._error = error
            finally:
                connections["default"].close()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def result(self, timeout: float = 30.0) -> Any:
        """Return what the act returned, or raise what it raised."""
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the act beside the test hangs"
        if self._error is not None:
            raise self._error
        return self._value

    @property
    def running(self) -> bool:
        """Whether the act has not ended yet."""
        return self._thread.is_alive()


def wait_for_lock(timeout: float = 10.0) -> None:
    """Wait until PostgreSQL shows some backend of this database waiting for a row or a transaction to end."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        waiting = database.owner().execute("select count(*) from pg_locks where not granted").fetchone()
        if waiting[0]:
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits for a lock")


def wait_until(condition: Callable[[], T], timeout: float = 30.0, every: float = 0.02) -> T:
    """Wait until `condition()` is true and return its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(every)
