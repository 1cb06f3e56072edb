"""`?wait=`: an answer at the task's end, a bounded number of waiters, and no transaction held meanwhile."""

import threading
import time
from typing import Any

import pytest
from django.db import connections

from tests.api.callers import TASKS, Caller, build_caller
from tests.builders import claim, complete, rows
from workflows.api import waiting


def _ask(caller: Caller, path: str, answers: list[Any]) -> threading.Thread:
    def run() -> None:
        # As on the surfaces: a connection goes back when a request, or a look of a waiter, is done with it.
        connections["default"].settings_dict = {**connections["default"].settings_dict, "CONN_MAX_AGE": 0}
        try:
            answers.append(caller.get(path))
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_an_ended_task_is_answered_at_once() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    complete(claim())
    began = time.monotonic()
    assert caller.get(f"{TASKS}/{task_id}?wait=20").json()["state"] == "completed"
    assert time.monotonic() - began < 1


def test_a_waiter_hears_of_the_end() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    answers: list[Any] = []
    thread = _ask(caller, f"{TASKS}/{task_id}?wait=20", answers)
    time.sleep(0.3)
    assert answers == []
    complete(claim(), {"done": True})
    thread.join(timeout=5)
    assert (answers[0].json()["state"], answers[0].json()["output"]) == ("completed", {"done": True})


def test_a_waiter_that_waits_in_vain_gets_the_present_state() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    began = time.monotonic()
    answer = caller.get(f"{TASKS}/{task_id}?wait=1")
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    assert 0.9 < time.monotonic() - began < 3


def test_a_waiter_holds_no_transaction_and_no_connection() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    connections["default"].close()
    others = [pid for (pid,) in rows("select pid from pg_stat_activity where usename = 'ductor_test'")]
    answers: list[Any] = []
    thread = _ask(caller, f"{TASKS}/{task_id}?wait=2", answers)
    connected = 0
    for _ in range(20):
        time.sleep(0.05)
        [(count,)] = rows(
            "select count(*) from pg_stat_activity where usename = 'ductor_test' and pid <> all(%s)", others
        )
        connected += count
    thread.join(timeout=5)
    # One of these may fall into the moment of a look; holding the connection would be seen by every one of them.
    assert connected <= 8
    assert answers[0].status_code == 200


def test_waiters_are_bounded_and_one_more_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_WAITERS_OF_A_TENANT", 1)
    caller, neighbour = build_caller(), build_caller()
    task_id, neighbour_s = caller.start().json()["id"], neighbour.start().json()["id"]
    answers: list[Any] = []
    thread = _ask(caller, f"{TASKS}/{task_id}?wait=3", answers)
    time.sleep(0.3)
    began = time.monotonic()
    assert caller.get(f"{TASKS}/{task_id}?wait=20").json()["state"] == "queued"
    assert time.monotonic() - began < 1
    assert neighbour.get(f"{TASKS}/{neighbour_s}?wait=1").status_code == 200
    assert time.monotonic() - began >= 1
    thread.join(timeout=6)
    assert waiting._waiters.total() == 0


def test_a_task_that_is_not_one_s_own_is_not_waited_for() -> None:
    caller, other = build_caller(), build_caller()
    task_id = other.start().json()["id"]
    began = time.monotonic()
    assert caller.get(f"{TASKS}/{task_id}?wait=20").status_code == 404
    assert time.monotonic() - began < 1
