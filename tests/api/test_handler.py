"""The way through the event loop: one thread a request, nothing left behind in it, the connection given back."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from ductor.handler import OneThreadHandler
from tenants.scope import attached, require_attached, tenant_scope
from tests.api.callers import TASKS, build_caller
from tests.builders import rows, start
from workflows.models import Task

seen: list[Any] = []


def _note(request: HttpRequest) -> HttpResponse:
    seen.append((threading.current_thread().name, attached()))
    return HttpResponse("noted", headers={"X-Tenant-Seen": str(attached())})


def _stream(request: HttpRequest) -> StreamingHttpResponse:
    def tasks() -> Any:
        for _ in range(3):
            with tenant_scope():
                yield f"{require_attached()} {Task.objects.count()}\n".encode()

    return StreamingHttpResponse(tasks())


def _stream_slowly(request: HttpRequest) -> StreamingHttpResponse:
    async def moments() -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
            yield f"{require_attached()} {_connections_in_use()}\n".encode()

    return StreamingHttpResponse(moments())


urlpatterns = [path("note", _note), path("stream", _stream), path("slowly", _stream_slowly)]


def _ask(application: Any, url: str, key: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())]
    scope = {"type": "http", "method": "GET", "path": url, "query_string": b"", "headers": headers}

    async def run() -> None:
        await application(scope, receive, send)

    asyncio.run(run())
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture
def ask() -> Any:
    """Asks the application as a server would; its thread gives its connection back at the end."""
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=_middleware()):
        handler = _handler()
        yield lambda url, key: _ask(handler, url, key)
        handler.threads.submit(connections.close_all).result()
        handler.threads.shutdown()


def _handler() -> OneThreadHandler:
    """One whose pool has one thread: of several, nobody could say which one gives its connection back."""
    handler = OneThreadHandler()
    handler.threads.shutdown()
    handler.threads = ThreadPoolExecutor(1, thread_name_prefix="request")
    return handler


def _connections_in_use() -> int:
    [(count,)] = rows("select count(*) from pg_stat_activity where usename = 'ductor_test' and state <> 'idle'")
    return int(count)


def _middleware() -> list[str]:
    return ["ductor.middleware.RequestMiddleware", "ductor.tenant_middleware.TenantMiddleware"]


def test_requests_of_many_tenants_see_their_own_in_shared_threads(ask: Callable[..., Any]) -> None:
    seen.clear()
    callers = [build_caller() for _ in range(5)]
    for _ in range(4):
        for caller in callers:
            status, headers, body = ask("/note", caller.key)
            assert (status, body, headers["x-tenant-seen"]) == (200, b"noted", str(caller.tenant.id))
    assert ask("/note", "nobody.knows")[0] == 401
    names = {name for name, _ in seen}
    assert all(name.startswith("request") for name in names)
    assert len(seen) == 20
    assert attached() is None


def test_a_streamed_body_reads_its_own_tenant_s_rows_to_the_end(ask: Callable[..., Any]) -> None:
    mine, other = build_caller(), build_caller()
    start(mine.tenant, 2)
    start(other.tenant, 5)
    for caller, count in ((mine, 2), (other, 5)):
        status, _, body = ask("/stream", caller.key)
        assert status == 200
        assert body == f"{caller.tenant.id} {count}\n".encode() * 3


def test_an_asynchronous_body_keeps_its_tenant_and_holds_no_transaction(ask: Callable[..., Any]) -> None:
    caller = build_caller()
    status, _, body = ask("/slowly", caller.key)
    assert (status, body) == (200, f"{caller.tenant.id} 0\n".encode() * 3)


def test_the_api_answers_the_same_through_the_loop() -> None:
    caller = build_caller()
    caller.start()
    with override_settings(MIDDLEWARE=_middleware()):
        handler = _handler()
        status, headers, body = _ask(handler, TASKS, caller.key)
        handler.threads.submit(connections.close_all).result()
        handler.threads.shutdown()
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert body == caller.get().content
    assert _connections_in_use() == 0
