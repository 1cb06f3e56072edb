"""The size cap in front of Django: a body without a length is refused while it is still coming in."""

import asyncio
import json
from typing import Any

from ductor.bodies import BodyLimit

LIMIT = 100


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def _send_chunks(chunks: list[bytes]) -> tuple[list[dict[str, Any]], int]:
    incoming = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    incoming[-1]["more_body"] = False
    taken = 0
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return incoming[taken - 1]

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(BodyLimit(_echo, LIMIT)({"type": "http"}, receive, send))
    return sent, taken


def test_a_body_of_the_limit_passes() -> None:
    sent, _ = _send_chunks([b"x" * 60, b"y" * 40])
    assert sent[0]["status"] == 200
    assert sent[1]["body"] == b"x" * 60 + b"y" * 40


def test_a_longer_body_is_refused_before_the_rest_is_read() -> None:
    sent, taken = _send_chunks([b"x" * 60, b"y" * 41, b"z" * 1000, b"z" * 1000])
    assert taken == 2
    assert sent[0]["status"] == 413
    headers = dict(sent[0]["headers"])
    document = json.loads(sent[1]["body"])
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"x-request-id"].decode() == document["request_id"]
    assert (document["code"], document["status"]) == ("too_large", 413)
