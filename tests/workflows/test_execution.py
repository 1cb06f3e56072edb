"""One handler, run once: what it returns and how it fails."""

import asyncio
import contextvars
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from ductor import Context, PermanentError, RetryLater, Workflow
from tests.workflows.executing import Handler, context_of, failure_of, one, run
from workflows.execution import MAX_MESSAGE, MAX_TRACEBACK, execute

pytestmark = pytest.mark.usefixtures("alarm")


def test_what_a_handler_returns_is_its_output() -> None:
    @dataclass
    class Receipt:
        total: int
        lines: tuple[int, ...]

    async def later(ctx: Context[Any]) -> int:
        await asyncio.sleep(0.001)
        return int(ctx.input["n"]) + 1

    assert run(lambda ctx: None) == (None, None)
    assert run(lambda ctx: {"n": ctx.input["n"]}) == ({"n": 1}, None)
    assert run(lambda ctx: Receipt(3, (1, 2))) == ({"total": 3, "lines": [1, 2]}, None)
    assert run(later) == (2, None)


@pytest.mark.parametrize("output", ["a\0b", float("nan"), object(), {1: 2}, "x" * 300_000])
def test_an_output_that_cannot_be_stored_fails_the_step(output: Any) -> None:
    failure = failure_of(lambda ctx: output)

    assert (failure.kind, failure.error["class"]) == ("output", "OutputInvalid")


def test_an_exception_becomes_a_bounded_storable_failure() -> None:
    def raises(ctx: Context[Any]) -> None:
        raise ValueError("bad\0\ud800" + "x" * 100_000)

    failure = failure_of(raises)

    assert failure.kind == "error"
    assert failure.error["class"] == "ValueError"
    assert failure.error["message"].startswith("bad\ufffd?x")
    assert len(failure.error["message"]) == MAX_MESSAGE
    assert len(failure.error["traceback"]) <= MAX_TRACEBACK
    assert "\0" not in failure.error["traceback"]
    assert failure.error["traceback"].encode()


def test_the_traceback_ends_where_the_handler_raised() -> None:
    def raises(ctx: Context[Any]) -> None:
        raise LookupError("here")

    assert "in raises" in failure_of(raises).error["traceback"]


def test_an_exception_without_a_message_is_reported_too() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def raises(ctx: Context[Any]) -> None:
        raise Mute

    assert failure_of(raises).error["message"] == "(the exception has no message)"


def test_permanent_errors_and_later_are_told_apart() -> None:
    def permanent(ctx: Context[Any]) -> None:
        raise PermanentError("no such order")

    def later(ctx: Context[Any]) -> None:
        raise RetryLater(after="2m")

    assert failure_of(permanent).kind == "permanent"
    assert (failure_of(later).kind, failure_of(later).after_seconds) == ("later", 120.0)


def test_a_handler_that_exits_fails_its_step_and_not_the_worker() -> None:
    def exits(ctx: Context[Any]) -> None:
        raise SystemExit(3)

    assert (failure_of(exits).kind, failure_of(exits).error["class"]) == ("error", "SystemExit")


def test_context_variables_of_a_handler_end_with_it() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")

    def sets(ctx: Context[Any]) -> str:
        variable.set("dirty")
        return variable.get()

    assert run(sets) == ("dirty", None)
    assert variable.get() == "clean"


def test_an_async_handler_uses_the_threads_own_connection() -> None:
    async def queries(ctx: Context[Any]) -> int:
        from asgiref.sync import sync_to_async

        return await sync_to_async(_backend)()

    assert run(queries) == (_backend(), None)


def test_a_transaction_left_open_is_rolled_back_and_reported() -> None:
    def leaves(ctx: Context[Any]) -> None:
        transaction.atomic().__enter__()
        one()

    failure = failure_of(leaves)

    assert failure.error["class"] == "TransactionLeft"
    assert not connection.in_atomic_block
    assert run(lambda ctx: one()) == (1, None)


def test_autocommit_left_off_is_reported() -> None:
    def leaves(ctx: Context[Any]) -> None:
        transaction.set_autocommit(False)
        one()

    assert failure_of(leaves).error["class"] == "TransactionLeft"
    assert run(lambda ctx: one()) == (1, None)


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_the_context_tells_who_and_what() -> None:
    reports: list[dict[str, Any]] = []
    flow = Workflow("told", version=3)

    @flow.step("first-step")
    def first(ctx: Context[Any]) -> None: ...

    @flow.step(after=first)
    def only(ctx: Context[Any]) -> Any:
        ctx.progress(1, 4, "x" * 600)
        ctx.log.info("seen", extra_field=1)
        return [ctx.idempotency_key, ctx.output(first), ctx.output("first-step"), ctx.cancelled, ctx.attempt]

    context = context_of(flow, outputs={"first-step": 9}, report=reports.append, attempt=2)
    output, failure = execute(flow.steps["only"], context)

    assert failure is None
    assert output == [f"{UUID(int=2)}:only", 9, 9, False, 2]
    assert reports == [{"step": "only", "done": 1, "total": 4, "note": "x" * 500}]


@pytest.mark.parametrize("call", [lambda ctx: ctx.progress(float("nan")), lambda ctx: ctx.progress(1, note="\0")])
def test_progress_that_cannot_be_stored_is_refused(call: Handler) -> None:
    assert failure_of(call).error["class"] == "ValueError"


def test_the_output_of_a_step_that_is_not_completed_is_a_key_error() -> None:
    failure = failure_of(lambda ctx: ctx.output("other"))

    assert failure.error["class"] == "KeyError"
    assert "after=" in failure.error["message"]
