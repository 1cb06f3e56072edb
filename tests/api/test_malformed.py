"""At least 300 malformed requests to every write route: a typed 4xx each, no row changed, no text of the server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tenants.permissions import SCOPES
from tests.api.callers import Caller, build_caller, client
from tests.api.places import Call, calls, places, put
from tests.api.test_bad_input import SERVER_WORDS, VALUES
from tests.api.test_injection import digests, example

WRITES = {name: call for name, call in calls().items() if call.method != "GET"}
TIME = "0001-01-01 00:00:00+14:00"
WRONG = [None, True, -1, 1.5, 10**18, "", " ", "\u202e", "x" * 5000, [], [[]], {}, {"a": 1}, TIME]
# No UTF-8, or no JSON, wherever they stand.
BYTES = [b"\xff", b"\x00", b"\xed\xa0\x80", b"\x80", b"\x1b", b"\xc0\x80", b"\x7f\xfe"]
KINDS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "text/html; x"]
QUERIES = ["?tenant=acme", "?x", "?a=1&a=2", "?limit=1", "?%00=%ff", "?_method=DELETE", "?format=api", "?" + "x" * 3000]
# Of the wrong values those that are lawful for a member after all.
LAWFUL: dict[str, tuple[Any, ...]] = {
    "reason": ("", " ", TIME),
    "priority": (-1,),
    "delay_seconds": (1.5,),
    "own_max_outstanding": (None,),
    "own_max_leases": (None,),
}


def bodies(call: Call) -> Iterator[bytes]:
    """Bodies that no lawful client sends: broken text, wrong values in every place, values that can't be stored."""
    assert call.operation.body is not None
    lawful = example(call.operation.body.example)
    raw = json.dumps(lawful).encode()
    yield from (raw[:length] for length in range(1, len(raw)))
    yield from (raw[:at] + bad + raw[at:] for at in range(len(raw)) for bad in BYTES)
    yield from (json.dumps(value).encode() for value in WRONG if not isinstance(value, dict))
    for place in places(call):
        if place.kind == "body":
            for value in WRONG:
                if value not in LAWFUL.get(str(place.pointer[-1]), ()) and not (place.pointer[-1] == 0 and value == {}):
                    yield json.dumps(put(lawful, place.pointer, value)).encode()
    for value in VALUES.values():
        for member in ("reason", "workflow", "surprise", "name"):
            yield raw[:-1] + b', "' + member.encode() + b'": ' + value + b"}"
    for name in ("id", "state", "tenant", "tenant_id", "token", "attempt", "created_at", "__proto__", "a/b~c", "é"):
        yield json.dumps({**lawful, name: 1}).encode()


def requests(call: Call) -> Iterator[dict[str, Any]]:
    for body in bodies(call):
        yield {"data": body}
    lawful = json.dumps(example(call.operation.body.example)).encode()  # type: ignore[union-attr]
    for kind in KINDS:
        yield {"data": lawful, "content_type": kind}
    for query in QUERIES:
        yield {"data": lawful, "query": query}


def target(call: Call, caller: Caller) -> str:
    """The route's path, leading to a thing of the caller's own."""
    if "task_id" in call.path:
        return call.path.replace("<str:task_id>", caller.start().json()["id"])
    if "key_id" in call.path:
        made = caller.post("/api/v1/keys", {"name": "spare", "scopes": ["tasks:read"]}).json()
        return call.path.replace("<str:key_id>", made["id"])
    return call.path


@pytest.mark.parametrize("operation", sorted(WRITES))
def test_malformed_requests_move_nothing(operation: str) -> None:
    call, caller = WRITES[operation], build_caller(*SCOPES)
    path, surface = target(call, caller), client()
    headers = {"Authorization": f"Bearer {caller.key}", "If-Match": "*"}
    before, sent = digests(), 0
    for request in requests(call):
        sent += 1
        kind = request.get("content_type", "application/json")
        where = path + request.get("query", "")
        answer = surface.generic(call.method, where, request["data"], content_type=kind, headers=headers)
        assert 400 <= answer.status_code < 500, (request, answer.content)
        assert answer["Content-Type"] == "application/problem+json"
        shown = answer.content
        assert [word for word in SERVER_WORDS if word in shown] == [], request
        assert json.loads(shown)["request_id"] == answer["X-Request-Id"]
    assert sent >= 300
    assert digests() == before


def test_every_route_that_writes_is_among_them() -> None:
    assert set(WRITES) == {"cancelTask", "createKey", "revokeKey", "startTask", "startTasks", "tightenPolicy"}
