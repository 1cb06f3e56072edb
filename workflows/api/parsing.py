"""Requests about tasks, read strictly: every member and parameter is known, typed and bounded before a verb runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import jsonschema_rs
from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from tenants.api.cursors import read_cursor
from tenants.api.errors import RequestInvalid
from tenants.api.jsontext import MAX_ERRORS, pointer_of
from tenants.api.parsing import bounded_integer, single_parameters
from workflows.starting import Start
from workflows.states import State

TASK_LISTING = "tasks"
DEFAULT_PAGE = 50
MAX_PAGE = 200
MAX_WAIT_SECONDS = 20
MAX_DELAY_SECONDS = 366 * 24 * 3600
MAX_KEY_CHARACTERS = 128

_NAME = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.:-]{0,127}$"}
_KEY_TEXT = re.compile(r"[\x21-\x7e]{1,128}")
_KEY = {"type": "string", "pattern": f"^{_KEY_TEXT.pattern}$"}

START_BODY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["workflow"],
    "properties": {
        "workflow": _NAME,
        "version": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        "input": {},
        "key": _KEY,
        "queue": _NAME,
        "priority": {"type": "integer", "minimum": -100, "maximum": 100},
        "delay_seconds": {"type": "number", "minimum": 0, "maximum": MAX_DELAY_SECONDS},
        "at": {"type": "string", "maxLength": 40, "format": "date-time"},
    },
}
# A reason is stored and shown to people: control characters and overrides of direction would rewrite their screen.
_REASON = {"type": "string", "maxLength": 1000, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]*$"}
CANCEL_BODY: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {"reason": _REASON}}

_DETAILS = {
    "type": "This has another JSON type than it should.",
    "pattern": "This holds a character it may not, or too many or too few.",
    "minimum": "This is too small.",
    "maximum": "This is too large.",
    "maxLength": "This is too long.",
    "format": "This is no RFC 3339 time with an offset.",
}


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
    )


_START = _validator(START_BODY)
_CANCEL = _validator(CANCEL_BODY)


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One page of a tenant's tasks, newest first."""

    state: State | None
    workflow: str | None
    key: str | None
    before: UUID | None
    limit: int


def read_start(body: Mapping[str, Any], idempotency_key: str | None) -> Start:
    """Read a start; the header `Idempotency-Key` and the member `key` are the same thing.

    Raises:
        RequestInvalid: a member is unknown, of another type or out of bounds; header and member differ; both `at`
            and `delay_seconds` are there.
    """
    _check(_START, body, START_BODY)
    if "at" in body and "delay_seconds" in body:
        raise RequestInvalid.at("/at", "conflict", "Either `at` or `delay_seconds`, not both.")
    version = body.get("version")
    delay = body.get("delay_seconds")
    return Start(
        workflow=body["workflow"],
        version=None if version is None else int(version),
        input=body.get("input"),
        key=_one_key(body.get("key"), idempotency_key),
        queue=body.get("queue"),
        priority=int(body.get("priority", 0)),
        due_at=_due_at(body["at"]) if "at" in body else None,
        delay_seconds=None if delay is None else float(delay),
    )


def read_cancel(body: Mapping[str, Any]) -> str:
    """Read a cancel and return its reason, '' where none is given.

    Raises:
        RequestInvalid: a member is unknown, or the reason is no printable text of at most 1,000 characters.
    """
    _check(_CANCEL, body, CANCEL_BODY)
    reason: str = body.get("reason", "")
    return reason


def read_list(query: QueryDict, tenant_id: UUID) -> ListRequest:
    """Read the query of a task list.

    Raises:
        RequestInvalid: a parameter is unknown, given twice or out of bounds, or the cursor is not this tenant's.
    """
    given = single_parameters(query, frozenset({"state", "workflow", "key", "cursor", "limit"}))
    cursor = given.get("cursor")
    return ListRequest(
        state=_state(given["state"]) if "state" in given else None,
        workflow=_short(given, "workflow"),
        key=_short(given, "key"),
        before=None if cursor is None else read_cursor(cursor, tenant_id=tenant_id, listing=TASK_LISTING),
        limit=bounded_integer(given.get("limit", str(DEFAULT_PAGE)), "limit", 1, MAX_PAGE),
    )


def read_wait(query: QueryDict) -> int:
    """Read how many seconds a reader wants to wait for the task's end.

    Raises:
        RequestInvalid: a parameter other than `wait` is there, or it is no integer from 0 to 20.
    """
    given = single_parameters(query, frozenset({"wait"}))
    return bounded_integer(given.get("wait", "0"), "wait", 0, MAX_WAIT_SECONDS)


def no_parameters(query: QueryDict) -> None:
    """Refuse any query parameter.

    Raises:
        RequestInvalid: there is one.
    """
    single_parameters(query, frozenset())


def _check(validator: jsonschema_rs.Draft202012Validator, body: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    known = schema["properties"]
    errors = [
        {"pointer": pointer_of([name]), "code": "unknown", "detail": f"The members are {', '.join(known)}."}
        for name in body
        if name not in known
    ]
    for error in validator.iter_errors(body):
        keyword = error.kind.name
        if keyword == "required":
            pointer = pointer_of([getattr(error.kind, "property", "")])
            errors.append({"pointer": pointer, "code": "required", "detail": "This is needed."})
        elif keyword in _DETAILS:
            pointer = pointer_of([str(key) for key in error.instance_path])
            errors.append({"pointer": pointer, "code": keyword, "detail": _DETAILS[keyword]})
    if errors:
        raise RequestInvalid.many(errors[:MAX_ERRORS])


def _one_key(member: str | None, header: str | None) -> str | None:
    if header is not None and not _KEY_TEXT.fullmatch(header):
        raise RequestInvalid.parameter("Idempotency-Key", "pattern", "1 to 128 printable ASCII characters, no blank.")
    if member is not None and header is not None and member != header:
        raise RequestInvalid.at("/key", "conflict", "The header Idempotency-Key names another key.")
    return member if member is not None else header


def _due_at(text: str) -> datetime:
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise RequestInvalid.at("/at", "format", _DETAILS["format"])
    now = datetime.now(UTC)
    if not now - timedelta(seconds=MAX_DELAY_SECONDS) <= at <= now + timedelta(seconds=MAX_DELAY_SECONDS):
        raise RequestInvalid.at("/at", "maximum", "This lies more than 366 days away.")
    return at


def _state(text: str) -> State:
    try:
        return State(text)
    except ValueError:
        raise RequestInvalid.parameter("state", "enum", f"One of {', '.join(State)}.") from None


def _short(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    if value is not None and len(value) > MAX_KEY_CHARACTERS:
        raise RequestInvalid.parameter(name, "maxLength", "At most 128 characters.")
    return value
