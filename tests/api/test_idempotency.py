"""One key, one task (S9, B37, B38): the header and the member are the same thing."""

import io
import threading
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from rest_framework.request import Request

from tenants.api.errors import RequestInvalid
from tenants.api.parsing import single_header
from tests.api.callers import ORDER, TASKS, Caller, assert_problem, build_caller, written
from tests.api.workflows import REVIEW
from tests.builders import assert_counters_true, claim, complete, rows

BODY = {"workflow": REVIEW, "input": ORDER}


def test_the_same_content_is_answered_with_the_first_task() -> None:
    caller = build_caller()
    first = caller.post(body=BODY, Idempotency_Key="k-1")
    before = written()
    again = caller.post(body=BODY, Idempotency_Key="k-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again["Idempotency-Replayed"] == "true"
    assert again["Location"] == first["Location"]
    assert again.json() == first.json()
    assert written() == before


def test_header_and_member_are_one() -> None:
    caller = build_caller()
    first = caller.post(body={**BODY, "key": "k-1"})
    assert caller.post(body=BODY, Idempotency_Key="k-1").json()["id"] == first.json()["id"]
    assert caller.post(body={**BODY, "key": "k-1"}, Idempotency_Key="k-1").json()["id"] == first.json()["id"]


def test_header_and_member_that_differ_are_refused() -> None:
    caller = build_caller()
    before = written()
    document = assert_problem(caller.post(body={**BODY, "key": "k-1"}, Idempotency_Key="k-2"), 400, "invalid_request")
    assert document["errors"][0]["pointer"] == "/key"
    assert written() == before


@pytest.mark.parametrize("given", [(b"k-1", b"k-2"), (b"k-1", b"k-1")])
def test_a_header_given_twice_is_no_key_of_its_own(given: tuple[bytes, bytes]) -> None:
    twice, once = (_with_keys(*keys) for keys in (given, (b"k-1,k-2",)))
    with pytest.raises(RequestInvalid) as refusal:
        single_header(twice, "Idempotency-Key")
    assert refusal.value.fields["errors"][0]["parameter"] == "Idempotency-Key"
    assert single_header(once, "Idempotency-Key") == "k-1,k-2"
    assert single_header(_with_keys(), "Idempotency-Key") is None


def _with_keys(*keys: bytes) -> Request:
    """A request as the server hands it over, before Django joins headers of one name."""
    headers = [(b"host", b"localhost"), *((b"idempotency-key", key) for key in keys)]
    return Request(ASGIRequest({"type": "http", "method": "POST", "path": TASKS, "headers": headers}, io.BytesIO()))


@pytest.mark.parametrize("other", [{"input": {"order": 2}}, {"priority": 3}, {"delay_seconds": 5}])
def test_other_content_under_the_same_key_is_a_conflict(other: dict[str, Any]) -> None:
    caller = build_caller()
    caller.start(key="k-1")
    before = written()
    assert_problem(caller.start(key="k-1", **other), 409, "key_conflict")
    assert written() == before


def test_a_replay_shows_the_task_as_it_is_now() -> None:
    caller = build_caller()
    caller.start(key="k-1")
    complete(claim(), {"sum": 1})
    again = caller.start(key="k-1")
    assert (again.status_code, again.json()["state"], again.json()["output"]) == (200, "completed", {"sum": 1})


def test_a_key_is_its_tenant_s_own() -> None:
    one, other = build_caller(), build_caller()
    first, second = one.start(key="same"), other.start(key="same", input={"order": 2})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]
    assert other.get(f"{TASKS}?key=same").json()["data"][0]["id"] == second.json()["id"]


def test_twenty_at_once_start_one_task() -> None:
    caller = build_caller()
    barrier = threading.Barrier(20)
    answers: list[tuple[int, str]] = []

    def race(caller: Caller) -> None:
        try:
            barrier.wait(timeout=20)
            answer = caller.start(key="race")
            answers.append((answer.status_code, answer.json()["id"]))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=(caller,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(status for status, _ in answers) == [200] * 19 + [201]
    assert len({task_id for _, task_id in answers}) == 1
    assert rows("select count(*) from workflows_task where tenant_id = %s", caller.tenant.id) == [(1,)]
    assert_counters_true()
