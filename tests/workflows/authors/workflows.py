"""Handlers that leave a trace line for each execution, and rows of their own: the tasks that they start."""

import os
from typing import Any

from ductor import Context, Retry, Workflow

_NO_PAUSE = Retry(max_attempts=3, first=0, max=0)

started = Workflow("author-started", version=1, queue="external:nobody")
plain = Workflow("author-plain", version=1)
chain = Workflow("author-chain", version=1)
atomic = Workflow("author-atomic", version=1)


def trace(ctx: Context[Any]) -> None:
    with open(os.environ["DUCTOR_TEST_TRACE"], "ab", buffering=0) as file:
        file.write(f"{ctx.step} {ctx.attempt}\n".encode())


@started.step
def never(ctx: Context[Any]) -> None:
    """Nobody serves this queue: its tasks are rows to be counted."""


@plain.step(retry=_NO_PAUSE)
def only(ctx: Context[Any]) -> str:
    trace(ctx)
    return "done"


@chain.step(retry=_NO_PAUSE)
def first(ctx: Context[Any]) -> str:
    trace(ctx)
    return "first"


@chain.step(after=first, retry=_NO_PAUSE)
def second(ctx: Context[Any]) -> str:
    trace(ctx)
    return str(ctx.output(first)) + "-second"


@atomic.step(atomic=True, retry=_NO_PAUSE)
def start_another(ctx: Context[Any]) -> str:
    trace(ctx)
    started.start({"by": str(ctx.task_id)})
    return "started"
