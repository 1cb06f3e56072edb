"""A worker in the test's own process, and a registry of its own for the workflows that a test declares."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.db import connections

from tests import database
from workflows import registry
from workflows.execution import install_alarm
from workflows.turns import TurnReport, WorkerState, run_turn


@dataclass
class TestWorker:
    """One worker process, run turn by turn.

    Attributes:
        stop: set by a test to have the worker drain.
        deadlines: what the worker told its guard.
    """

    __test__ = False

    name: str
    queues: tuple[str, ...] = ("default",)
    stop: bool = False
    deadlines: list[float | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = WorkerState(self.name, self.queues, self.deadlines.append, lambda: self.stop)

    def turn(self) -> TurnReport:
        return run_turn(worker=self.state)

    def run_all(self, most: int = 500) -> int:
        """Run turns until there is nothing to claim; returns how many tasks were claimed."""
        claimed = 0
        for _ in range(most):
            report = self.turn()
            claimed += report.claimed
            if not report.claimed:
                return claimed
        raise AssertionError(f"still at work after {most} turns")


@pytest.fixture
def worker() -> Iterator[TestWorker]:
    database.touch()
    made = TestWorker("test-worker")
    yield made
    made.state.close()
    connections.close_all()


@pytest.fixture
def flows() -> Iterator[None]:
    """Workflows that the test declares are known to this test only."""
    with registry.isolated():
        yield


@pytest.fixture
def alarm() -> Iterator[None]:
    """Handlers that a test runs outside a worker are stopped as in one; afterwards nothing ticks on."""
    before = signal.getsignal(signal.SIGALRM)
    install_alarm()
    with registry.isolated():
        yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    signal.signal(signal.SIGALRM, before)
