"""How a running handler is stopped: at its timeout, when its lease is lost, in every kind of place."""

import asyncio
import contextlib
import threading
import time
from typing import Any

import pytest
from django.db import connection

from ductor import Cancelled, Context, StepTimeout
from tests import database
from tests.builders import rows
from tests.workflows.executing import Handler, context_of, failure_of, one, run
from workflows.context import cancel
from workflows.execution import StepFailure

pytestmark = pytest.mark.usefixtures("alarm")


def busy(ctx: Context[Any]) -> None:
    while True:
        pass


def asleep(ctx: Context[Any]) -> None:
    time.sleep(60)


def stubborn(ctx: Context[Any]) -> str:
    try:
        time.sleep(60)
    except BaseException:
        time.sleep(0.05)
    return "done nevertheless"


async def awaiting(ctx: Context[Any]) -> None:
    await asyncio.sleep(60)


async def stubborn_coroutine(ctx: Context[Any]) -> str:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    return "done nevertheless"


@pytest.mark.parametrize("handler", [busy, asleep, stubborn, awaiting])
def test_a_step_is_stopped_at_its_timeout(handler: Handler) -> None:
    begun = time.monotonic()
    failure = failure_of(handler, timeout=0.1)

    assert (failure.kind, failure.error["class"]) == ("timeout", "StepTimeout")
    assert time.monotonic() - begun < 2


def test_the_alarm_goes_off_again_for_a_handler_that_swallows_it() -> None:
    def swallows(ctx: Context[Any]) -> None:
        for _ in range(3):
            try:
                time.sleep(60)
            except BaseException:
                continue

    begun = time.monotonic()
    assert failure_of(swallows, timeout=0.05).kind == "timeout"
    assert time.monotonic() - begun < 4


def test_a_timeout_of_the_handlers_own_is_an_ordinary_error() -> None:
    async def raises(ctx: Context[Any]) -> None:
        raise TimeoutError("the shop did not answer")

    assert (failure_of(raises).kind, failure_of(raises).error["class"]) == ("error", "TimeoutError")


def test_in_a_thread_the_handler_sees_that_it_should_stop() -> None:
    context = context_of()
    seen: list[StepFailure | None] = []

    def polite(ctx: Context[Any]) -> None:
        while True:
            ctx.raise_if_cancelled()
            time.sleep(0.01)

    thread = threading.Thread(target=lambda: seen.append(run(polite, context=context)[1]))
    thread.start()
    cancel(context, StepTimeout)
    thread.join(timeout=5)

    assert [failure.kind for failure in seen if failure] == ["timeout"]


@pytest.mark.parametrize("handler", [busy, asleep, stubborn, awaiting, stubborn_coroutine])
def test_a_lost_lease_stops_the_handler_and_nothing_is_to_be_written(handler: Handler) -> None:
    context = context_of()
    threading.Timer(0.1, cancel, [context]).start()
    begun = time.monotonic()

    failure = failure_of(handler, context=context)

    assert failure == StepFailure("lost", {})
    assert context.cancelled
    assert time.monotonic() - begun < 3


def test_a_cancel_that_comes_too_late_meets_no_other_handler() -> None:
    context = context_of()
    assert run(lambda ctx: 1, context=context) == (1, None)

    cancel(context)
    time.sleep(0.01)

    assert run(lambda ctx: time.sleep(0.05)) == (None, None)


def test_a_handler_interrupted_in_a_query_leaves_no_statement_behind() -> None:
    database.touch()

    def queries(ctx: Context[Any]) -> None:
        with connection.cursor() as cursor:
            cursor.execute("select pg_sleep(30) /* interrupted */")

    assert failure_of(queries, timeout=0.2).kind == "timeout"
    assert rows("select query from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()") == []
    assert run(lambda ctx: one()) == (1, None)


def test_a_handler_that_raises_cancelled_by_itself_has_failed() -> None:
    def raises(ctx: Context[Any]) -> None:
        raise Cancelled

    assert failure_of(raises).kind == "error"
