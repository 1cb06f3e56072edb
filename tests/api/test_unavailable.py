"""A database that is down, silent, read-only or lost at commit: 503 within five seconds, nothing kept in memory."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import close_old_connections, connection, connections

from ductor.databases import login_settings, psycopg_parameters
from tenants.db import exchange
from tenants.db.base import DatabaseWrapper
from tests.api.callers import TASKS, Caller, assert_problem, build_caller, client, written
from tests.builders import assert_counters_true, rows
from workflows import starting

POOLED = {"CONN_MAX_AGE": 0, "OPTIONS": {"pool": {"min_size": 0, "max_size": 2, "timeout": 3}}}


@contextmanager
def _database(**changes: Any) -> Iterator[None]:
    """Let the block's requests meet another database."""
    before = connections["default"]
    options = {**before.settings_dict["OPTIONS"], **changes.pop("OPTIONS", {})}
    wrapper = DatabaseWrapper({**before.settings_dict, **changes, "OPTIONS": options}, "default")
    connections["default"] = wrapper
    try:
        yield
    finally:
        connections["default"] = before
        wrapper.close()
        if "pool" in options:
            wrapper.close_pool()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield listener.getsockname()[1]


@pytest.mark.parametrize("kind", [{}, POOLED], ids=["plain", "pooled"])
@pytest.mark.parametrize("where", ["nowhere", "silent"])
def test_a_database_that_does_not_answer(where: str, kind: dict[str, Any], silent_port: int) -> None:
    caller = build_caller()
    place = {"HOST": "/nowhere/at/all"} if where == "nowhere" else {"HOST": "127.0.0.1", "PORT": str(silent_port)}
    with _database(**place, **kind):
        asks = [caller.start, lambda: client().get("/health/ready")]
        for ask in asks[: 1 if where == "silent" else 2]:
            began = time.monotonic()
            answer = ask()
            assert time.monotonic() - began < 5
            document = assert_problem(answer, 503, "unavailable")
            assert int(answer["Retry-After"]) == document["retry_after"] >= 1
            assert b"/nowhere" not in answer.content
        assert client().get("/health/live").status_code == 200
    assert caller.get().status_code == 200


def test_a_read_only_database_reads_and_refuses_to_write() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    before = written()
    with _database(OPTIONS={"options": "-c default_transaction_read_only=on"}):
        assert caller.get(f"{TASKS}/{task_id}").status_code == 200
        assert_problem(caller.start(), 503, "unavailable")
        assert_problem(caller.post(f"{TASKS}/{task_id}/cancel", {}), 503, "unavailable")
    assert written() == before


def test_a_connection_lost_at_commit_is_no_success_and_the_same_key_starts_one_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caller = build_caller()
    real = starting.enqueue_one

    def lose_connection(**named: Any) -> Any:
        started = real(**named)
        _terminate(connection.connection.info.backend_pid)
        return started

    monkeypatch.setattr(starting, "enqueue_one", lose_connection)
    assert_problem(caller.start(key="k-1"), 503, "unavailable")
    monkeypatch.setattr(starting, "enqueue_one", real)
    # The test client leaves out what ends a request on a server.
    close_old_connections()
    assert rows("select count(*) from workflows_task") == [(0,)]
    assert caller.start(key="k-1").status_code == 201
    assert caller.start(key="k-1").status_code == 200
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert_counters_true()


def test_a_commit_whose_outcome_is_unknown_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server commits and the answer is lost on the way: the client hears 503, and its key finds the task."""
    caller = build_caller()
    real = DatabaseWrapper._commit

    def commit_unheard(self: DatabaseWrapper) -> Any:
        real(self)
        monkeypatch.setattr(DatabaseWrapper, "_commit", real)
        _terminate(self.connection.info.backend_pid)
        with self.wrap_database_errors:
            self.connection.execute("select 1")

    monkeypatch.setattr(DatabaseWrapper, "_commit", commit_unheard)
    assert_problem(caller.start(key="k-1"), 503, "unavailable")
    close_old_connections()
    again = caller.start(key="k-1")
    assert (again.status_code, again["Idempotency-Replayed"]) == (200, "true")
    assert_counters_true()


def test_a_whole_transaction_whose_outcome_is_unknown_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a start of a known workflow, whose commit is sent along with it."""
    caller = build_caller()
    assert caller.start().status_code == 201
    real = exchange._answers

    def unheard(pgconn: Any) -> Any:
        yield from real(pgconn)
        monkeypatch.setattr(exchange, "_answers", real)
        raise psycopg.OperationalError("the connection was lost on the way back")

    monkeypatch.setattr(exchange, "_answers", unheard)
    assert_problem(caller.start(key="k-1"), 503, "unavailable")
    close_old_connections()
    again = caller.start(key="k-1")
    assert (again.status_code, again["Idempotency-Replayed"]) == (200, "true")
    assert rows("select count(*) from workflows_task") == [(2,)]
    assert_counters_true()


def test_a_lock_that_is_not_given_in_time_is_503_and_writes_nothing() -> None:
    caller = build_caller()
    before = written()
    with _holding_load(caller), _database(OPTIONS={"options": "-c lock_timeout=300"}):
        assert_problem(caller.start(), 503, "unavailable")
    assert written() == before


@contextmanager
def _holding_load(caller: Caller) -> Iterator[None]:
    with psycopg.connect(os.environ["DUCTOR_DATABASE_URL_OWNER"]) as other:
        other.execute("select from tenants_load where tenant_id = %s for update", (caller.tenant.id,))
        yield
        other.rollback()


def _terminate(backend_pid: int) -> None:
    login = psycopg_parameters(login_settings(os.environ["DUCTOR_TEST_ADMIN_URL"]))
    with psycopg.connect(**login, autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(%s, 2000)", (backend_pid,))
