"""What a command shows: tables for people, one JSON document for machines, one line for an error."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from tenants.errors import Conflict, DuctorError, Forbidden, Invalid, NotEntitled, NotFound, Refused

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_NOT_FOUND = 4

_as_json: ContextVar[bool] = ContextVar("ductor_command_json", default=False)


def note_json(chosen: bool) -> bool:
    """Remember whether this command's answer, or its error, is a JSON document."""
    _as_json.set(chosen)
    return chosen


Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout.", callback=note_json, is_eager=True)
]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant's slug.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the audit.")]


def show(document: Mapping[str, Any], *, rows: str = "", columns: Sequence[str] = ()) -> None:
    """Show a document: as JSON, as a table of its list `rows`, or as lines of name and value."""
    if _as_json.get():
        sys.stdout.write(json.dumps(document, default=_plain, ensure_ascii=False) + "\n")
    elif rows:
        _console().print(_table(document[rows], columns))
    else:
        grid = Table.grid(padding=(0, 2))
        for name, value in document.items():
            grid.add_row(name.replace("_", " "), _cell(value))
        _console().print(grid)


def say(text: str) -> None:
    """Tell a person something that is no part of the answer; a machine doesn't hear it."""
    if not _as_json.get():
        sys.stderr.write(text + "\n")


def exit_code(error: DuctorError) -> int:
    """Return the exit code that a typed error ends a command with."""
    match error:
        case NotFound():
            return EXIT_NOT_FOUND
        case Invalid():
            return EXIT_USAGE
        case Refused() if error.code == "unavailable":
            return EXIT_ERROR
        case Refused() | Conflict() | Forbidden() | NotEntitled():
            return EXIT_REFUSED
        case _:
            return EXIT_ERROR


def write_error(error: DuctorError) -> None:
    """Write a typed error on stderr: one line, or with --json one document with all its fields."""
    if _as_json.get():
        document = {"error": {"code": error.code, "detail": error.message, **error.fields}}
        sys.stderr.write(json.dumps(document, default=_plain, ensure_ascii=False) + "\n")
        return
    faults = [f"{fault.get('pointer') or '/'}: {fault['detail']}" for fault in error.fields.get("errors", ())]
    found = f" ({'; '.join(faults)})" if faults else ""
    write_error_line(f"{error.message}{found} {error.fields.get('remedy', '')}", code=error.code)


def write_error_line(text: str, *, code: str) -> None:
    """Write on stderr what went wrong and has no fields: one line, or with --json one document."""
    line = " ".join(text.split())
    if _as_json.get():
        sys.stderr.write(json.dumps({"error": {"code": code, "detail": line}}, ensure_ascii=False) + "\n")
        return
    sys.stderr.write(f"error: {code}: {line}\n")


def _console() -> Console:
    # Into a pipe nothing is wrapped or cut: ids stay whole, a line stays a line. What tenants wrote is no markup.
    width = None if sys.stdout.isatty() else 10_000
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    return table


def _cell(value: Any) -> str:
    if value is None or value in ("", [], ()):
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
