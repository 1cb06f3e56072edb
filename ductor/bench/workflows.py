"""The workflow that does nothing, as fast as the machine allows."""

from typing import Any

from ductor import Context, Workflow

noop = Workflow("bench-noop", version=1)


@noop.step
def nothing(ctx: Context[Any]) -> None:
    """Do nothing."""
