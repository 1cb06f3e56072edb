"""Requests about tasks, read strictly: every member is known, typed and bounded before a verb runs."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime

from tenants.api.errors import RequestInvalid
from tenants.api.requests import NAME, REASON, Body, Schema
from workflows.admission import MAX_BATCH
from workflows.starting import Start

MAX_DELAY_SECONDS = 366 * 24 * 3600
MAX_KEY_CHARACTERS = 128

_KEY_TEXT = re.compile(r"[\x21-\x7e]{1,128}")
_START: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["workflow"],
    "properties": {
        "workflow": NAME,
        "version": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        "input": {"description": "Any JSON that the workflow's input schema takes, at most 256 KiB."},
        "key": {"type": "string", "pattern": f"^{_KEY_TEXT.pattern}$"},
        "queue": NAME,
        "priority": {"type": "integer", "minimum": -100, "maximum": 100},
        "delay_seconds": {"type": "number", "minimum": 0, "maximum": MAX_DELAY_SECONDS},
        "at": {"type": "string", "maxLength": 40, "format": "date-time"},
    },
}
START_EXAMPLE = {"workflow": "order-review", "input": {"order": 17}, "key": "order-17"}

START = Body("Start", _START, START_EXAMPLE)
BATCH = Body(
    "StartBatch",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["items"],
        "properties": {"items": {"type": "array", "minItems": 1, "maxItems": MAX_BATCH, "items": _START}},
    },
    {"items": [START_EXAMPLE, {**START_EXAMPLE, "input": {"order": 18}, "key": "order-18", "priority": 10}]},
)
CANCEL = Body(
    "Cancel",
    {"type": "object", "additionalProperties": False, "properties": {"reason": REASON}},
    {"reason": "order withdrawn"},
)


def read_start(body: Mapping[str, Any], idempotency_key: str | None = None, *, place: str = "") -> Start:
    """Turn a start that keeps its schema into a value; the header `Idempotency-Key` is the same thing as `key`.

    `place` is the JSON pointer of the start inside the body.

    Raises:
        RequestInvalid: header and member differ; both `at` and `delay_seconds` are there; `at` is no time in bounds.
    """
    if "at" in body and "delay_seconds" in body:
        raise RequestInvalid.at(f"{place}/at", "conflict", "Either `at` or `delay_seconds`, not both.")
    version = body.get("version")
    delay = body.get("delay_seconds")
    return Start(
        workflow=body["workflow"],
        version=None if version is None else int(version),
        input=body.get("input"),
        key=_one_key(body.get("key"), idempotency_key),
        queue=body.get("queue"),
        priority=int(body.get("priority", 0)),
        due_at=_due_at(body["at"], f"{place}/at") if "at" in body else None,
        delay_seconds=None if delay is None else float(delay),
    )


def read_batch(body: Mapping[str, Any]) -> list[Start]:
    """Turn a batch that keeps its schema into values, in order.

    Raises:
        RequestInvalid: as in `read_start`; the first item that is wrong is named.
    """
    return [read_start(item, place=f"/items/{index}") for index, item in enumerate(body["items"])]


def _one_key(member: str | None, header: str | None) -> str | None:
    if header is not None and not _KEY_TEXT.fullmatch(header):
        raise RequestInvalid.parameter("Idempotency-Key", "pattern", "1 to 128 printable ASCII characters, no blank.")
    if member is not None and header is not None and member != header:
        raise RequestInvalid.at("/key", "conflict", "The header Idempotency-Key names another key.")
    return member if member is not None else header


def _due_at(text: str, pointer: str) -> datetime:
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise RequestInvalid.at(pointer, "format", "This is no RFC 3339 time with an offset.")
    now = datetime.now(UTC)
    if not now - timedelta(seconds=MAX_DELAY_SECONDS) <= at <= now + timedelta(seconds=MAX_DELAY_SECONDS):
        raise RequestInvalid.at(pointer, "maximum", "This lies more than 366 days away.")
    return at
