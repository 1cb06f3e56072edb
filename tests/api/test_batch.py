"""`POST /tasks/batch`: all or none, in order, each item with its own key, and every refusal names its item."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.callers import ORDER, TASKS, Caller, assert_problem, build_caller, written
from tests.api.workflows import REVIEW
from tests.builders import assert_counters_true, rows

BATCH = f"{TASKS}/batch"


def item(**more: Any) -> dict[str, Any]:
    return {"workflow": REVIEW, "input": ORDER, **more}


def send(caller: Caller, *items: Any) -> Any:
    return caller.post(BATCH, {"items": list(items)})


def refused(caller: Caller, *items: Any, status: int, code: str) -> list[str]:
    """Check that the batch is refused and that nothing is written; return the pointers that are named."""
    before = written()
    document = assert_problem(send(caller, *items), status, code)
    assert written() == before
    return [error["pointer"] for error in document.get("errors", ())]


def test_a_batch_is_started_in_order() -> None:
    caller = build_caller()
    answer = send(caller, item(key="a"), item(priority=5), item(key="c", delay_seconds=60))
    assert answer.status_code == 201
    data = answer.json()["data"]
    assert [(one["key"], one["created"]) for one in data] == [("a", True), (None, True), ("c", True)]
    stored = "select id::text, state, priority from workflows_task where tenant_id = %s order by id"
    states = [("queued", 0), ("queued", 5), ("waiting", 0)]
    expected = [(one["id"], *state) for one, state in zip(data, states, strict=True)]
    assert rows(stored, caller.tenant.id) == expected
    assert_counters_true()


def test_what_its_key_had_started_is_replayed_beside_new_ones() -> None:
    caller = build_caller()
    first = caller.start(key="a").json()["id"]
    mixed = send(caller, item(key="a"), item(key="b"))
    assert mixed.status_code == 201
    assert [one["created"] for one in mixed.json()["data"]] == [False, True]
    assert mixed.json()["data"][0]["id"] == first
    before = written()
    again = send(caller, item(key="a"), item(key="b"))
    assert again.status_code == 200
    assert [one["id"] for one in again.json()["data"]] == [one["id"] for one in mixed.json()["data"]]
    assert written() == before


def test_a_thousand_is_the_most_and_none_is_too_few() -> None:
    caller = build_caller(max_outstanding=5000)
    small = {"workflow": REVIEW, "input": ORDER}
    assert send(caller, *[small] * 1000).status_code == 201
    assert rows("select count(*) from workflows_task") == [(1000,)]
    assert refused(caller, *[small] * 1001, status=400, code="invalid_request") == ["/items"]
    assert refused(caller, status=400, code="invalid_request") == ["/items"]


def test_a_batch_costs_the_statements_of_one_start() -> None:
    caller = build_caller()
    send(caller, item())
    counts = []
    for size in (1, 50):
        with CaptureQueriesContext(connection) as queries:
            assert send(caller, *[item()] * size).status_code == 201
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_one_too_many_and_none_is_admitted() -> None:
    caller = build_caller(max_outstanding=3)
    assert refused(caller, *[item()] * 4, status=429, code="quota_exceeded") == []
    assert send(caller, *[item()] * 3).status_code == 201


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("wrong", "status", "code", "pointer"),
    [
        ({"input": {"order": "x"}}, 422, "input_invalid", "/input/order"),
        ({"workflow": "no-such"}, 422, "unknown_workflow", "/workflow"),
        ({"version": 99}, 422, "unknown_workflow", "/workflow"),
        ({"queue": "no-such"}, 422, "queue_unknown", "/queue"),
        ({"priority": 101}, 400, "invalid_request", "/priority"),
        ({"surprise": 1}, 400, "invalid_request", "/surprise"),
        ({"tenant_id": "x"}, 400, "invalid_request", "/tenant_id"),
        ({"at": "2027-01-01T00:00:00Z", "delay_seconds": 1}, 400, "invalid_request", "/at"),
        ({"at": "9999-01-01T00:00:00Z"}, 400, "invalid_request", "/at"),
        ({"key": "a b"}, 400, "invalid_request", "/key"),
    ],
)
def test_one_wrong_item_is_named_and_takes_all_back(
    wrong: dict[str, Any], status: int, code: str, pointer: str, place: int
) -> None:
    caller = build_caller()
    items = [item(key="first"), item(key="second")]
    items[place] |= wrong
    assert refused(caller, *items, status=status, code=code) == [f"/items/{place}{pointer}"]
    assert refused(caller, items[place], status=status, code=code) == [f"/items/0{pointer}"]


def test_a_key_with_other_content_is_named() -> None:
    caller = build_caller()
    caller.start(key="a")
    pointers = refused(caller, item(), item(key="a", priority=1), status=409, code="key_conflict")
    assert pointers == ["/items/1/key"]


def test_one_key_twice_in_a_batch_is_one_task() -> None:
    caller = build_caller()
    data = send(caller, item(key="a"), item(key="a")).json()["data"]
    assert data[0]["id"] == data[1]["id"]
    assert [one["created"] for one in data] == [True, False]
    assert rows("select count(*) from workflows_task") == [(1,)]
    assert_counters_true()


def test_the_header_for_one_key_is_refused() -> None:
    caller = build_caller()
    before = written()
    answer = caller.post(BATCH, {"items": [item()]}, Idempotency_Key="k-1")
    assert_problem(answer, 400, "invalid_request")
    assert written() == before


def test_a_key_that_may_only_read_starts_none() -> None:
    caller = build_caller("tasks:read")
    refused(caller, item(), status=403, code="forbidden")
