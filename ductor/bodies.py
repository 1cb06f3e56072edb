"""The limits of a request's body, in front of Django, which has none: its size, and the time until it is whole.

Without them a chunked body fills the disk before any view runs, and a client that never ends its body holds a
connection for good.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ductor.problems import Problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]

# As long as the server waits for the head of a request.
BODY_SECONDS = 30.0


class _Refused(Exception):
    """The body is not taken; `status` says why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class BodyLimit:
    """An ASGI application that refuses bodies while they are still being received.

    413 for one of more than `limit` bytes, announced or not; 400 for one that is broken, breaks off, or has not come
    whole after `seconds`.
    """

    def __init__(self, application: Application, limit: int, seconds: float = BODY_SECONDS) -> None:
        self.application = application
        self.limit = limit
        self.seconds = seconds

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self.seconds
        seen, whole = 0, False

        async def counted() -> Message:
            nonlocal seen, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise _Refused(400) from None
            if message["type"] == "http.disconnect":
                # A broken chunk shows so too, and then somebody is there to be told.
                raise _Refused(400)
            seen += len(message.get("body", b""))
            if seen > self.limit:
                raise _Refused(413)
            whole = not message.get("more_body", False)
            return message

        try:
            if _announced(scope) > self.limit:
                raise _Refused(413)
            await self.application(scope, counted, send)
        except _Refused as refused:
            await _refuse(refused.status, send)


def _announced(scope: MutableMapping[str, Any]) -> int:
    lengths = [value for name, value in scope.get("headers", ()) if name.lower() == b"content-length"]
    return max((int(length) for length in lengths if length.isdigit()), default=0)


def _problem(status: int) -> "Problem":
    from ductor import problems

    problem = problems.of_status(status)
    return replace(problem, detail="The body is broken or did not come whole.") if status == 400 else problem


async def _refuse(status: int, send: Send) -> None:
    from ductor import problems
    from tenants.identity import new_id

    request_id = str(new_id())
    answer = problems.response(_problem(status))
    document = json.loads(answer.content) | {"request_id": request_id}
    headers = {
        "Content-Type": problems.CONTENT_TYPE,
        "X-Request-Id": request_id,
        "Cache-Control": "no-store",
        "Connection": "close",
    }
    await send(
        {
            "type": "http.response.start",
            "status": answer.status_code,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})
