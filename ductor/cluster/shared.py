"""What the processes of one cluster say to each other: plain shared memory, one writer for each cell, no lock.

A lock in shared memory stays taken when its holder is killed. `multiprocessing.Event`, `Value` and `Queue` are made of
such locks: one SIGKILL at the wrong moment and the cluster stands still while it looks alive.
"""

import enum
import time
from multiprocessing.sharedctypes import RawArray, RawValue

POLL_SECONDS = 0.1


class Flag:
    """A flag that is only ever raised: what django-q2 needs of an Event, and safe inside a signal handler."""

    def __init__(self) -> None:
        self._raised = RawValue("b", 0)

    def set(self) -> None:
        self._raised.value = 1

    def is_set(self) -> bool:
        return bool(self._raised.value)

    def wait(self, timeout: float, poll: float = POLL_SECONDS) -> bool:
        """Sleep until the flag is raised, at most `timeout` seconds, looking every `poll`; True if it is raised."""
        until = time.monotonic() + timeout
        while not self.is_set():
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(poll, left))
        return True


class Timer:
    """django-q2's timer of a worker: -1 idle, > 0 seconds left, 0 kill, -2 recycled.

    django-q2 lets the guard count it down, under a lock. Here the worker writes the moment at which it is to die and
    the guard only reads: without a second writer, no lock. The monotonic clock is the same for all processes of a host.
    """

    IDLE = -1.0
    KILL = 0.0
    RECYCLED = -2.0

    def __init__(self) -> None:
        self._cell = RawValue("d", self.IDLE)

    @property
    def value(self) -> float:
        cell = float(self._cell.value)
        return cell if cell <= 0 else max(self.KILL, cell - time.monotonic())

    @value.setter
    def value(self, seconds: float) -> None:
        self._cell.value = time.monotonic() + seconds if seconds > 0 else seconds


class Phase(enum.IntEnum):
    """What the worker in a seat is doing."""

    VACANT = 0
    STARTING = 1
    WORKING = 2
    IDLE = 3


class Board:
    """One row for each seat of the pool: who sits there, and what it is doing."""

    def __init__(self, seats: int) -> None:
        self._pids = RawArray("q", seats)
        self._phases = RawArray("b", seats)
        self._turns = RawArray("q", seats)
        self._reincarnations = RawValue("q", 0)

    def open(self, seat: int) -> None:
        """To be called before the worker is born: from then on the phase is the worker's to write."""
        self._phases[seat] = Phase.STARTING

    def seat(self, seat: int, pid: int) -> None:
        self._pids[seat] = pid

    def vacate(self, seat: int) -> None:
        self._phases[seat] = Phase.VACANT
        self._pids[seat] = 0

    def enter(self, seat: int, phase: Phase) -> None:
        self._phases[seat] = phase

    def turn_done(self, seat: int) -> None:
        self._turns[seat] += 1

    def reincarnated(self) -> None:
        self._reincarnations.value += 1

    @property
    def reincarnations(self) -> int:
        return int(self._reincarnations.value)

    @property
    def turns(self) -> int:
        """Turns that came to their end, of all workers that ever sat here."""
        return sum(self._turns)

    @property
    def pids(self) -> list[int]:
        return [pid for pid in self._pids if pid]

    @property
    def phases(self) -> list[Phase]:
        return [Phase(phase) for phase in self._phases]

    def all_are(self, *wanted: Phase) -> bool:
        return all(phase in wanted for phase in self.phases)
