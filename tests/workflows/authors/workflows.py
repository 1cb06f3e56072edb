"""Handlers that leave a trace line for each execution, and rows of their own: the tasks that they start."""

import asyncio
import contextlib
import os
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection, transaction

from ductor import Context, PermanentError, Retry, Workflow
from tenants.scope import attach, attached, tenant_scope
from workflows.models import Task

_NO_PAUSE = Retry(max_attempts=3, first=0, max=0)

started = Workflow("author-started", version=1)
plain = Workflow("author-plain", version=1)
chain = Workflow("author-chain", version=1)
atomic = Workflow("author-atomic", version=1)


def trace(ctx: Context[Any]) -> None:
    with open(os.environ["DUCTOR_TEST_TRACE"], "ab", buffering=0) as file:
        file.write(f"{ctx.step} {ctx.attempt}\n".encode())


@started.step
def never(ctx: Context[Any]) -> None:
    """Started with a long delay only: its tasks are rows to be counted."""


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
    started.start({"by": str(ctx.task_id)}, delay="300d")
    return "started"


looks = Workflow("author-looks", version=1)


def whose() -> list[str]:
    """Whom this thread acts for: as attached, as bound in the database, and by the rows that can be seen."""
    with tenant_scope() as bound:
        with connection.cursor() as cursor:
            cursor.execute("select current_setting('ductor.tenant_id')")
            setting = str(cursor.fetchone()[0])
        seen = {str(task.tenant_id) for task in Task.objects.all()[:50]}
    return sorted({str(attached()), str(bound), setting, *seen})


def look(ctx: Context[Any]) -> None:
    """Fail for good unless everything here is the tenant whose id stands in the input."""
    if not [str(ctx.tenant)] == whose() == [ctx.input["expected"]]:
        raise PermanentError(f"{ctx.step}: {whose()} instead of {ctx.input['expected']}")


@looks.step
def in_the_main_thread(ctx: Context[Any]) -> None:
    look(ctx)
    time.sleep(0.002)
    look(ctx)


@looks.step(after=in_the_main_thread)
def in_a_thread(ctx: Context[Any]) -> None:
    look(ctx)
    time.sleep(0.003)
    look(ctx)


@looks.step(after=in_the_main_thread)
async def in_a_coroutine(ctx: Context[Any]) -> None:
    await sync_to_async(look)(ctx)
    await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(3)))
    await sync_to_async(look)(ctx)


@looks.step(after=in_the_main_thread)
def rolled_back(ctx: Context[Any]) -> None:
    with contextlib.suppress(LookupError), attach(ctx.tenant), tenant_scope():
        look(ctx)
        raise LookupError
    look(ctx)


@looks.step(after=in_the_main_thread, atomic=True)
def in_one_transaction(ctx: Context[Any]) -> None:
    look(ctx)
    with contextlib.suppress(LookupError), transaction.atomic():
        raise LookupError
    look(ctx)


@looks.step(after=in_the_main_thread, retry=_NO_PAUSE)
def raising(ctx: Context[Any]) -> None:
    look(ctx)
    if ctx.attempt == 1:
        with tenant_scope():
            raise ValueError
