"""Whose object is it (S1, S3, S4, B17, B18): every place of the OpenAPI file that can name a thing of a tenant.

For each: one's own, another tenant's real one, one that never was, and malformed ones. Another's answers like one that
never was, byte for byte, whatever the method. A place of the file that stands in neither list fails.
"""

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenants.identity import new_id
from tenants.permissions import SCOPES
from tests.api.callers import ORDER, Caller, build_caller, comparable
from tests.api.test_injection import digests, foreign
from tests.api.workflows import REVIEW
from tests.builders import rows

DOCUMENT = yaml.safe_load(Path("docs/openapi.yaml").read_text())
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
NO_IDS = ["", "abc", "1", "１", "%00", "..", "{id}", "null", "é", "0" * 5000, "01A22D0F-A78F-7411-9D50-8EBDE6A05C1D"]
LONG_AGO = "2020-01-01T00:00:00Z"


@dataclass
class World:
    """Two tenants, each with a task under a key, an API key and a second page of every list."""

    mine: Caller
    theirs: Caller


@dataclass(frozen=True)
class Row:
    """What to put into a place; `own` is known to be there, `other` is what it is to the other tenant."""

    find: Callable[[Caller], str]
    invent: Callable[[], str]
    malformed: tuple[str, ...] = tuple(NO_IDS)


def _task(caller: Caller) -> str:
    return str(caller.start(key=f"key-{new_id()}").json()["id"])


def _key(caller: Caller) -> str:
    made = caller.post("/api/v1/keys", {"name": "spare", "scopes": ["tasks:read"]})
    return str(made.json()["id"])


def _task_key(caller: Caller) -> str:
    return str(caller.start(key=f"key-{new_id()}").json()["key"])


def _cursor(listing: str) -> Callable[[Caller], str]:
    def find(caller: Caller) -> str:
        _task_key(caller), _task_key(caller), _key(caller)
        return str(caller.get(f"/api/v1/{listing}?limit=1").json()["next_cursor"])

    return find


def _invented_cursor() -> str:
    return f"{new_id().hex}:{'x' * 43}"


def _text() -> str:
    return f"key-{new_id()}"


def _id() -> str:
    return str(new_id())


_NO_CURSORS = ("abc", ":", "é", "0" * 5000)
_NO_KEYS = ("a b", "é", "k" * 129)
ROWS: dict[tuple[str, str], Row] = {
    ("getTask", "path task_id"): Row(_task, _id),
    ("cancelTask", "path task_id"): Row(_task, _id),
    ("revokeKey", "path key_id"): Row(_key, _id),
    ("listTasks", "query key"): Row(_task_key, _text, ("k" * 129,)),
    ("listTasks", "query cursor"): Row(_cursor("tasks"), _invented_cursor, _NO_CURSORS),
    ("listKeys", "query cursor"): Row(_cursor("keys"), _invented_cursor, _NO_CURSORS),
    ("listActs", "query cursor"): Row(_cursor("audit"), _invented_cursor, _NO_CURSORS),
    ("listActs", "query target"): Row(lambda caller: f"key:{_key(caller)}", lambda: f"key:{_id()}", ("x" * 162,)),
    ("startTask", "header Idempotency-Key"): Row(_task_key, _text, _NO_KEYS),
    ("startTask", "body key"): Row(_task_key, _text, _NO_KEYS),
    ("startTasks", "body items.key"): Row(_task_key, _text, _NO_KEYS),
}
# Places that name nothing of a tenant, and why.
NO_THING = {
    "query limit": "a number",
    "query wait": "a number",
    "query version": "of code that every tenant can start",
    "query state": "one of a closed list",
    "query act": "one of the product's own words",
    "query since": "a time",
    "query until": "a time",
    "query workflow": "of code that every tenant can start",
    "path name": "of code that every tenant can start",
    "header If-Match": "a version of one's own policy",
    "header If-None-Match": "a version of one's own policy",
    "body name": "a new name",
    "body scopes": "of a closed list",
    "body expires_at": "a time",
    "body reason": "a text that nothing reads",
    "body own_max_outstanding": "a number",
    "body own_max_leases": "a number",
    **{
        f"body {lead}{member}": "a property of the new task"
        for lead in ("", "items.")
        for member in ("workflow", "version", "input", "queue", "priority", "delay_seconds", "at")
    },
}
# The list of workflows is everybody's, but its cursors are a tenant's.
CURSOR_WITHOUT_PAGES = ("listWorkflows", "query cursor")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def places() -> Iterator[tuple[str, str]]:
    """Every place of the file where a caller writes something."""
    for _, _, operation in operations():
        for parameter in operation.get("parameters", ()):
            yield operation["operationId"], f"{parameter['in']} {parameter['name']}"
        content = operation.get("requestBody", {}).get("content", {})
        for one in content.values():
            schema = DOCUMENT["components"]["schemas"][one["schema"]["$ref"].rpartition("/")[2]]
            for member in _members(schema):
                yield operation["operationId"], f"body {member}"


def _members(schema: dict[str, Any], lead: str = "") -> Iterator[str]:
    for name, member in schema["properties"].items():
        inner = member.get("items", {}).get("properties")
        if inner is None:
            yield lead + name
        else:
            yield from _members(member["items"], f"{lead}{name}.")


@pytest.fixture
def world() -> World:
    return World(*(build_caller(*SCOPES) for _ in range(2)))


