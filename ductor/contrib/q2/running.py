"""The one step of every `q2:…` workflow: call the function, keep its result, go on with the chain.

A chain is one task: each link is a tick of its own, with its own timeout and place in the fair order, and its row says
that it was made. As tasks of their own, links would need a free place each, and a tenant full of chains would stand
still.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connections
from django_q import signals

from ductor.contrib.q2 import functions, results
from ductor.contrib.q2.packages import Link
from tenants.errors import Unavailable
from workflows.context import Context, cancel, stop_reason
from workflows.control import Interrupted, PermanentError, RetryLater, StepTimeout
from workflows.errors import UnknownWorkflow
from workflows.execution import describe, storable
from workflows.values import flaws, to_json

log = structlog.get_logger("ductor.q2")

MAX_FAILURE = 10_000
NEXT_LINK_SECONDS = 0.001
AGAIN_SECONDS = 2.0


class ResultInvalid(Exception):
    """The function returned something that is no JSON."""


def run(ctx: Context[Any]) -> Any:
    """Call the first function of the input that has no row yet.

    Raises:
        RetryLater: the chain goes on, or the database did not take the result.
        PermanentError: a link before the last one had failed.
        Exception: what the function raised.
    """
    links: list[Link] = ctx.input["links"]
    rows: dict[str, tuple[bool, Any]] = {}
    if ctx.attempt > 1 or len(links) > 1:
        rows = results.saved(tenant_id=ctx.tenant, ids=[link["id"] for link in links])
    # A failed call that is alone came to this attempt by a lost worker: it is made again, as if it had not ended.
    done = [link["id"] for link in links if link["id"] in rows and (len(links) > 1 or rows[link["id"]][0])]
    link = next((link for link in links if link["id"] not in done), None)
    if link is not None:
        rows[link["id"]] = _make(ctx, link, keep=len(links) > 1)
        if link is not links[-1]:
            raise RetryLater(NEXT_LINK_SECONDS)
    failed = sum(not success for success, _ in rows.values())
    if failed:
        raise PermanentError(f"{failed} of the {len(links)} links of this chain failed.")
    return rows[links[-1]["id"]][1]


def _make(ctx: Context[Any], link: Link, *, keep: bool) -> tuple[bool, Any]:
    """Make one call and save its row.

    Raises:
        Exception: the call failed and is no link of a chain.
    """
    started = datetime.now(UTC)
    error: BaseException | None = None
    result: Any = None
    try:
        result = _call(ctx, link)
    except Interrupted as stop:
        if stop_reason(ctx) is not StepTimeout:
            raise
        # The alarm may have struck inside a statement: nobody goes on with these connections.
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()
        error = stop
    except (Exception, SystemExit) as raised:  # noqa: BLE001  the function is a handler: its failure is a row
        error = raised
    if error is not None:
        result = _failure_text(error)
    ended = results.Ended(error is None, result, started, datetime.now(UTC))
    try:
        results.save(tenant_id=ctx.tenant, link=link, ended=ended, iter_count=ctx.input.get("iter_count"), keep=keep)
    except (OperationalError, InterfaceError, Unavailable) as failure:
        log.warning("q2_result_not_saved", q2_task=link["id"], why=type(failure).__name__)
        raise RetryLater(AGAIN_SECONDS) from failure
    _announce(link, ended)
    if error is not None and not keep:
        raise error
    return ended.success, result


def _call(ctx: Context[Any], link: Link) -> Any:
    try:
        function = functions.find(link["func"])
    except UnknownWorkflow as unknown:
        raise PermanentError(unknown.message) from None
    signals.pre_execute.send_robust(sender="django_q", func=function, task=dict(link))
    with _bounded(ctx, link["timeout"]):
        result = to_json(function(*link["args"], **link["kwargs"]))
    if found := flaws(result):
        raise ResultInvalid(f"The result is no JSON: {found[0]['pointer'] or '/'}: {found[0]['detail']}")
    return result


@contextmanager
def _bounded(ctx: Context[Any], seconds: float | None) -> Iterator[None]:
    """Stop the function after its own timeout, where it has one below the step's."""
    if seconds is None:
        yield
        return
    stop: Callable[[], None] = lambda: cancel(ctx, StepTimeout)  # noqa: E731
    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _failure_text(error: BaseException) -> str:
    """What django-q2 keeps of a failure: the message, and the traceback."""
    if isinstance(error, StepTimeout):
        return "Task exceeded its timeout."
    about = describe(error, "error")
    return storable(f"{about['message']} : {about.get('traceback', '')}", MAX_FAILURE)


def _announce(link: Link, ended: results.Ended) -> None:
    """Send django-q2's signals of a call that has ended; a receiver that raises changes nothing."""
    task = link | {"result": ended.result, "success": ended.success, "stopped": ended.stopped}
    signals.post_execute_in_worker.send_robust(sender="django_q", func=link["func"], task=task)
    signals.post_execute.send_robust(sender="django_q", task=task)
