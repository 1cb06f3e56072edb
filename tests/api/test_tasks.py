"""The task resource: start, list, show, cancel."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.callers import ORDER, TASKS, assert_problem, build_caller, written
from tests.api.workflows import REVIEW
from tests.builders import assert_counters_true, claim, complete, rows
from workflows.claims import Outcome, finish


def test_a_start_answers_201_with_the_stored_task() -> None:
    caller = build_caller()
    answer = caller.start(key="order-1", priority=5)
    task = answer.json()
    assert answer.status_code == 201
    assert answer["Location"] == f"{TASKS}/{task['id']}"
    assert "Idempotency-Replayed" not in answer.headers
    expected = {"workflow": REVIEW, "version": 1, "key": "order-1", "priority": 5, "state": "queued", "input": ORDER}
    assert task | expected == task
    assert (task["output"], task["error"], task["progress"], task["attempt"]) == (None, None, None, 0)
    assert task["created_at"].endswith("Z")
    stored = "select id::text, state, key, input, tenant_id from workflows_task where tenant_id = %s"
    assert rows(stored, caller.tenant.id) == [(task["id"], "queued", "order-1", ORDER, caller.tenant.id)]
    assert_counters_true()


def test_the_origin_is_the_server_s_word() -> None:
    caller = build_caller()
    answer = caller.post(body={"workflow": REVIEW, "input": ORDER}, X_Request_Id="my-request-1")
    origin = answer.json()["origin"]
    assert (origin["source"], origin["request_id"]) == ("api", "my-request-1")
    assert origin["principal"]["kind"] == "key"
    assert answer["X-Request-Id"] == "my-request-1"


def test_a_delayed_start_waits() -> None:
    caller = build_caller()
    later = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    by_delay, by_time = caller.start(delay_seconds=90), caller.start(at=later)
    assert [by_delay.json()["state"], by_time.json()["state"]] == ["waiting", "waiting"]
    assert by_time.json()["due_at"] == later.replace("+00:00", "Z")
    assert claim() == []
    assert_counters_true()


def test_a_task_shows_its_end_steps_and_progress() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    [claimed] = claim()
    finish(outcomes=[Outcome(claimed.claim, "completed", {"total": 3}, progress={"done": 3})])
    answer = caller.get(f"{TASKS}/{task_id}")
    task = answer.json()
    assert answer.status_code == 200
    assert (task["state"], task["output"], task["progress"]) == ("completed", {"total": 3}, {"done": 3})
    assert task["terminal_at"] is not None
    # A one-step workflow has no step row of its own: its step is read from the task's.
    [step] = task["steps"]
    assert (step["state"], step["attempt"], step["output"]) == ("completed", 1, {"total": 3})
    assert (step["started_at"], step["finished_at"]) == (task["started_at"], task["terminal_at"])
    assert rows("select count(*) from workflows_step") == [(0,)]


def test_a_list_is_newest_first_and_without_payload() -> None:
    caller = build_caller()
    ids = [caller.start().json()["id"] for _ in range(3)]
    answer = caller.get().json()
    assert [task["id"] for task in answer["data"]] == ids[::-1]
    assert (answer["next_cursor"], answer["has_more"]) == (None, False)
    assert not {"input", "output", "error", "progress", "origin", "steps"} & set(answer["data"][0])


def test_a_list_does_not_read_payload_from_the_database() -> None:
    caller = build_caller()
    caller.start()
    with CaptureQueriesContext(connection) as queries:
        caller.get()
    [listing] = [query["sql"] for query in queries.captured_queries if "ORDER BY" in query["sql"]]
    assert "input" not in listing
    assert "output" not in listing


def test_filters_name_state_workflow_and_key() -> None:
    caller = build_caller()
    first = caller.start(key="a").json()["id"]
    second = caller.start(key="b").json()["id"]
    complete(claim(1))

    def listed(query: str) -> list[str]:
        return [task["id"] for task in caller.get(f"{TASKS}?{query}").json()["data"]]

    assert listed("state=completed") == [first]
    assert listed("state=queued") == [second]
    assert listed("key=b") == [second]
    assert listed(f"workflow={REVIEW}&state=queued") == [second]
    assert listed("workflow=another") == []


def test_cancel_ends_a_task_and_is_audited() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    answer = caller.post(f"{TASKS}/{task_id}/cancel", {"reason": "ordered twice"})
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["reason"]) == ("cancelled", "ordered twice")
    acts = "select act, target_id, reason, principal ->> 'kind', request_id from tenants_act where act = 'task.cancel'"
    assert rows(acts) == [("task.cancel", task_id, "ordered twice", "key", answer["X-Request-Id"])]
    assert_counters_true()


def test_cancel_needs_no_body() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    assert caller.get(f"{TASKS}/{task_id}/cancel", method="POST").json()["state"] == "cancelled"


def test_an_ended_task_stays_as_it_is() -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    complete(claim())
    before = written()
    document = assert_problem(caller.post(f"{TASKS}/{task_id}/cancel", {}), 409, "already_terminal")
    assert document["state"] == "completed"
    assert written() == before


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"workflow": "nobody-wrote-it"}, 422, "unknown_workflow"),
        ({"workflow": REVIEW, "version": 77, "input": ORDER}, 422, "unknown_workflow"),
        ({"workflow": REVIEW, "input": {"order": "one"}}, 422, "input_invalid"),
        ({"workflow": REVIEW}, 422, "input_invalid"),
        ({"workflow": REVIEW, "input": ORDER, "queue": "nobody-made-it"}, 422, "queue_unknown"),
        ({"workflow": REVIEW, "input": ORDER, "queue": "system"}, 422, "queue_unknown"),
    ],
)
def test_what_can_t_be_started_is_refused(body: Any, status: int, code: str) -> None:
    caller = build_caller()
    before = written()
    assert_problem(caller.post(body=body), status, code)
    assert written() == before


def test_a_schema_fault_is_named_by_its_place_in_the_input() -> None:
    caller = build_caller()
    document = assert_problem(caller.start(input={"order": "one", "x": 1}), 422, "input_invalid")
    assert "/input/order" in {error["pointer"] for error in document["errors"]}


def test_the_system_s_workflows_are_nobody_s() -> None:
    caller = build_caller()
    before = written()
    assert caller.start(workflow="recovery-sweep", input=None).status_code == 422
    assert written() == before
