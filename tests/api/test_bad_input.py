"""Contract A6 on every write route: a typed 4xx that names the place, nothing written, no text of the server."""

import json
from typing import Any

import pytest

from tests.api.callers import ORDER, TASKS, assert_problem, build_caller, client, written
from tests.api.workflows import REVIEW

MIB = 1_048_576
SERVER_WORDS = (b"Traceback", b"DETAIL", b"psycopg", b"django", b"workflows_", b"tenants_", b"SELECT", b"line 1")


def _start(value: bytes) -> bytes:
    return b'{"workflow": "faces-review", "input": {"order": 1, "note": ' + value + b"}}"


VALUES = {
    "nul": rb'"\u0000"',
    "nul in a key": rb'{"a\u0000b": 1}',
    "lone surrogate": rb'"\ud800"',
    "lone surrogate in a key": rb'{"\udfff": 1}',
    "nested 990 deep": b"[" * 990 + b"]" * 990,
    "nested 20,000 deep": b"[" * 20_000 + b"]" * 20_000,
    "nested 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
    "nested 65 deep": b"[" * 63 + b"]" * 63,
    "duplicate key": b'{"a": 1, "a": 2}',
    "4,000 digits": b"9" * 4000,
    "5,000 digits": b"9" * 5000,
    "2^63": b"9223372036854775808",
    "huge exponent": b"1e100000",
    "1e400": b"1e400",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "not JSON": b"{'a': 1}",
    "not UTF-8": b'"\xff\xfe"',
}
BODIES = {
    "array": b"[]",
    "null": b"null",
    "number": b"1",
    "text": b'"x"',
    "empty text": b" ",
    "unknown member": b'{"workflow": "faces-review", "input": {"order": 1}, "surprise": 1}',
    "doubled member": b'{"workflow": "faces-review", "workflow": "x", "input": {"order": 1}}',
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_value_that_may_not_pass(value: bytes) -> None:
    _assert_refused(TASKS, _start(value), 400)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_may_not_pass(body: bytes) -> None:
    _assert_refused(TASKS, body, 400)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_cancel_s_value_that_may_not_pass(value: bytes) -> None:
    _assert_refused(None, b'{"reason": ' + value + b"}", 400)


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"reason": 1}', b'{"reason": "a\\nb"}', b'{"state": "completed"}'])
def test_a_cancel_s_body_that_may_not_pass(body: bytes) -> None:
    _assert_refused(None, body, 400)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("workflow", ""),
        ("workflow", " "),
        ("workflow", "x" * 129),
        ("workflow", "fаces-review"),
        ("workflow", "faces‮review"),
        ("workflow", 1),
        ("workflow", None),
        ("version", "1"),
        ("version", 0),
        ("version", -1),
        ("version", 1.5),
        ("version", True),
        ("version", 2**31),
        ("version", 2**63),
        ("key", ""),
        ("key", "k" * 129),
        ("key", "a b"),
        ("key", "é"),
        ("key", 5),
        ("queue", ""),
        ("queue", "x" * 129),
        ("queue", ["default"]),
        ("priority", 101),
        ("priority", "1"),
        ("priority", 40_000),
        ("delay_seconds", -1),
        ("delay_seconds", 999_999_999 * 86_400),
        ("delay_seconds", "PT5S"),
        ("delay_seconds", "NaN"),
        ("at", "tomorrow"),
        ("at", "2027-01-01T00:00:00"),
        ("at", "9999-12-31T23:59:59Z"),
        ("at", "0001-01-01T00:00:00+14:00"),
        ("at", 1_700_000_000),
        # S6: what a server sets, no body sets.
        ("state", "completed"),
        ("status", "completed"),
        ("tenant", "acme"),
        ("tenant_id", "00000000-0000-7000-8000-000000000000"),
        ("id", "01a22d0f-a78f-7411-9d50-8ebde6a05c1d"),
        ("token", 7),
        ("attempt", 0),
        ("attempts", 0),
        ("max_failures", 99),
        ("parent_run_id", "01a22d0f-a78f-7411-9d50-8ebde6a05c1d"),
        ("created_at", "2020-01-01T00:00:00Z"),
        ("origin", {"source": "me"}),
    ],
)
def test_a_member_out_of_bounds_is_named(member: str, value: Any) -> None:
    body = {"workflow": REVIEW, "input": ORDER, member: value}
    document = _assert_refused(TASKS, json.dumps(body).encode(), 400)
    assert f"/{member}" in {error["pointer"] for error in document["errors"]}