def send(world: World, operation_id: str, place: str, value: str, method: str = "") -> Any:
    """Send the operation's own request with `value` in a place, as the tenant `mine`."""
    [(path, own_method, _)] = [found for found in operations() if found[2]["operationId"] == operation_id]
    kind, name = place.split(" ")
    body: dict[str, Any] = {}
    if operation_id == "startTask":
        body = {"workflow": REVIEW, "input": ORDER, **({"key": value} if kind == "body" else {})}
    if operation_id == "startTasks":
        body = {"items": [{"workflow": REVIEW, "input": ORDER, "key": value}]}
    if kind == "path":
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    if kind == "query":
        path += f"?{name}={quote(value, safe='')}"
    headers = {name.replace("-", "_"): value} if kind == "header" else {}
    raw = b"" if own_method == "GET" else json.dumps(body).encode()
    return world.mine.post(path, raw, method=method or own_method, **headers)


def told(answer: Any, value: str) -> tuple[int, Any, str]:
    """An answer without what the caller gave, the ids that were made for it, and the times."""
    status, headers, content = comparable(answer)
    text = json.dumps([headers, content.decode()]).replace(value, "<value>")
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    return status, answer.headers.get("Content-Type"), re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)


def test_every_place_of_the_file_stands_in_one_of_the_two_lists() -> None:
    found = set(places())
    listed = {place for place in found if place in ROWS or place[1] in NO_THING}
    assert found - listed == {CURSOR_WITHOUT_PAGES}
    assert set(ROWS) <= found
    assert {place for place in NO_THING if place not in {one for _, one in found}} == set()


@pytest.mark.parametrize(("operation", "place"), ROWS)
def test_another_s_is_answered_like_one_that_never_was(operation: str, place: str, world: World) -> None:
    row = ROWS[operation, place]
    own, other = row.find(world.mine), row.find(world.theirs)
    before = digests()
    theirs = send(world, operation, place, other)
    never = row.invent()
    assert told(theirs, other) == told(send(world, operation, place, never), never)
    assert other not in theirs.content.decode() or place.split(" ")[0] != "path"
    assert foreign(digests(), world.mine) == foreign(before, world.mine)
    mine = send(world, operation, place, own)
    assert mine.status_code in (200, 201)
    if "key" not in place or place == "path key_id":
        assert told(mine, own) != told(theirs, other)


@pytest.mark.parametrize(("operation", "place"), ROWS)
def test_a_malformed_one_is_refused_and_moves_nothing(operation: str, place: str, world: World) -> None:
    never = ROWS[operation, place].invent()
    expected = told(send(world, operation, place, never), never)
    before = digests()
    for value in ROWS[operation, place].malformed:
        answer = send(world, operation, place, value)
        assert 400 <= answer.status_code < 500, value
        if place.startswith("path") and value not in ("", ".."):
            assert told(answer, never) == expected, value
    assert digests() == before


PATHS = [one for one in ROWS if one[1].startswith("path")]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("operation", "place"), PATHS)
def test_s3_b17_no_method_of_a_route_tells_more(operation: str, place: str, method: str, world: World) -> None:
    other, never = ROWS[operation, place].find(world.theirs), ROWS[operation, place].invent()
    before = digests()
    answers = [send(world, operation, place, value, method) for value in (other, never)]
    assert told(answers[0], other) == told(answers[1], never)
    assert answers[0].status_code in (404, 405)
    assert digests() == before


@pytest.mark.parametrize(("operation", "place"), [*PATHS, ("listTasks", "query key"), ("listActs", "query target")])
def test_s2_b18_another_s_costs_the_statements_of_one_that_never_was(operation: str, place: str, world: World) -> None:
    """Equal statements are what is promised; the medians are shown (pytest -s), since a machine's load moves them."""
    other = ROWS[operation, place].find(world.theirs)
    seen: dict[str, set[tuple[str, ...]]] = {"other": set(), "never": set()}
    times: dict[str, list[float]] = {"other": [], "never": []}
    for _ in range(10):
        for kind, value in (("other", other), ("never", ROWS[operation, place].invent())):
            with CaptureQueriesContext(connection) as queries:
                started = time.perf_counter()
                send(world, operation, place, value)
                times[kind].append(time.perf_counter() - started)
            seen[kind].add(tuple(re.sub(r"'[^']*'", "?", one["sql"]) for one in queries.captured_queries))
    assert seen["other"] == seen["never"]
    assert len(seen["other"]) == 1
    medians = {kind: round(statistics.median(found) * 1000, 2) for kind, found in times.items()}
    print(f"{operation} {place}: medians in ms {medians}")


def test_s4_a_tenant_named_beside_the_key_is_refused_everywhere(world: World) -> None:
    theirs = str(world.theirs.tenant.id)
    before = rows("select count(*) from workflows_task")
    for path, method, operation in operations():
        target = re.sub(r"\{\w+\}", _id(), path)
        for name in ("tenant", "tenant_id"):
            answer = world.mine.get(f"{target}?{name}={theirs}", method=method)
            assert answer.status_code == 400, (method, path)
            if "requestBody" in operation:
                example = operation["requestBody"]["content"]["application/json"]["example"]
                answer = world.mine.post(target, {**example, name: theirs}, method=method, If_Match="*")
                assert answer.status_code == 400, (method, path)
    assert rows("select count(*) from workflows_task") == before
