"""The request size cap, in front of Django: without it a chunked body fills the disk before any view runs."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class _TooLong(Exception):
    """More bytes came than a request may have."""


class BodyLimit:
    """An ASGI application that refuses a body longer than `limit` bytes with 413 while it is still being received."""

    def __init__(self, application: Application, limit: int) -> None:
        self.application = application
        self.limit = limit

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limit:
                raise _TooLong
            return message

        try:
            await self.application(scope, counted, send)
        except _TooLong:
            await _refuse(send)


async def _refuse(send: Send) -> None:
    from ductor import problems
    from tenants.identity import new_id

    request_id = str(new_id())
    problem = problems.response(problems.of_status(413))
    document = json.loads(problem.content) | {"request_id": request_id}
    headers = {"Content-Type": problems.CONTENT_TYPE, "X-Request-Id": request_id, "Connection": "close"}
    await send(
        {
            "type": "http.response.start",
            "status": problem.status_code,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})