def test_at_and_delay_exclude_each_other() -> None:
    body = {"workflow": REVIEW, "input": ORDER, "at": "2027-01-01T00:00:00Z", "delay_seconds": 1}
    _assert_refused(TASKS, json.dumps(body).encode(), 400)


@pytest.mark.parametrize("key", ["", "a b", "é", "k" * 129, "tab\there"])
def test_an_idempotency_header_out_of_bounds(key: str) -> None:
    caller = build_caller()
    before = written()
    assert_problem(caller.post(body={"workflow": REVIEW, "input": ORDER}, Idempotency_Key=key), 400, "invalid_request")
    assert written() == before


def test_more_than_a_mebibyte_is_too_large() -> None:
    document = _assert_refused(TASKS, _start(b'"' + b"x" * MIB + b'"'), 413)
    assert document["code"] == "too_large"


def test_an_input_of_more_than_256_kib_is_refused() -> None:
    _assert_refused(TASKS, _start(b'"' + b"x" * (256 * 1024) + b'"'), 422)


def test_what_is_written_shorter_than_it_is_counts_as_it_is() -> None:
    # 256 KiB are counted after decoding: an escape of six characters is a text of two bytes, and passes.
    caller = build_caller()
    assert caller.post(body=_start(b'"' + rb"\u00e9" * 100_000 + b'"')).status_code == 201


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "a"])
def test_only_json_is_taken(content_type: str) -> None:
    caller = build_caller()
    before = written()
    answer = client().generic(
        "POST", TASKS, _start(b"1"), content_type=content_type, headers={"Authorization": f"Bearer {caller.key}"}
    )
    assert_problem(answer, 415, "unsupported_media_type")
    assert written() == before


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=1e1",
        "limit=%EF%BC%91",
        "limit=1&limit=2",
        "state=done",
        "state=",
        "cursor=abc",
        "cursor=" + "x" * 5000,
        "id=abc",
        "id=1%00",
        "key=a%00b",
        "key=" + "k" * 129,
        "offset=5",
        "order=created_at",
        "ordering=-id",
        "expand=steps",
        "fields=token",
        "format=api",
        "tenant=acme",
        "parent__tenant__slug=acme",
    ],
)
def test_a_query_that_may_not_pass(query: str) -> None:
    caller = build_caller()
    document = assert_problem(caller.get(f"{TASKS}?{query}"), 400, "invalid_request")
    assert document["errors"][0]["parameter"] == query.split("=", 1)[0]


@pytest.mark.parametrize("query", ["wait=21", "wait=-1", "wait=1.5", "wait=", "wait=a", "expand=all", "wait=1&wait=2"])
def test_a_wait_that_may_not_pass(query: str) -> None:
    caller = build_caller()
    task_id = caller.start().json()["id"]
    assert_problem(caller.get(f"{TASKS}/{task_id}?{query}"), 400, "invalid_request")


def test_a_write_takes_no_query() -> None:
    caller = build_caller()
    before = written()
    answer = caller.post(f"{TASKS}?key=k-1", {"workflow": REVIEW, "input": ORDER})
    assert_problem(answer, 400, "invalid_request")
    assert written() == before


def _assert_refused(path: str | None, body: bytes, status: int) -> dict[str, Any]:
    """Send the body to a start, or to a cancel where no path is given; check the refusal and that nothing moved."""
    caller = build_caller()
    if path is None:
        path = f"{TASKS}/{caller.start().json()['id']}/cancel"
    before = written()
    answer = caller.post(path, body)
    assert answer.status_code == status, answer.content[:500]
    document = assert_problem(answer, status, answer.json()["code"])
    assert not [word for word in SERVER_WORDS if word in answer.content]
    assert written() == before
    return document
