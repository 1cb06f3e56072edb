"""Steps of one task that run side by side: bounded threads, each in a copied context, each with its own connection."""

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from django.db import close_old_connections, connections

from workflows.context import Context, cancel
from workflows.control import StepTimeout
from workflows.execution import Result

GRACE_SECONDS = 10.0
MAX_THREADS = 4
_LOOK_SECONDS = 0.2


@dataclass(slots=True)
class Job:
    """One step to run in a thread.

    Attributes:
        run: does the work.
        context: how to tell the handler to stop.
        timeout_seconds: from its start in the thread, until it is told to.
        started: the monotonic time of that start, or 0.0 while it waits for a free thread.
        result: what came of it; None while it runs.
    """

    run: Callable[[], Result]
    context: Context[Any]
    timeout_seconds: float
    started: float = 0.0
    result: Result | None = field(default=None)

    def call(self) -> None:
        """Run in the thread; connections that went bad are closed before and after."""
        self.started = time.monotonic()
        close_old_connections()
        try:
            self.result = self.run()
        finally:
            close_old_connections()


class StepThreads:
    """The threads of one process."""

    def __init__(self, threads: int = MAX_THREADS) -> None:
        self.size = threads
        self._pool: ThreadPoolExecutor | None = None

    def run(self, jobs: Sequence[Job]) -> bool:
        """Run the jobs and wait for them; False as soon as one hangs past its timeout and grace.

        Each job has its result then, but for those that hang or had not ended beside them.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.size, thread_name_prefix="ductor-step")
        waiting: dict[Future[None], Job] = {
            self._pool.submit(contextvars.copy_context().run, job.call): job for job in jobs
        }
        while waiting:
            done, _ = wait(waiting, timeout=_next_look(waiting.values()), return_when=FIRST_COMPLETED)
            for future in done:
                del waiting[future]
                future.result()
            if any(_hangs(job) for job in waiting.values()):
                return False
        return True

    def close(self) -> None:
        """End the threads that are idle, and their connections with them; those that hang are left."""
        if self._pool is not None:
            together = threading.Barrier(self.size)
            for _ in range(self.size):
                self._pool.submit(_close_connections, together)
            self._pool.shutdown(wait=False)
            self._pool = None


def _close_connections(together: threading.Barrier) -> None:
    connections.close_all()
    # Each thread takes one of these calls only if none is free before the others have theirs; one that hangs has none.
    with contextlib.suppress(threading.BrokenBarrierError):
        together.wait(timeout=1.0)


def _next_look(jobs: Any) -> float:
    """Return the seconds until a job has to be told something; one that waits for a thread is looked at soon."""
    now = time.monotonic()
    pauses = [_LOOK_SECONDS]
    for job in jobs:
        if job.started:
            over = now - job.started - job.timeout_seconds
            pauses.append(max(0.001, -over if over < 0 else GRACE_SECONDS - over))
    return min(pauses)


def _hangs(job: Job) -> bool:
    """Tell a job whose time is over to stop; True when it did not for the whole grace."""
    if not job.started:
        return False
    over = time.monotonic() - job.started - job.timeout_seconds
    if over >= 0:
        cancel(job.context, StepTimeout)
    return over >= GRACE_SECONDS
