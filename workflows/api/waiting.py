"""Waiting for a task's end on behalf of an HTTP client.

A waiter holds a thread, but no transaction and no connection: it looks, gives the connection back, sleeps and looks
again. Waiters are bounded for the process and for each tenant, so that one tenant's patience is nobody's outage; who
finds no place gets the present state at once, which is what `wait` means anyway.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import close_old_connections

from workflows.queries import TaskView, get_task
from workflows.states import TERMINAL

MAX_WAITERS = 64
MAX_WAIT_SECONDS = 20
MAX_WAITERS_OF_A_TENANT = 16
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.5

_lock = threading.Lock()
_waiters: Counter[UUID] = Counter()


def wait_for_end(*, tenant_id: UUID, task_id: UUID, seconds: float) -> TaskView:
    """Return the task when it has ended, at the latest after `seconds`.

    Raises:
        TaskNotFound: there is no such task, or no longer.
    """
    task = get_task(tenant_id=tenant_id, task_id=task_id)
    if seconds <= 0 or task.state in TERMINAL:
        return task
    with _place(tenant_id) as found:
        if not found:
            return task
        deadline = time.monotonic() + seconds
        pause = _FIRST_PAUSE_SECONDS
        while task.state not in TERMINAL and (left := deadline - time.monotonic()) > 0:
            close_old_connections()
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            task = get_task(tenant_id=tenant_id, task_id=task_id)
        return task


@contextmanager
def _place(tenant_id: UUID) -> Iterator[bool]:
    with _lock:
        found = _waiters[tenant_id] < MAX_WAITERS_OF_A_TENANT and _waiters.total() < MAX_WAITERS
        if found:
            _waiters[tenant_id] += 1
    try:
        yield found
    finally:
        if found:
            with _lock:
                _waiters[tenant_id] -= 1
                if not _waiters[tenant_id]:
                    del _waiters[tenant_id]
