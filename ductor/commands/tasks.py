"""`manage.py ductor tasks …`"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from ductor.commands.screen import Json, Reason, Tenant, show
from tenants.api.errors import RequestInvalid
from tenants.api.jsontext import decode
from tenants.identity import parse_id
from tenants.principals import Principal
from tenants.queries import get_tenant
from tenants.scope import attach, tenant_scope
from tenants.visits import note_visit
from workflows.api.serializers import task_document, task_summary
from workflows.api.waiting import wait_for_end
from workflows.cancelling import cancel as cancel_task
from workflows.durations import seconds_of
from workflows.queries import get_task, list_steps, list_summaries
from workflows.starting import Start, start_tasks
from workflows.states import State

app = typer.Typer(help="A tenant's tasks.", no_args_is_help=True)

MAX_WAIT_SECONDS = 3600
_COLUMNS = ("id", "workflow", "version", "key", "queue", "state", "attempt", "created_at", "terminal_at")
_MAX_DELAY_SECONDS = 366 * 86_400


@contextmanager
def _attached(slug: str) -> Iterator[UUID]:
    tenant_id = get_tenant(slug=slug).id
    with attach(tenant_id):
        yield tenant_id


@app.command()
def start(
    workflow: str,
    tenant: Tenant,
    value: Annotated[str, typer.Option("--input", help="JSON, @file, or - for stdin.")] = "null",
    key: Annotated[str | None, typer.Option(help="Start once under this name.")] = None,
    delay: Annotated[str, typer.Option(help="Start after this span, such as 90s or 2h.")] = "",
    version: Annotated[int | None, typer.Option(min=1, help="The newest where none is named.")] = None,
    queue: Annotated[str | None, typer.Option(help="The workflow's own where none is named.")] = None,
    priority: Annotated[int, typer.Option(min=-100, max=100)] = 0,
    as_json: Json = False,
) -> None:
    """Start a task."""
    wanted = Start(
        workflow=workflow,
        version=version,
        input=_read_input(value),
        key=key,
        queue=queue,
        priority=priority,
        due_at=None,
        delay_seconds=_seconds(delay, "--delay", _MAX_DELAY_SECONDS) if delay else None,
    )
    with _attached(tenant) as tenant_id:
        with tenant_scope():
            [started] = start_tasks(
                tenant_id=tenant_id, starts=[wanted], principal=Principal.command(), immediate=True, source="command"
            )
            task = get_task(tenant_id=tenant_id, task_id=started.task_id)
        show(task_summary(task) | {"created": started.created})


@app.command("list")
def list_all(
    tenant: Tenant,
    state: Annotated[State | None, typer.Option()] = None,
    workflow: Annotated[str | None, typer.Option()] = None,
    key: Annotated[str | None, typer.Option()] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    as_json: Json = False,
) -> None:
    """List a tenant's tasks, newest first."""
    with _attached(tenant) as tenant_id:
        tasks = list_summaries(tenant_id=tenant_id, state=state, workflow=workflow, key=key, limit=limit)
        show({"tasks": [task_summary(task) for task in tasks]}, rows="tasks", columns=_COLUMNS)


@app.command("show")
def show_one(
    task_id: str,
    tenant: Tenant,
    wait: Annotated[str, typer.Option(help="Wait for its end, at most this span.")] = "",
    as_json: Json = False,
) -> None:
    """Show a task, its steps and its progress; the tenant's audit keeps that somebody of the platform looked."""
    seconds = _seconds(wait, "--wait", MAX_WAIT_SECONDS) if wait else 0
    parsed = parse_id(task_id)
    with _attached(tenant) as tenant_id:
        task = wait_for_end(tenant_id=tenant_id, task_id=parsed, seconds=seconds)
        note_visit(tenant_id=tenant_id, page=f"task {parsed}", principal=Principal.command())
        show(task_document(task, list_steps(tenant_id=tenant_id, task_id=parsed)))


@app.command()
def cancel(task_id: str, tenant: Tenant, reason: Reason = "", as_json: Json = False) -> None:
    """End a task that has not ended."""
    parsed = parse_id(task_id)
    with _attached(tenant) as tenant_id:
        task = cancel_task(tenant_id=tenant_id, task_id=parsed, principal=Principal.command(), reason=reason)
        show(task_summary(task))


def _read_input(text: str) -> Any:
    try:
        if text == "-":
            return decode(sys.stdin.buffer.read())
        if text.startswith("@"):
            return decode(Path(text[1:]).read_bytes())
        return decode(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]}: {error.strerror}.", param_hint="--input") from None
    except RequestInvalid as error:
        faults = "; ".join(f"{fault['pointer'] or '/'}: {fault['detail']}" for fault in error.fields["errors"])
        raise typer.BadParameter(faults, param_hint="--input") from None


def _seconds(text: str, option: str, maximum: float) -> float:
    try:
        return seconds_of(text, maximum=maximum, zero=True)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
