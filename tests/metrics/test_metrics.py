"""`/metrics` (S20, I28, B21): figures by class, a token at the door, and a series count that tenants can't move."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from tenants.models import ServiceClass
from tests import clock
from tests.api.callers import TASKS, assert_problem, build_caller
from tests.builders import PRINCIPAL, build_tenant, claim, complete, rows, start
from tests.database import as_role
from workflows.cancelling import cancel
from workflows.claims import Outcome, finish

TOKEN = "metrics-token-of-the-test"
_SERIES = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(autouse=True)
def operator_surface() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="ductor.urls_operator", DUCTOR_METRICS_TOKEN=TOKEN):
        yield


def _scrape(token: str = TOKEN) -> Any:
    with as_role("operator"):
        return Client(SERVER_NAME="localhost").get("/metrics", headers={"Authorization": f"Bearer {token}"})


def _series() -> Series:
    answer = _scrape()
    assert answer.status_code == 200
    found: Series = {}
    for line in answer.content.decode().splitlines():
        if not line.startswith("#"):
            match = _SERIES.match(line)
            assert match, line
            labels = frozenset(_LABEL.findall(match["labels"] or ""))
            assert (match["name"], labels) not in found, line
            found[match["name"], labels] = float(match["value"])
    return found


def _value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, frozenset(labels.items())))


def test_without_a_configured_token_there_is_no_such_page() -> None:
    with override_settings(DUCTOR_METRICS_TOKEN=""):
        assert_problem(_scrape(""), 404, "not_found")
        assert_problem(_scrape(TOKEN), 404, "not_found")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"]
)
def test_another_token_is_refused_before_anything_is_read(header: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = Client(SERVER_NAME="localhost").get("/metrics", headers={"Authorization": header})
    assert_problem(answer, 401, "unauthenticated")
    assert len(queries) == 0


def test_a_tenant_s_key_opens_no_metrics_and_the_tenant_surface_has_none() -> None:
    caller = build_caller()
    assert_problem(_scrape(caller.key), 401, "unauthenticated")
    with override_settings(ROOT_URLCONF="ductor.urls"):
        assert_problem(caller.get("/metrics"), 404, "not_found")


def test_the_figures_are_sums_over_a_class() -> None:
    for number in range(2):
        tenant = build_tenant(service_class="premium")
        start(tenant, 4)
        start(tenant, 2, delay_seconds=600)
        if number == 0:
            cancel(tenant_id=tenant.id, task_id=start(tenant)[0], principal=PRINCIPAL)
    start(build_tenant(), 1)
    claimed = [task for task in claim(9) if task.input == {"order": 1}]
    by_class = _by_class(claimed)
    complete(by_class["premium"][:2])
    finish(outcomes=[Outcome(by_class["premium"][2].claim, "failed", error={"class": "X", "message": ""})])
    series = _series()
    premium = {"service_class": "premium", "queue": "default"}
    assert _value(series, "ductor_tasks_waiting", **premium) == 4
    assert _value(series, "ductor_tasks_finished_total", **premium, outcome="completed") == 2
    assert _value(series, "ductor_tasks_finished_total", **premium, outcome="failed") == 1
    assert _value(series, "ductor_tasks_finished_total", **premium, outcome="cancelled") == 1
    assert _value(series, "ductor_leases_active", **premium) == len(by_class["premium"]) - 3
    assert _value(series, "ductor_tasks_queued", **premium) == 8 - len(by_class["premium"])
    assert _value(series, "ductor_leases_active", service_class="standard", queue="default") == 1
    assert _value(series, "ductor_turns_stopped", **premium) == 0


def test_the_queue_s_age_is_that_of_its_oldest_ready_task() -> None:
    start(build_tenant(), 1)
    clock.advance(120)
    start(build_tenant(), 1)
    age = _value(_series(), "ductor_queue_age_seconds", service_class="standard", queue="default")
    assert age is not None
    assert 119 < age < 180


def test_two_hundred_tenants_add_no_series_and_no_label_names_anybody() -> None:
    first = build_caller(service_class="free")
    _work(first, "mark-0")
    before = _series()
    slugs, ids = [first.tenant.slug], [str(first.tenant.id)]
    for number in range(199):
        tenant = build_tenant(service_class="free")
        slugs.append(tenant.slug)
        ids += [str(tenant.id), *map(str, start(tenant))]
        if number % 10 == 0:
            ids.append(_work(build_caller(tenant=tenant), f"mark-{number}"))
    after = _series()
    assert set(after) == set(before)
    text = _scrape().content.decode()
    for marker in (*slugs, *ids, "mark-", "/api/v1/tasks/"):
        assert marker not in text, marker


def test_labels_come_from_closed_lists() -> None:
    caller = build_caller()
    with override_settings(ROOT_URLCONF="ductor.urls"):
        caller.get("/api/v1/no-such-path-at-all")
        caller.get(TASKS, method="WEIRD")
        caller.get(f"{TASKS}/made-up-id")
    closed = {"service_class": set(ServiceClass.values), "outcome": {"completed", "failed", "cancelled"}}
    for _, labels in _series():
        for name, value in labels:
            assert value in closed.get(name, {value}), (name, value)
            if name == "view":
                assert "/" not in value
                assert "made-up" not in value
            if name == "method":
                assert value.isupper() or value == "<invalid method>", value


def _work(caller: Any, mark: str) -> str:
    """One request of each kind on the tenant surface."""
    with override_settings(ROOT_URLCONF="ductor.urls"):
        task_id: str = caller.start(key=mark).json()["id"]
        caller.get()
        caller.get(f"{TASKS}/{task_id}")
        caller.get(f"/api/v1/{mark}")
    return task_id


def _by_class(tasks: list[Any]) -> dict[str, list[Any]]:
    classes = dict(rows("select id, service_class from tenants_tenant"))
    found: dict[str, list[Any]] = {}
    for task in tasks:
        found.setdefault(classes[task.claim.tenant_id], []).append(task)
    return found
