"""Functions for django-q2. Each first appends one line to the file of DUCTOR_TEST_TRACE, where that is set."""

import os
import signal
import time
from os import getcwd  # noqa: F401  imported, not defined: may not be run from here
from pathlib import Path
from typing import Any

from django_q.models import Task
from django_q.tasks import async_task

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


def broken_hook(task: Task) -> None:
    async_task("tests.compat.shop.tasks.add", 1, task_name="by-broken-hook")
    raise LookupError("hook")


async def coroutine() -> None:
    """May not be run by django-q2."""


def _private() -> None:
    """May not be run from outside."""
