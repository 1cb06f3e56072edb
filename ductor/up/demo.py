"""The demo job: acme audits up to 2,000 source files, globex 20 that are enqueued after them.

Each file is a task with a key of its own, so that a demo that was interrupted goes on where it was. What the table
shows is read from the database: a later `up --once` prints the same.
"""

import hashlib
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ductor.demo.sources import source_files
from ductor.up.provision import TENANTS, DemoTenant

WORKFLOW = "file-audit"
KEY_PREFIX = "demo:"
BATCH = 500
PAGE = 1000
FIGURES = ("lines", "functions", "classes", "bytes")


@dataclass(frozen=True)
class Job:
    """One tenant's part of the demo."""

    slug: str
    tenant_id: UUID
    total: int


@dataclass(frozen=True)
class Result:
    """What a tenant's part came to; waits in seconds."""

    slug: str
    files: int
    failed: int
    figures: dict[str, int]
    first_start: float
    median_wait: float
    done_after: float


def start() -> list[Job]:
    """Enqueue the demo's tasks, tenant after tenant; those that exist already stay as they are.

    Raises:
        DuctorError: a tenant is missing or its policy refuses the tasks.
    """
    return [_start_tenant(demo, source_files(demo.files)) for demo in TENANTS]


def _start_tenant(demo: DemoTenant, files: list[str]) -> Job:
    from tenants.principals import Principal
    from tenants.queries import get_tenant
    from workflows.starting import Start, start_tasks

    tenant = get_tenant(slug=demo.slug)
    starts = [Start(workflow=WORKFLOW, input={"path": path}, key=_key(path)) for path in files]
    for first in range(0, len(starts), BATCH):
        start_tasks(
            tenant_id=tenant.id,
            starts=starts[first : first + BATCH],
            principal=Principal.command(),
            immediate=True,
            source="command",
        )
    return Job(demo.slug, tenant.id, len(starts))


def _key(path: str) -> str:
    # A path may be longer than a key.
    return KEY_PREFIX + hashlib.sha256(os.fsencode(path)).hexdigest()


def finished(job: Job) -> int:
    """Return how many of the job's tasks have ended, as far as the tenant's counter tells; costs one row."""
    from tenants.queries import get_policy

    return max(0, job.total - get_policy(tenant_id=job.tenant_id).outstanding)


def result(job: Job) -> Result | None:
    """Return what the job came to, or None while a task of it has not ended."""
    tasks = list(_tasks(job))
    if len(tasks) < job.total or any(task.terminal_at is None for task in tasks):
        return None
    begun = min(task.created_at for task in tasks)
    waits = [_seconds(task.created_at, task.started_at or task.terminal_at) for task in tasks]
    outputs = [task.output for task in tasks if task.state == "completed" and isinstance(task.output, dict)]
    return Result(
        slug=job.slug,
        files=len(tasks),
        failed=sum(task.state != "completed" for task in tasks),
        figures={name: sum(int(output.get(name) or 0) for output in outputs) for name in FIGURES},
        first_start=_seconds(begun, min(task.started_at or task.terminal_at for task in tasks)),
        median_wait=statistics.median(waits),
        done_after=_seconds(begun, max(task.terminal_at for task in tasks)),
    )


def _tasks(job: Job) -> Iterator[Any]:
    """Yield the tenant's demo tasks, page by page, until all of them are found."""
    from workflows.queries import list_tasks

    before: UUID | None = None
    left = job.total
    while left > 0:
        page = list_tasks(tenant_id=job.tenant_id, workflow=WORKFLOW, before=before, limit=PAGE)
        for task in page:
            if task.key is not None and task.key.startswith(KEY_PREFIX):
                left -= 1
                yield task
        if len(page) < PAGE:
            return
        before = page[-1].id


def _seconds(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()


def table(results: list[Result]) -> Table:
    """Return the table of what was done and how long each tenant waited."""
    # Narrow enough for 80 columns: figures that end in an ellipsis say nothing.
    shown = Table(
        title="file-audit: two tenants, one queue (times in seconds from enqueueing)",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    shown.pad_edge, shown.collapse_padding = False, True
    shown.add_column("tenant", no_wrap=True)
    headings = ("files", *FIGURES, "first\nstart", "median\nwait", "done\nafter")
    for heading in headings:
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in results:
        files = f"{one.files:,}" if not one.failed else f"{one.files:,}\n-{one.failed:,}"
        figures = [f"{one.figures[name]:,}" for name in FIGURES]
        waits = [f"{seconds:.2f}" for seconds in (one.first_start, one.median_wait, one.done_after)]
        shown.add_row(one.slug, files, *figures, *waits)
    if any(one.failed for one in results):
        shown.caption = "below the files, with a minus: failed"
    return shown
