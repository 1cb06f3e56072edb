"""A task that runs until a file is there: what a page shows of it is then no matter of luck."""

import time
from pathlib import Path
from typing import Any

from ductor import Context, Workflow

gate = Workflow("journey-gate", version=1)


@gate.step(timeout="2m")
def wait_for_file(ctx: Context[Any]) -> str:
    while not Path(ctx.input["file"]).exists():
        time.sleep(0.05)
    return "opened"
