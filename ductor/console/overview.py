"""The first page: how the platform stands, from sums that are kept anyway. Nothing here goes through tasks."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ductor.console.site import show
from ductor.metrics import read_measures
from tenants.standings import list_near_limit
from workflows.clusters import list_clusters

SHOWN_TENANTS = 20
SHOWN_CLUSTERS = 50
# A queue's oldest task that waits longer than this is worth a look.
OLD_SECONDS = 60.0


@dataclass
class QueueFigures:
    """One queue, over all service classes."""

    queue: str
    oldest_seconds: float = 0.0
    queued: int = 0
    waiting: int = 0
    leased: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    faults: int = 0

    @property
    def is_old(self) -> bool:
        """Say whether its oldest ready task has waited for long."""
        return self.oldest_seconds > OLD_SECONDS


_SUMS = ("queued", "waiting", "leased", "completed", "failed", "cancelled", "faults")


def _figures() -> list[QueueFigures]:
    queues: dict[str, QueueFigures] = {}
    for measure in read_measures():
        figures = queues.setdefault(measure.queue, QueueFigures(measure.queue))
        figures.oldest_seconds = max(figures.oldest_seconds, measure.oldest_queued_seconds)
        for name in _SUMS:
            setattr(figures, name, getattr(figures, name) + int(getattr(measure, name)))
    return [queues[name] for name in sorted(queues)]


def _context() -> dict[str, Any]:
    queues = _figures()
    total = QueueFigures("all")
    for figures in queues:
        total.oldest_seconds = max(total.oldest_seconds, figures.oldest_seconds)
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(figures, name))
    return {
        "queues": queues,
        "total": total,
        "near": list_near_limit(limit=SHOWN_TENANTS),
        "clusters": list_clusters(limit=SHOWN_CLUSTERS),
    }


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the dashboard."""
    return show(request, "overview.html", {"title": "Overview", **_context()})


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """Return the part of the dashboard that is renewed while somebody looks at it."""
    return render(request, "console/live.html", _context())
