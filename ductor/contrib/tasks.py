"""A backend for `django.tasks` (Django 6) and `django-tasks` (before it): an enqueued task is a Ductor task.

A function becomes the workflow `task:<module path>` when `@task` decorates it. A worker runs what its registry holds
and imports nothing for a row's sake.
"""

import dataclasses
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from inspect import iscoroutinefunction
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings

from tenants.errors import NotFound, ScopeMissing
from tenants.identity import SYSTEM_QUEUE, SYSTEM_TENANT_ID, parse_id
from tenants.principals import Principal
from tenants.scope import attached
from workflows import registry
from workflows.context import Context
from workflows.definitions import Workflow
from workflows.queries import TaskView, get_task
from workflows.retries import Retry
from workflows.starting import Start, start_tasks
from workflows.states import State

PREFIX = "task:"
VERSION = 1
_LIBRARY = "django.tasks" if find_spec("django.tasks") else "django_tasks"

_base: Any = import_module(f"{_LIBRARY}.base")
_signals: Any = import_module(f"{_LIBRARY}.signals")
_exceptions: Any = import_module(f"{_LIBRARY}.exceptions")
_BaseTaskBackend: Any = import_module(f"{_LIBRARY}.backends.base").BaseTaskBackend
_BaseTask: Any = _base.Task
_Status: Any = _base.TaskResultStatus
# Django and django-tasks call it differently.
InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError

_STATUSES = {
    State.QUEUED: _Status.READY,
    State.WAITING: _Status.READY,
    State.LEASED: _Status.RUNNING,
    State.COMPLETED: _Status.SUCCESSFUL,
    State.FAILED: _Status.FAILED,
    State.CANCELLED: _Status.FAILED,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DuctorTask(_BaseTask):
    """A task with what Ductor adds: `@task(retries=3, timeout="30s")`.

    Attributes:
        retries: how often a call that raised is made again, after a pause that doubles.
        timeout: the longest one call may take, in seconds or as a text.
    """

    retries: int = 0
    timeout: float | str = "5m"


class TaskWorkflow(Workflow):
    """The workflow of one decorated function."""

    def __init__(self, task: Any) -> None:
        super().__init__(PREFIX + task.module_path, version=VERSION, internal=True)
        self.module = task.func.__module__
        self.task = task
        handler = self.call_async if iscoroutinefunction(task.func) else self.call
        attempts = task.retries + 1 if type(task.retries) is int else 0
        self.step("call", retry=Retry(max_attempts=attempts), timeout=task.timeout)(handler)

    def call(self, ctx: Context[Any]) -> Any:
        """Make the call of a plain function."""
        result, args = self._begin(ctx)
        try:
            value = self.task.func(*args, **ctx.input["kwargs"])
        except Exception:
            self._failed(ctx, result)
            raise
        self._succeeded(result, value)
        return value

    async def call_async(self, ctx: Context[Any]) -> Any:
        """Make the call of a coroutine function; receivers of signals run beside the loop, as they are not async."""
        result, args = await sync_to_async(self._begin)(ctx)
        try:
            value = await self.task.func(*args, **ctx.input["kwargs"])
        except Exception:
            await sync_to_async(self._failed)(ctx, result)
            raise
        await sync_to_async(self._succeeded)(result, value)
        return value

    def _begin(self, ctx: Context[Any]) -> tuple[Any, list[Any]]:
        now = datetime.now(UTC)
        result = _result(
            self.task,
            ctx.task_id,
            _Status.RUNNING,
            ctx.input,
            started_at=now,
            last_attempted_at=now,
            worker_ids=_workers(ctx.attempt),
        )
        _signals.task_started.send_robust(sender=DuctorBackend, task_result=result)
        args = list(ctx.input["args"])
        return result, [_base.TaskContext(task_result=result), *args] if self.task.takes_context else args

    def _succeeded(self, result: Any, value: Any) -> None:
        _set(result, status=_Status.SUCCESSFUL, finished_at=datetime.now(UTC), _return_value=value)
        _signals.task_finished.send_robust(sender=DuctorBackend, task_result=result)

    def _failed(self, ctx: Context[Any], result: Any) -> None:
        if ctx.attempt > self.task.retries:
            _set(result, status=_Status.FAILED, finished_at=datetime.now(UTC))
            _signals.task_finished.send_robust(sender=DuctorBackend, task_result=result)


class DuctorBackend(_BaseTaskBackend):
    """`TASKS = {"default": {"BACKEND": "ductor.contrib.tasks.DuctorBackend"}}`.

    `QUEUES` are Ductor's queues, by default those of DUCTOR_QUEUES. With `OPTIONS = {"system": True}` tasks belong to
    the system tenant, for the platform's own house-keeping, and are started where no tenant is attached.
    """

    task_class = DuctorTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, {"QUEUES": settings.DUCTOR_QUEUES, **params})
        self.system = bool(self.options.get("system", False))

    def validate_task(self, task: Any) -> None:
        """Check a task and make its function known to this process; called whenever a Task is made.

        Raises:
            InvalidTask: it can't be run here.
        """
        super().validate_task(task)
        known = registry.find(PREFIX + task.module_path, VERSION)
        if known is None:
            known = TaskWorkflow(task)
        if not isinstance(known, TaskWorkflow) or known.task.func is not task.func:
            raise InvalidTask(f"Another function than this one is known as {task.module_path!r}.")
        if not known.is_sound:
            raise InvalidTask(" ".join(mistake.text for mistake in known.mistakes()))

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Start the task in the caller's transaction; returns its result, which is READY.

        Raises:
            InvalidTask: its function belongs to no installed app.
            ScopeMissing: no tenant is attached, and this backend is not the system's.
            ScopeConflict: a customer's tenant is attached, and this backend is the system's.
            InputInvalid: an argument is no JSON.
            PolicyMissing, TenantFrozen, QuotaExceeded, QueueUnknown: the tenant may not start it now.
        """
        self.validate_task(task)
        if apps.get_containing_app_config(task.func.__module__) is None:
            raise InvalidTask(f"{task.module_path} belongs to no installed app: no worker would know it.")
        call = {"args": list(args), "kwargs": dict(kwargs)}
        start = Start(
            PREFIX + task.module_path,
            VERSION,
            call,
            queue=SYSTEM_QUEUE if self.system else task.queue_name,
            priority=int(task.priority),
            due_at=task.run_after,
        )
        [started] = start_tasks(tenant_id=self._tenant(), starts=[start], principal=Principal.code(), source="code")
        result = _result(task, started.task_id, _Status.READY, call, enqueued_at=datetime.now(UTC), backend=self.alias)
        _signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return what is known of a task of the attached tenant.

        Raises:
            TaskResultDoesNotExist: the tenant has no such task of a function that this process knows.
            ScopeMissing: no tenant is attached, and this backend is not the system's.
        """
        tenant_id = self._tenant()
        try:
            view = get_task(tenant_id=tenant_id, task_id=parse_id(result_id))
        except NotFound:
            raise _exceptions.TaskResultDoesNotExist(result_id) from None
        workflow = registry.find(view.workflow, view.version)
        if not isinstance(workflow, TaskWorkflow):
            raise _exceptions.TaskResultDoesNotExist(result_id)
        queue = view.queue if view.queue in self.queues else workflow.task.queue_name
        task = dataclasses.replace(workflow.task, priority=view.priority, queue_name=queue, backend=self.alias)
        return _result_of(task, view, self.alias)

    def _tenant(self) -> UUID:
        if self.system:
            return SYSTEM_TENANT_ID
        tenant_id = attached()
        if tenant_id is None:
            raise ScopeMissing("A task is the attached tenant's, and none is: wrap this in `attach(tenant_id)`.")
        return tenant_id


