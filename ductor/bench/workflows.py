"""Workflows to measure with: one that does nothing, one that says when it was begun."""

import time
from typing import Any

from ductor import Context, Workflow

noop = Workflow("bench-noop", version=1)


@noop.step
def nothing(ctx: Context[Any]) -> None:
    """Do nothing."""


start = Workflow("bench-start", version=1)


@start.step
def begun(ctx: Context[Any]) -> float:
    """Say when this line was reached."""
    return time.time()
