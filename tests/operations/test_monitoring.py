"""Rules and dashboard name figures that /metrics shows, and every alert says what to do."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.test import Client, override_settings

from tenants.identity import new_id
from tests import clock
from tests.api.callers import build_caller
from tests.architecture.sources import ROOT
from tests.builders import build_tenant, start
from tests.database import as_role
from workflows import clusters
from workflows.clusters import beat

TOKEN = "token-of-the-monitoring-test"
RULES = yaml.safe_load((ROOT / "deploy/prometheus/ductor.rules.yml").read_text())["groups"][0]["rules"]
SCRAPE = yaml.safe_load((ROOT / "deploy/prometheus/scrape.yml").read_text())["scrape_configs"][0]
PANELS = json.loads((ROOT / "deploy/grafana/ductor.json").read_text())["panels"]
GUIDE = (ROOT / "docs/operations.md").read_text()
# Prometheus says itself whether it could scrape.
OWN = {"up"}


@pytest.fixture(autouse=True)
def operator_surface() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="ductor.urls_operator", DUCTOR_METRICS_TOKEN=TOKEN):
        yield


def scrape() -> dict[str, set[str]]:
    """Return the label names of every figure, and each figure without labels."""
    with as_role("operator"):
        text = Client(SERVER_NAME="localhost").get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    found: dict[str, set[str]] = {}
    for line in text.content.decode().splitlines():
        if not line.startswith("#"):
            name = re.split(r"[{ ]", line, maxsplit=1)[0]
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', line))
    return found


def value(name: str) -> float:
    with as_role("operator"):
        text = Client(SERVER_NAME="localhost").get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    (line,) = [line for line in text.content.decode().splitlines() if line.startswith(f"{name} ")]
    return float(line.rpartition(" ")[2])


def expressions() -> list[str]:
    return [rule["expr"] for rule in RULES] + [target["expr"] for panel in PANELS for target in panel["targets"]]


def figures(expression: str) -> dict[str, set[str]]:
    """Return the figures that an expression reads, and the labels that it compares or keeps."""
    named = set(re.findall(r"\b(?:up|(?:ductor|django|process)_\w+)\b", expression))
    kept = {label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")}
    compared = set(re.findall(r"(\w+)=~?\"", expression))
    return {name: (kept | compared) - {"job"} for name in named}


def test_every_figure_and_label_that_is_watched_is_shown() -> None:
    caller = build_caller()
    with override_settings(ROOT_URLCONF="ductor.urls"):
        caller.start()
    start(build_tenant())
    shown = scrape()
    for expression in expressions():
        read = figures(expression)
        assert read, expression
        for name, labels in read.items():
            assert name in shown or name in OWN, f"{name} in {expression}"
            assert labels <= shown.get(name, labels), f"{labels} in {expression}"


def test_a_misspelt_figure_would_be_found() -> None:
    assert figures('sum by (queue) (rate(ductor_tasks_ended{outcome="failed"}[5m]))') == {
        "ductor_tasks_ended": {"queue", "outcome"}
    }


def test_every_alert_has_a_section_that_says_what_to_do_and_no_section_is_left_over() -> None:
    alerts = [rule["alert"] for rule in RULES]
    assert re.findall(r"^### (Ductor\w+)$", GUIDE, re.MULTILINE) == alerts
    for rule in RULES:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        section = GUIDE.split(f"### {rule['alert']}\n", 1)[1].split("\n#", 1)[0]
        assert len(section.split()) > 20, rule["alert"]


def test_the_scrape_asks_the_page_that_is_there() -> None:
    assert SCRAPE["metrics_path"] == "/metrics"
    assert SCRAPE["job_name"] == "ductor"
    assert any('up{job="ductor"}' in rule["expr"] for rule in RULES)


def test_workers_of_live_clusters_are_counted_and_silent_clusters_are_not() -> None:
    with as_role("worker"):
        more: dict[str, Any] = {"host": "h", "queues": ["default"], "status": "Working"}
        beat(cluster_id=new_id(), pid=1, workers=2, busy=1, **more)
        clock.advance(clusters.SILENT_SECONDS + 1)
        beat(cluster_id=new_id(), pid=2, workers=4, busy=3, **more)
    assert value("ductor_workers") == 4
    assert value("ductor_workers_busy") == 3
    assert value('ductor_clusters{state="live"}') == 1
    assert value('ductor_clusters{state="silent"}') == 1
