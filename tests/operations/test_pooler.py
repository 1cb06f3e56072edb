"""R8 behind PgBouncer in transaction mode: tenants that share server connections never see each other's rows."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from ductor.databases import login_settings
from tenants.db.base import DatabaseWrapper
from tests.api.callers import TASKS, build_caller
from tests.builders import assert_counters_true
from tests.operations.pooling import pooler
from tests.tenants.test_pool import interleave

STARTS = 25
REQUESTS = 10_000 if os.environ.get("DUCTOR_TEST_FULL") == "1" else 400


@contextmanager
def pooled(size: int) -> Iterator[dict[str, Any]]:
    """Yield settings of a connection that leads through a pooler with `size` server connections."""
    plain = connections["default"].settings_dict
    with pooler(size) as running:
        options = {name: value for name, value in plain["OPTIONS"].items() if name != "pool"}
        login = login_settings(running.url_of("test"))
        yield {**plain, **login, "CONN_MAX_AGE": None, "OPTIONS": options}


@pytest.mark.parametrize("size", [1, 2])
def test_r8_behind_a_transaction_pooler_each_request_sees_its_own_tenant(size: int) -> None:
    with pooled(size) as settings:
        wrong, backends = interleave(settings, REQUESTS)
    assert wrong == []
    assert len(backends) == size


def test_r8_requests_of_many_tenants_behind_one_server_connection_read_and_write_their_own() -> None:
    callers = [build_caller() for _ in range(4)]
    seen: dict[int, set[str]] = {}
    made: dict[int, set[str]] = {}

    def serve(place: int, settings: dict[str, Any]) -> None:
        connections["default"] = DatabaseWrapper(settings, "default")
        try:
            starts = [callers[place].start(key=f"k{number}") for number in range(STARTS)]
            made[place] = {answer.json()["id"] for answer in starts if answer.status_code == 201}
            seen[place] = {task["id"] for task in callers[place].get(f"{TASKS}?limit=200").json()["data"]}
        finally:
            connections["default"].close()

    with pooled(1) as settings:
        threads = [threading.Thread(target=serve, args=(place, settings)) for place in range(len(callers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert [len(made[place]) for place in range(len(callers))] == [STARTS] * len(callers)
    assert seen == made
    assert_counters_true()