def _result_of(task: Any, view: TaskView, alias: str) -> Any:
    result = _result(
        task,
        view.id,
        _STATUSES[State(view.state)],
        view.input,
        enqueued_at=view.created_at,
        started_at=view.started_at,
        last_attempted_at=view.started_at,
        finished_at=view.terminal_at,
        errors=_errors(view),
        worker_ids=_workers(view.attempt),
        backend=alias,
    )
    _set(result, _return_value=view.output)
    return result


def _result(task: Any, task_id: UUID, status: Any, call: dict[str, Any], **more: Any) -> Any:
    known: dict[str, Any] = dict.fromkeys(("enqueued_at", "started_at", "finished_at", "last_attempted_at"))
    known |= {"backend": task.backend, "errors": [], "worker_ids": []}
    return _base.TaskResult(
        task=task, id=str(task_id), status=status, args=call["args"], kwargs=call["kwargs"], **(known | more)
    )


def _set(result: Any, **values: Any) -> None:
    """The library's own way: its results are frozen for everybody but backends."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def _workers(attempts: int) -> list[str]:
    """One name an attempt: what counts is how many, since a lease is not remembered after its end."""
    return ["ductor"] * attempts


def _errors(view: TaskView) -> list[Any]:
    error = view.error
    if view.state == State.CANCELLED:
        return [_error("workflows.control.Cancelled", view.reason or "")]
    if error is None:
        return [_error("builtins.RuntimeError", view.reason or "")] if view.state == State.FAILED else []
    return [_error(_class_path(error), error.get("traceback") or f"{error.get('class')}: {error.get('message')}")]


def _error(path: str, trace: str) -> Any:
    return _base.TaskError(exception_class_path=path, traceback=trace)


def _class_path(error: dict[str, Any]) -> str:
    """Return the import path of an error's class, which is stored by its name; its traceback may hold the path.

    The library imports this path. A traceback also holds messages, and those whatever a tenant put in: so only an
    exception of a module that is loaded already is named.
    """
    name = str(error.get("class"))
    modules = re.findall(rf"^((?:\w+\.)*\w+)\.{re.escape(name)}(?:$|:)", str(error.get("traceback", "")), re.MULTILINE)
    for module in (*reversed(modules), "builtins", "workflows.control"):
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return f"{module}.{name}"
    return "builtins.Exception"
