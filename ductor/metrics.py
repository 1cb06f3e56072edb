"""`/metrics` on the operator surface: the platform as Prometheus sees it.

Labels come from closed lists (service classes, declared queues, outcomes; for HTTP the view's name), so that neither
a tenant nor a path can add a series (DESIGN D18). The figures of all tenants are read by one DEFINER function that
returns sums only.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tenants.errors import Unauthenticated
from tenants.store import call
from workflows.clusters import list_clusters

_LABELS = ("service_class", "queue")


class Measure(NamedTuple):
    """The sums of one service class in one queue, as `workflows_measure_classes()` returns them."""

    service_class: str
    queue: str
    queued: int
    waiting: int
    leased: int
    completed: int
    failed: int
    cancelled: int
    oldest_queued_seconds: float
    faults: int


def read_measures() -> list[Measure]:
    """Return the sums of every service class in every queue (for operators)."""
    return [Measure(*row) for row in call("workflows_measure_classes")]


class ClassCollector(Collector):
    """Reads the sums of every service class and queue at each scrape."""

    def collect(self) -> Iterator[Metric]:
        measures = read_measures()
        yield _gauge("ductor_tasks_queued", "Tasks ready to be claimed.", measures, "queued")
        yield _gauge("ductor_tasks_waiting", "Tasks that wait for a time or a retry.", measures, "waiting")
        yield _gauge("ductor_leases_active", "Tasks under a lease.", measures, "leased")
        yield _gauge(
            "ductor_queue_age_seconds", "How long the oldest ready task has waited.", measures, "oldest_queued_seconds"
        )
        yield _gauge("ductor_turns_stopped", "Tenants' turns stopped by a fault.", measures, "faults")
        outcomes = CounterMetricFamily("ductor_tasks_finished", "Tasks that ended.", labels=(*_LABELS, "outcome"))
        for measure in measures:
            for outcome in ("completed", "failed", "cancelled"):
                labels = (measure.service_class, measure.queue, outcome)
                outcomes.add_metric(labels, getattr(measure, outcome))
        yield outcomes


class ClusterCollector(Collector):
    """Reads the clusters' own heartbeats at each scrape; no label names one."""

    def collect(self) -> Iterator[Metric]:
        clusters = list_clusters(limit=1000)
        live = [cluster for cluster in clusters if not cluster.is_silent]
        states = GaugeMetricFamily("ductor_clusters", "Clusters, by whether their heartbeat comes.", labels=("state",))
        states.add_metric(("live",), len(live))
        states.add_metric(("silent",), len(clusters) - len(live))
        yield states
        yield GaugeMetricFamily("ductor_workers", "Workers of live clusters.", sum(one.workers for one in live))
        yield GaugeMetricFamily("ductor_workers_busy", "Of them, those at work.", sum(one.busy for one in live))


def _gauge(name: str, text: str, measures: Sequence[Measure], attribute: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=_LABELS)
    for measure in measures:
        family.add_metric((measure.service_class, measure.queue), getattr(measure, attribute))
    return family


@require_safe
def scrape(request: HttpRequest) -> HttpResponse:
    """Answer a scrape that presents `DUCTOR_METRICS_TOKEN`; without that setting there is no such page.

    Raises:
        Http404: no token is set.
        Unauthenticated: the presented token is another one.
    """
    token = settings.DUCTOR_METRICS_TOKEN
    if not token:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}"):
        raise Unauthenticated("Send `Authorization: Bearer <DUCTOR_METRICS_TOKEN>`.")
    classes = CollectorRegistry()
    classes.register(ClassCollector())
    classes.register(ClusterCollector())
    return HttpResponse(generate_latest(classes) + generate_latest(_processes()), content_type=CONTENT_TYPE_LATEST)


def _processes() -> CollectorRegistry:
    """The HTTP and database figures: of all processes where they share a folder, else of this one."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return registry
