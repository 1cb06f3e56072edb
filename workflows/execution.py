"""Runs one handler once and turns whatever happens into an output or a typed `StepFailure`.

How a handler is stopped depends on where it runs. In the main thread a timer (SIGALRM) raises `StepTimeout` in the
middle of its code; a coroutine is cancelled by its event loop; in a step thread `ctx.cancelled` is all there is, and
the watchdog (`heartbeats`) ends the process when that is not heeded.
"""

import asyncio
import contextlib
import contextvars
import functools
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from asgiref.sync import async_to_sync
from django.db import connections

from workflows.context import Context, mark_stopped, on_cancel, stop_reason
from workflows.control import Cancelled, Interrupted, PermanentError, RetryLater, StepTimeout
from workflows.definitions import Step
from workflows.values import flaws, to_json

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000
MAX_FRAMES = 20
ALARM_AGAIN_SECONDS = 1.0

FailureKind = Literal["error", "permanent", "timeout", "output", "later", "lost"]


@dataclass(frozen=True, slots=True)
class StepFailure:
    """Why a step has no output.

    Attributes:
        kind: `error` (the handler raised), `permanent` (PermanentError), `timeout`, `output` (it returned what can't
            be stored), `later` (RetryLater, no failure), `lost` (cancelled or lease lost: nothing may be written).
        error: class, message, traceback and kind, all bounded and storable; what the task shows as its error.
        after_seconds: the pause that RetryLater asked for.
    """

    kind: FailureKind
    error: dict[str, Any]
    after_seconds: float = 0.0


class OutputInvalid(Exception):
    """The handler returned something that can't be stored as the step's output."""


class TransactionLeft(Exception):
    """The handler returned with a database transaction open; it was rolled back."""


Result = tuple[Any, StepFailure | None]


def execute(step: Step, context: Context[Any], *, finish: Callable[[Any], None] | None = None) -> Result:
    """Run the handler of `step`; never raises for what the handler did.

    Args:
        step: what to run.
        context: the handler's argument; `cancel(context)` stops it from another thread.
        finish: called with the checked output while errors still count as the handler's (an atomic step's record).

    Returns:
        The output as JSON and None, or None and the failure.
    """
    try:
        output = _call(step, context)
        reason = stop_reason(context)
        if reason is not None:
            raise reason
        output = _checked(output)
        if finish is not None:
            finish(output)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  the one place where whatever a handler raises becomes a value
        return None, failure_of(error, context)
    return output, None


def failure_of(error: BaseException, context: Context[Any]) -> StepFailure:
    """Return the typed failure that an exception stands for."""
    if isinstance(error, Interrupted | asyncio.CancelledError):
        # A coroutine that was cancelled raises a bare CancelledError; the context knows why.
        reason = stop_reason(context)
        if reason is Cancelled:
            return StepFailure("lost", {})
        if reason is StepTimeout:
            return StepFailure("timeout", describe(StepTimeout("The step ran longer than its timeout."), "timeout"))
    if isinstance(error, RetryLater):
        return StepFailure("later", describe(error, "later"), error.after_seconds)
    kind: FailureKind = "error"
    if isinstance(error, PermanentError):
        kind = "permanent"
    elif isinstance(error, OutputInvalid):
        kind = "output"
    return StepFailure(kind, describe(error, kind))


def describe(error: BaseException, kind: FailureKind) -> dict[str, Any]:
    """Return an exception as bounded, storable JSON: class, message, kind and the end of its traceback."""
    described = {"class": type(error).__name__[:200], "message": storable(_message(error), MAX_MESSAGE), "kind": kind}
    if error.__traceback__ is not None and kind in ("error", "timeout"):
        lines = traceback.format_exception(type(error), error, error.__traceback__, limit=-MAX_FRAMES)
        described["traceback"] = storable("".join(lines)[-MAX_TRACEBACK:], MAX_TRACEBACK)
    return described


def storable(text: str, limit: int) -> str:
    """Return `text` as PostgreSQL can store it, at most `limit` characters."""
    return text[:limit].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a handler's exception may have a broken __str__
        return "(the exception has no message)"


