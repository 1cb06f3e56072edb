"""`manage.py ductor bench`."""

from typing import Annotated

import typer

from ductor.bench.server import BenchFailed, measure
from ductor.commands.screen import EXIT_ERROR, Json, say, show, write_error_line
from ductor.embedded import ServerFailed

Quick = Annotated[bool, typer.Option("--quick", help="About two minutes on two cores, instead of ten.")]


def bench(quick: Quick = False, as_json: Json = False) -> None:
    """Measure this machine, on a throw-away PostgreSQL of its own: figures and ratios of one run."""
    try:
        figures = measure(quick=quick, progress=say)
    except (BenchFailed, ServerFailed) as failure:
        write_error_line(str(failure), code="failed")
        raise typer.Exit(EXIT_ERROR) from failure
    show(figures)
