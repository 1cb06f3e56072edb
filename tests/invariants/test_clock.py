"""The database's clock, and nothing else, measures leases (I4); and statements show no payload (R30)."""

import time
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from ductor.databases import connection_settings, psycopg_parameters
from tests.builders import build_tenant, claim, rows, start

SECONDS_LEFT = "select extract(epoch from lease_expires_at - clock_timestamp())::float from workflows_task"


@pytest.mark.parametrize("shift", [600.0, -600.0])
def test_i4_a_workers_own_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch, shift: float) -> None:
    tenant = build_tenant()
    start(tenant)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    assert len(claim(lease_seconds=30)) == 1
    ((left,),) = rows(SECONDS_LEFT)
    assert 25 < left <= 30


def test_i4_a_transaction_that_was_open_long_before_the_claim_does_not_shorten_the_lease() -> None:
    tenant = build_tenant()
    start(tenant)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select now(), pg_sleep(1)")
        assert len(claim(lease_seconds=30)) == 1
    ((left,),) = rows(SECONDS_LEFT)
    assert 29.5 < left <= 30


def test_r30_no_statement_shows_what_a_tenant_sent() -> None:
    tenant = build_tenant()
    connection.ensure_connection()
    backend = connection.connection.info.backend_pid
    seen: list[str] = []

    def look(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        done = execute(sql, params, many, context)
        # The role's own other sessions may read its statements: what they see is looked at from one of them.
        with psycopg.connect(**psycopg_parameters(connection_settings("test"))) as other:
            seen.extend(other.execute("select query from pg_stat_activity where pid = %s", [backend]).fetchone() or [])
        return done

    with connection.execute_wrapper(look):
        start(tenant, input={"note": "marker-in-the-payload"}, key="marker-in-the-key")
    assert any("workflows_enqueue_tasks" in statement for statement in seen)
    assert not any("marker" in statement for statement in seen)
