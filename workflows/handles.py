"""What `wf.start()` gives back: the started task, to look at and to wait for."""

import time
from typing import Any
from uuid import UUID

from django.db import connection

from tenants.scope import attach
from workflows.durations import Duration, seconds_of
from workflows.queries import TaskView, get_task
from workflows.states import TERMINAL, State

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0


class TaskFailed(Exception):
    """The task ended failed or cancelled; `task` is its last view, `task.error` why."""

    def __init__(self, task: TaskView) -> None:
        self.task = task
        cause = (task.error or {}).get("class") or task.reason or ""
        super().__init__(f"Task {task.id} ended {task.state}{f': {cause}' if cause else ''}.")


class TaskHandle:
    """One started task.

    Attributes:
        id: the task's id.
        tenant_id: the tenant that it belongs to.
        created: False where the key had started it before.
    """

    __slots__ = ("_view", "created", "id", "tenant_id")

    def __init__(self, tenant_id: UUID, task_id: UUID, created: bool) -> None:
        self.tenant_id = tenant_id
        self.id = task_id
        self.created = created
        self._view: TaskView | None = None

    def __repr__(self) -> str:
        return f"<TaskHandle {self.id}>"

    def refresh(self) -> TaskView:
        """Read the task.

        Raises:
            TaskNotFound: it is not there (any more).
            ScopeConflict: another tenant is attached.
        """
        with attach(self.tenant_id):
            self._view = get_task(tenant_id=self.tenant_id, task_id=self.id)
        return self._view

    @property
    def status(self) -> State:
        """The task's state when it was last read; it is read once where it was not yet."""
        return State((self._view or self.refresh()).state)

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the task's end and return its output.

        Args:
            timeout: how long to wait, in seconds or as a text such as "30s"; None waits for ever.

        Raises:
            TaskFailed: it ended failed or cancelled.
            TimeoutError: it has not ended in this time.
            RuntimeError: a transaction is open here, before whose commit no worker sees the task.
        """
        if connection.in_atomic_block:
            raise RuntimeError("A task's result can't be awaited inside the transaction that may have started it.")
        deadline = None if timeout is None else time.monotonic() + seconds_of(timeout, zero=True)
        pause = _FIRST_PAUSE_SECONDS
        while True:
            task = self.refresh()
            if task.state in TERMINAL:
                if task.state == State.COMPLETED:
                    return task.output
                raise TaskFailed(task)
            if deadline is not None and time.monotonic() + pause > deadline:
                raise TimeoutError(f"Task {self.id} is still {task.state}.")
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
