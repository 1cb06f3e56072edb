"""The limits in front of Django: a body that is too long, broken or too slow is refused while it is still coming in."""

import asyncio
import json
from collections.abc import MutableMapping, Sequence
from typing import Any

import pytest

from ductor.bodies import BodyLimit

LIMIT = 100
SECONDS = 0.2

Headers = Sequence[tuple[bytes, bytes]]


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def _send(incoming: list[dict[str, Any]], headers: Headers = ()) -> tuple[list[MutableMapping[str, Any]], int]:
    """Send messages as a server would; after the last one nothing more comes."""
    taken = 0
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        if taken > len(incoming):
            await asyncio.Event().wait()
        return incoming[taken - 1]

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(BodyLimit(_echo, LIMIT, SECONDS)({"type": "http", "headers": headers}, receive, send))
    return sent, taken


def _chunks(*chunks: bytes, ends: bool = True) -> list[dict[str, Any]]:
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if ends:
        messages[-1]["more_body"] = False
    return messages


def _assert_refused(sent: list[MutableMapping[str, Any]], status: int, code: str) -> None:
    assert sent[0]["status"] == status
    headers = dict(sent[0]["headers"])
    document = json.loads(sent[1]["body"])
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"connection"] == b"close"
    assert headers[b"x-request-id"].decode() == document["request_id"]
    assert (document["code"], document["status"]) == (code, status)


def test_a_body_of_the_limit_passes() -> None:
    sent, _ = _send(_chunks(b"x" * 60, b"y" * 40), [(b"content-length", b"100")])
    assert sent[0]["status"] == 200
    assert sent[1]["body"] == b"x" * 60 + b"y" * 40


def test_a_longer_body_is_refused_before_the_rest_is_read() -> None:
    sent, taken = _send(_chunks(b"x" * 60, b"y" * 41, b"z" * 1000, b"z" * 1000))
    assert taken == 2
    _assert_refused(sent, 413, "too_large")


def test_a_longer_body_that_is_announced_is_not_read_at_all() -> None:
    sent, taken = _send(_chunks(b"x" * 60), [(b"Content-Length", b"101")])
    assert taken == 0
    _assert_refused(sent, 413, "too_large")


@pytest.mark.parametrize("came", [(), (b"x",), (b"x" * 60, b"y" * 40)])
def test_a_body_that_does_not_end_is_refused_after_its_time(came: tuple[bytes, ...]) -> None:
    sent, _ = _send(_chunks(*came, ends=False))
    _assert_refused(sent, 400, "invalid_request")


def test_a_body_that_breaks_off_is_refused() -> None:
    sent, _ = _send([*_chunks(b"x" * 60, ends=False), {"type": "http.disconnect"}])
    _assert_refused(sent, 400, "invalid_request")


def test_what_comes_after_a_whole_body_has_time() -> None:
    async def patient(scope: Any, receive: Any, send: Any) -> None:
        await _echo(scope, receive, send)
        assert (await receive())["type"] == "http.disconnect"

    incoming = [*_chunks(b"x"), {"type": "http.disconnect"}]

    async def receive() -> dict[str, Any]:
        if len(incoming) == 1:
            await asyncio.sleep(2 * SECONDS)
        return incoming.pop(0)

    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(BodyLimit(patient, LIMIT, SECONDS)({"type": "http"}, receive, send))
    assert (sent[0]["status"], incoming) == (200, [])
