"""Tenants that share one or two server connections never see each other's rows (R7, R8, B04, B12)."""

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections
from psycopg_pool import PoolTimeout

from tenants.db.base import DatabaseWrapper
from tenants.errors import ScopeMissing
from tenants.scope import scope_of
from tests import database
from tests.builders import build_tenant, start
from workflows.models import Task

REQUESTS = 10_000 if os.environ.get("DUCTOR_TEST_FULL") == "1" else 1_500
THREADS = 4


class Failed(Exception):
    """A request that breaks off in the middle."""


@pytest.fixture(params=[1, 2])
def pooled(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    plain = connections["default"].settings_dict
    pool = {"min_size": request.param, "max_size": request.param, "timeout": 20}
    settings = {**plain, "CONN_MAX_AGE": 0, "OPTIONS": {**plain["OPTIONS"], "pool": pool}}
    yield settings
    for made in list(DatabaseWrapper._connection_pools.values()):
        made.close()
    DatabaseWrapper._connection_pools.clear()


def test_r8_a_shared_connection_shows_each_request_its_own_tenant(pooled: dict[str, Any]) -> None:
    wrong, backends = interleave(pooled, REQUESTS)
    assert wrong == []
    assert 1 <= len(backends) <= pooled["OPTIONS"]["pool"]["max_size"]


def interleave(settings: dict[str, Any], requests: int) -> tuple[list[Any], set[int]]:
    """Serve requests of six tenants in turn on four threads; returns what was wrong and the server processes used.

    Every seventh request breaks off in the middle, and each is followed by a look without a tenant.
    """
    tenants = [build_tenant() for _ in range(6)]
    for number, tenant in enumerate(tenants, 1):
        start(tenant, number)
    numbers, lock = itertools.count(), threading.Lock()
    wrong: list[Any] = []
    backends: set[int] = set()
    database.touch()

    def request(number: int) -> None:
        place = number % len(tenants)
        with scope_of(tenants[place].id):
            if Task.objects.count() != place + 1:
                wrong.append(number)
            with connection.cursor() as cursor:
                cursor.execute("select pg_backend_pid()")
                backends.update(*cursor.fetchall())
            if number % 7 == 0:
                raise Failed

    def anonymous() -> None:
        # What the last borrower left on the server's side, which neither manager nor guard would show.
        with connection.cursor() as cursor:
            cursor.execute("select coalesce(current_setting('ductor.tenant_id', true), '')")
            if cursor.fetchone() != ("",):
                wrong.append("the setting outlived its transaction")
        try:
            Task.objects.count()
        except ScopeMissing:
            return
        wrong.append("anonymous")

    def serve() -> None:
        connections["default"] = DatabaseWrapper(settings, "default")
        while (number := next(numbers)) < requests:
            try:
                with contextlib.suppress(Failed):
                    request(number)
                anonymous()
            except (PoolTimeout, AssertionError) as error:
                with lock:
                    wrong.append(error)
            finally:
                connections["default"].close()

    threads = [threading.Thread(target=serve) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return wrong, backends
