"""Each handler first appends one line to the file named by DUCTOR_TEST_TRACE, so that a test sees every execution."""

import ctypes
import os
import signal
import threading
import time
from typing import Any

from django.db import connection, transaction

from ductor import Context, Retry, Workflow
from workflows import engine, step_threads

_NO_PAUSE = Retry(max_attempts=3, first=0, max=0)

noop = Workflow("chore-noop", version=1)
nap = Workflow("chore-nap", version=1)
poison = Workflow("chore-poison", version=1)
hang = Workflow("chore-hang", version=1)
deaf = Workflow("chore-deaf", version=1)
frozen = Workflow("chore-frozen", version=1)
split = Workflow("chore-split", version=1)
careless = Workflow("chore-careless", version=1)

if "DUCTOR_TEST_GRACE" in os.environ:
    # Ten seconds of grace are right for people and too long for a test; what happens after them is the same.
    step_threads.GRACE_SECONDS = engine.GRACE_SECONDS = float(os.environ["DUCTOR_TEST_GRACE"])
    engine.KILL_SECONDS = 1.0


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
    """With all signals blocked no alarm reaches the main thread: the process must end itself."""
    trace(ctx)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Event().wait()


@frozen.step(timeout=0.5, retry=_NO_PAUSE)
def stop_every_thread(ctx: Context[Any]) -> None:
    """A call into C that keeps the interpreter's lock: only a kill from outside ends this."""
    trace(ctx)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(3600)


@split.step
def begin(ctx: Context[Any]) -> None:
    trace(ctx)


@split.step(after=begin, timeout=0.5, retry=_NO_PAUSE)
def hang_in_a_thread(ctx: Context[Any]) -> None:
    trace(ctx)
    threading.Event().wait()


@split.step(after=begin)
def work_beside_it(ctx: Context[Any]) -> None:
    trace(ctx)


@careless.step
def forget_the_tenant(ctx: Context[Any]) -> None:
    trace(ctx)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("select name from workflows_definition")
