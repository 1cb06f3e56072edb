"""Every place of a request to the tenant API that a caller can write into, read off the routes and their operations."""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from tenants.api.description import Operation

# Read for every route, by the middleware or the server.
COMMON_HEADERS = ("Authorization", "X-Request-Id", "Accept", "Content-Type", "Host")


@dataclass(frozen=True)
class Call:
    """One method of one route, with the names of its path's parameters."""

    method: str
    path: str
    operation: Operation


@dataclass(frozen=True)
class Place:
    """Where a text is put: in the path, the query, a header or, by a JSON pointer's parts, the body."""

    kind: str
    name: str
    pointer: tuple[Any, ...] = ()


def calls() -> dict[str, Call]:
    """Return every operation of the tenant surface by its id."""
    found = {}
    for path, view in _routes(get_resolver("ductor.urls").url_patterns, "/"):
        for method, operation in getattr(getattr(view, "cls", None), "operations", {}).items():
            found[operation.id] = Call(method, path, operation)
    return found


def _routes(patterns: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield path, pattern.callback


def places(call: Call) -> list[Place]:
    """Return every place of a call; also a query parameter, a header and a member that nobody declared."""
    operation = call.operation
    found = [Place("path", name) for name in re.findall(r"<\w+:(\w+)>", call.path)]
    found += [Place(one.place, one.name) for one in operation.parameters if one.place != "path"]
    found += [Place("header", name) for name in COMMON_HEADERS]
    found += [Place("query", "surprise"), Place("query name", ""), Place("header", "X-Surprise")]
    if operation.body is not None:
        pointers = list(_members(operation.body.schema, ()))
        found += [Place("body", "/".join(map(str, pointer)), pointer) for pointer in pointers]
        found += [Place("member name", ""), Place("whole body", "")]
    return found


def _members(schema: dict[str, Any], pointer: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for name, member in schema.get("properties", {}).items():
        yield (*pointer, name)
        yield from _members(member, (*pointer, name))
    if "items" in schema:
        yield (*pointer, 0)
        yield from _members(schema["items"], (*pointer, 0))


def put(body: Any, pointer: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a body with `value` at a place, which is made where it is not there."""
    changed = copy.deepcopy(body)
    here = changed
    for key in pointer[:-1]:
        here = here[key] if isinstance(key, int) else here.setdefault(key, {})
    if isinstance(here, list):
        here[:1] = [value]
    else:
        here[pointer[-1]] = value
    return changed
