"""How a request gets from the event loop into Ductor's synchronous code and back: by one change of threads.

Django's own ASGI handler changes threads for every signal, for each middleware that is not async, and for the view,
and starts a thread for every request; together that costs several times what Ductor does for a short request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from io import BytesIO
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.core import signals
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.urls import set_script_prefix

# More than `workflows.api.waiting.MAX_WAITERS`, so that waiting clients never hold all of them.
THREADS = 96


class OneThreadHandler(ASGIHandler):
    """Answers each request in one thread of a bounded pool: signals, middleware, view and the connection's return.

    A thread keeps its Django connection object between requests, and each request runs in a context of its own, so
    that nothing attached to one is seen by the next. A synchronous streamed body is made whole in that thread (Django's
    handler does so too, in another one); an asynchronous one is streamed by the event loop.
    """

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="request")

    async def __call__(
        self,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Read the body, answer in a thread, send the answer."""
        body = await _whole_body(receive)
        if body is None:
            return
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self.threads, copy_context().run, self._answer, scope, body)
        if not response.streaming:
            # Closed already, in its thread.
            await send({"type": "http.response.start", "status": response.status_code, "headers": _headers(response)})
            await send({"type": "http.response.body", "body": response.content})
            return
        try:
            async with ThreadSensitiveContext():
                await self.send_response(response, send)
        finally:
            if not response.closed:
                await loop.run_in_executor(self.threads, response.close)

    def _answer(self, scope: Any, body: Any) -> Any:
        response: Any
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)
        request, response = self.create_request(scope, body)
        if request is not None:
            response = self.get_response(request)
        response._handler_class = type(self)
        if response.streaming and response.is_async:
            # What is sent for minutes must not hold a connection meanwhile.
            close_old_connections()
            return response
        if response.streaming:
            response.streaming_content = _as_async(list(response.streaming_content))
        # Ends the request here, in the thread whose connection has to go back to the pool.
        response.close()
        return response


async def _whole_body(receive: Callable[[], Awaitable[Any]]) -> BytesIO | None:
    """Return the body, or None for a client that left before it was whole. `ductor.bodies` bounds it."""
    body = BytesIO()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body.write(message.get("body", b""))
        if not message.get("more_body", False):
            body.seek(0)
            return body


def _headers(response: Any) -> list[tuple[bytes, bytes]]:
    headers = [(name.encode("ascii"), value.encode("latin1")) for name, value in response.items()]
    cookies = [
        (b"Set-Cookie", cookie.output(header="").strip().encode("ascii")) for cookie in response.cookies.values()
    ]
    return headers + cookies


async def _as_async(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
