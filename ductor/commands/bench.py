"""`manage.py ductor bench`."""

from typing import Annotated

import typer

from ductor.bench.server import BenchFailed, measure
from ductor.commands.screen import EXIT_ERROR, Json, say, show, write_error_line
from ductor.embedded import ServerFailed

Quick = Annotated[bool, typer.Option("--quick", help="About three minutes on two cores, instead of eleven.")]
Http = Annotated[bool, typer.Option("--http", help="Only single starts over HTTP.")]
Start = Annotated[bool, typer.Option("--start", help="Only how soon an idle cluster starts a task.")]


def bench(quick: Quick = False, http: Http = False, start: Start = False, as_json: Json = False) -> None:
    """Measure this machine, on a throw-away PostgreSQL of its own: figures and ratios of one run."""
    try:
        only = [name for name, wanted in (("http", http), ("start", start)) if wanted]
        figures = measure(quick=quick, only=only, progress=say)
    except (BenchFailed, ServerFailed) as failure:
        write_error_line(str(failure), code="failed")
        raise typer.Exit(EXIT_ERROR) from failure
    show(figures)
