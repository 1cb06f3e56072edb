"""What every request passes, seen without a database: ids, the public list, and streamed bodies."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from django.http import StreamingHttpResponse

from ductor.middleware import accepted_request_id
from ductor.surfaces import is_page, is_public
from ductor.tenant_middleware import _keep_attached
from tenants.identity import new_id
from tenants.scope import attached


@pytest.mark.parametrize("presented", ["abcdefgh", "A-1-b-2-C-3", "x" * 64])
def test_a_plain_request_id_is_taken_over(presented: str) -> None:
    assert accepted_request_id(presented) == presented


@pytest.mark.parametrize(
    "presented",
    ["", "short", "x" * 65, "with blank", "new\nline1", "under_score", "ümlautid", '{"json": 1}'],
)
def test_any_other_request_id_is_replaced(presented: str) -> None:
    taken = accepted_request_id(presented)
    assert taken != presented
    assert accepted_request_id(taken) == taken


@pytest.mark.parametrize(
    "path", ["/health/live", "/health/ready", "/metrics", "/problems/not-found", "/accounts/login/"]
)
def test_the_public_list(path: str) -> None:
    assert is_public(path)


@pytest.mark.parametrize(
    "path",
    ["", "/api/v1/tasks", "/health/live/", "/healthy", "/metrics/x", "//metrics", "/problems", "/METRICS"],
)
def test_all_else_is_not_public(path: str) -> None:
    assert not is_public(path)


@pytest.mark.parametrize("path", ["/app/", "/accounts/login/", "/admin/tenants/"])
def test_pages_have_sessions(path: str) -> None:
    assert is_page(path)


@pytest.mark.parametrize("path", ["/api/v1/tasks", "/app", "/appx/", "//app/", "/api/v1/app/", "/metrics", "/"])
def test_all_else_knows_no_session(path: str) -> None:
    assert not is_page(path)


def test_a_streamed_body_is_made_with_the_tenant_attached_and_leaves_none_behind() -> None:
    tenant_id = new_id()
    seen = []

    def chunks() -> Iterator[bytes]:
        for number in range(3):
            seen.append(attached())
            yield b"%d" % number

    response = StreamingHttpResponse(chunks())
    _keep_attached(response, tenant_id)
    between = []
    body = b""
    for chunk in response:
        between.append(attached())
        body += chunk
    assert body == b"012"
    assert seen == [tenant_id] * 3
    assert between == [None] * 3
    assert attached() is None


def test_an_asynchronously_streamed_body_too() -> None:
    tenant_id = new_id()
    seen = []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(3):
            await asyncio.sleep(0)
            seen.append(attached())
            yield b"%d" % number

    async def collect() -> bytes:
        response = StreamingHttpResponse(chunks())
        _keep_attached(response, tenant_id)
        return b"".join([chunk async for chunk in response])

    assert asyncio.run(collect()) == b"012"
    assert seen == [tenant_id] * 3


def test_a_stream_that_raises_detaches() -> None:
    tenant_id = new_id()

    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("broken off")

    response = StreamingHttpResponse(chunks())
    _keep_attached(response, tenant_id)
    with pytest.raises(ValueError, match="broken off"):
        list(response)
    assert attached() is None