def _checked(output: Any) -> Any:
    if output is None:
        return None
    value = to_json(output)
    if found := flaws(value):
        raise OutputInvalid(f"{found[0]['pointer'] or '/'}: {found[0]['detail']}")
    return value


def _call(step: Step, context: Context[Any]) -> Any:
    # The copy keeps what the handler sets in context variables out of the next task.
    copied = contextvars.copy_context()
    before = _open_transactions()
    try:
        if step.is_async:
            return copied.run(_run_async, step, context)
        if threading.current_thread() is threading.main_thread():
            return _run_under_alarm(step, context, copied)
        return copied.run(step.handler, context)
    finally:
        if _open_transactions() != before:
            _end_transactions(before)


def _open_transactions() -> list[tuple[str, int]]:
    """Return this thread's connections that are inside a transaction, each with its depth."""
    return [
        (connection.alias, 1 + len(connection.savepoint_ids))
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block or (connection.connection is not None and not connection.autocommit)
    ]


def _end_transactions(before: list[tuple[str, int]]) -> None:
    """Have no handler leave a transaction to the next task, which may be another tenant's.

    Raises:
        TransactionLeft: always; the connections are gone, and so is what was written there.
    """
    for alias in {alias for alias, _ in {*_open_transactions()} ^ {*before}}:
        connection = connections[alias]
        raw, connection.connection = connection.connection, None
        if raw is not None:
            raw.close()
        del connections[alias]
    raise TransactionLeft("The handler left a transaction open; end it with the `with transaction.atomic()` block.")


class _Running:
    """What the main thread runs at the moment, for the signal handler."""

    __slots__ = ("context", "deadline")

    def __init__(self) -> None:
        self.context: Context[Any] | None = None
        self.deadline = 0.0


_running = _Running()


def install_alarm() -> bool:
    """Have SIGALRM stop the handler that runs in the main thread; False where this is not the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return False
    signal.signal(signal.SIGALRM, _on_alarm)
    return True


def _on_alarm(number: int, frame: Any) -> None:
    context = _running.context
    if context is None:
        return
    if stop_reason(context) is None:
        if time.monotonic() < _running.deadline:
            # Meant for a handler that has ended meanwhile.
            return
        mark_stopped(context, StepTimeout)
    reason = stop_reason(context)
    assert reason is not None
    raise reason


def _run_under_alarm(step: Step, context: Context[Any], copied: contextvars.Context) -> Any:
    on_cancel(context, _interrupt_main)
    _running.deadline = time.monotonic() + step.timeout_seconds
    _running.context = context
    try:
        try:
            # It goes off again and again, for a handler that swallows the first one.
            signal.setitimer(signal.ITIMER_REAL, step.timeout_seconds, ALARM_AGAIN_SECONDS)
            return copied.run(step.handler, context)
        finally:
            _disarm()
    except Interrupted:
        # The alarm may go off between the handler's end and the line above, and then that line did not run.
        _disarm()
        # It may have struck anywhere, Django's own bookkeeping included: nobody goes on with these connections.
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()
        raise


def _disarm() -> None:
    _running.context = None
    signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt_main() -> None:
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGALRM)


def _run_async(step: Step, context: Context[Any]) -> Any:
    # async_to_sync runs ORM calls of the coroutine in this thread, on this thread's connection and transaction.
    return async_to_sync(functools.partial(_bounded, step, context))()


def _cancel_coroutine(task: asyncio.Task[Any]) -> None:
    # RuntimeError: the loop has closed, so the coroutine has ended by itself.
    with contextlib.suppress(RuntimeError):
        task.get_loop().call_soon_threadsafe(task.cancel)


async def _bounded(step: Step, context: Context[Any]) -> Any:
    task = asyncio.current_task()
    assert task is not None
    on_cancel(context, functools.partial(_cancel_coroutine, task))
    try:
        async with asyncio.timeout(step.timeout_seconds) as limit:
            return await step.handler(context)
    except TimeoutError:
        if not limit.expired():
            raise
        mark_stopped(context, StepTimeout)
        raise StepTimeout from None
    finally:
        on_cancel(context, None)
