"""Each handler first appends one line to the file named by DUCTOR_TEST_TRACE, so that a test sees every execution."""

import os
import signal
import threading
import time
from typing import Any

from ductor import Context, Retry, Workflow

_NO_PAUSE = Retry(max_attempts=3, first=0, max=0)

noop = Workflow("chore-noop", version=1)
nap = Workflow("chore-nap", version=1)
poison = Workflow("chore-poison", version=1)
hang = Workflow("chore-hang", version=1)
deaf = Workflow("chore-deaf", version=1)


def trace(ctx: Context[Any]) -> None:
    with open(os.environ["DUCTOR_TEST_TRACE"], "ab", buffering=0) as file:
        file.write(f"{ctx.task_id} {os.getpid()} {ctx.attempt}\n".encode())


@noop.step
def do_nothing(ctx: Context[Any]) -> None:
    trace(ctx)


@nap.step(timeout="1m")
def sleep(ctx: Context[Any]) -> None:
    trace(ctx)
    time.sleep(ctx.input["seconds"])


@poison.step
def kill_the_worker(ctx: Context[Any]) -> None:
    trace(ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@hang.step(timeout=0.5, retry=_NO_PAUSE)
def sleep_for_ever(ctx: Context[Any]) -> None:
    trace(ctx)
    threading.Event().wait()


@deaf.step(timeout=0.5, retry=_NO_PAUSE)
def ignore_every_signal(ctx: Context[Any]) -> None:
    """Only a SIGKILL from outside ends this: with its signals blocked, no alarm reaches the main thread."""
    trace(ctx)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(1)
