"""Functions for django-q2, and tasks for django.tasks below.

Those that trace append one line to the file of DUCTOR_TEST_TRACE, where that is set.
"""

import os
import signal
import time
from os.path import basename  # noqa: F401  imported, not defined: may not be run from here
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django_q.models import Task
from django_q.tasks import async_task
from django_tasks import TaskContext, task

from tenants.scope import attached


def trace(*words: object) -> None:
    if path := os.environ.get("DUCTOR_TEST_TRACE"):
        with open(path, "ab", buffering=0) as file:
            file.write((" ".join(map(str, words)) + "\n").encode())


def add(a: int, b: int = 0) -> int:
    trace("add", a, b)
    return a + b


def fail(why: str) -> None:
    trace("fail")
    raise LookupError(why)


def whose() -> str:
    return str(attached())


def give_set() -> dict[str, Any]:
    return {"path": Path("x")}


def nap(seconds: float) -> str:
    trace("nap")
    time.sleep(seconds)
    return "rested"


def die_once(marker: str) -> int:
    trace("die_once")
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def note(task: Task) -> None:
    """A hook: what it starts shows that it ran, for which tenant, and that it saw the result."""
    trace("note", attached(), task.id, task.success)
    if task.success:
        async_task("tests.compat.shop.tasks.add", 1000, task.result, task_name=f"after-{task.id}")


def greedy_hook(task: Task) -> None:
    for _ in range(2):
        async_task("tests.compat.shop.tasks.add", 1)


def broken_hook(task: Task) -> None:
    async_task("tests.compat.shop.tasks.add", 1, task_name="by-broken-hook")
    raise LookupError("hook")


async def coroutine() -> None:
    """May not be run by django-q2."""


def _private() -> None:
    """May not be run from outside."""


class OutOfStock(Exception):
    """Raised by a task."""


@task
def double(number: int) -> int:
    trace("double", number)
    return 2 * number


@task(priority=5, queue_name="default")
async def owner() -> str:
    return await sync_to_async(whose)()


@task(takes_context=True)
def tell(context: TaskContext, word: str) -> list[object]:
    return [word, context.attempt, context.task_result.id, str(context.task_result.status)]


@task
def sell(name: str) -> None:
    raise OutOfStock(name)


@task(retries=2)
def sell_later(name: str) -> None:
    trace("sell_later")
    raise OutOfStock(name)


@task(backend="system")
def tidy() -> str:
    return whose()


@task(timeout="300ms")
def sleep(seconds: float) -> None:
    time.sleep(seconds)
