"""Strict JSON: what PostgreSQL's jsonb, JavaScript and a person would all read as the same value.

Python's decoder accepts more than that: duplicate keys, NaN, lone surrogates, NUL, numbers without bound and nesting
until the stack ends. Each of these is refused here with the place it stands at, before anything else sees the value.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tenants.api.errors import RequestInvalid

MAX_DEPTH = 64
MAX_ERRORS = 20
_MAX_INTEGER = 2**63 - 1
_MIN_INTEGER = -(2**63)
# jsonb stores a number's decimal digits: 1e100000 would be 100,008 bytes.
_MAX_NUMBER_CHARACTERS = 64
_MAX_POINTER = 256
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u(0000|d[89a-f])", re.IGNORECASE)

# A place as a chain of its keys, the last one outside: pointers are written only for the places that are refused.
_Place = tuple[Any, str] | None


@dataclass(frozen=True, slots=True)
class _Refused:
    """Stands where a number was that may not pass."""

    detail: str


class _Doubled(dict[str, Any]):
    """An object that named a key twice."""

    key = ""


def decode(body: bytes) -> Any:
    """Decode one JSON document.

    Raises:
        RequestInvalid: not UTF-8, not JSON, nested deeper than 64, a key named twice, a number out of bounds, NUL or
            a lone surrogate in a text; up to 20 places are named.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestInvalid.at("", "encoding", "The body is not UTF-8.") from None
    reader = _Reader()
    try:
        value = reader.decode(text)
    except RecursionError:
        raise RequestInvalid.at("", "depth", f"Nested deeper than {MAX_DEPTH}.") from None
    except ValueError:
        raise RequestInvalid.at("", "syntax", "The body is not JSON.") from None
    may_be_deep = text.count("[") + text.count("{") > MAX_DEPTH
    if reader.suspect or may_be_deep or _ESCAPED.search(text):
        errors = list(islice(_faults(value), MAX_ERRORS))
        if errors:
            raise RequestInvalid.many(errors)
    return value


class _Reader:
    """Decodes and notes whether anything was met that only a walk over the value can place."""

    def __init__(self) -> None:
        self.suspect = False
        self.decode = json.JSONDecoder(
            object_pairs_hook=self._members,
            parse_int=self._integer,
            parse_float=self._number,
            parse_constant=self._constant,
        ).decode

    def _refuse(self, detail: str) -> _Refused:
        self.suspect = True
        return _Refused(detail)

    def _integer(self, literal: str) -> int | _Refused:
        if len(literal) <= _MAX_NUMBER_CHARACTERS and _MIN_INTEGER <= (value := int(literal)) <= _MAX_INTEGER:
            return value
        return self._refuse("An integer lies between -2^63 and 2^63 - 1.")

    def _number(self, literal: str) -> float | _Refused:
        if len(literal) <= _MAX_NUMBER_CHARACTERS and math.isfinite(value := float(literal)):
            return value
        return self._refuse(f"A number is at most 1.7e308 and written in at most {_MAX_NUMBER_CHARACTERS} characters.")

    def _constant(self, literal: str) -> _Refused:
        return self._refuse(f"{literal} is not a JSON number.")

    def _members(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        self.suspect = True
        doubled = _Doubled(members)
        counts = Counter(key for key, _ in pairs)
        doubled.key = next(key for key, count in counts.items() if count > 1)
        return doubled


def _faults(document: Any) -> Iterator[dict[str, str]]:
    """Walk the value without recursion and yield an error for each place that may not pass."""
    stack: list[tuple[_Place, Any, int]] = [(None, document, 1)]
    while stack:
        place, value, depth = stack.pop()
        if isinstance(value, str):
            if _UNSTORABLE.search(value):
                yield _error(place, "text", "A text holds no NUL and no lone surrogate.")
        elif isinstance(value, _Refused):
            yield _error(place, "number", value.detail)
        elif isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                yield _error(place, "depth", f"Nested deeper than {MAX_DEPTH}.")
                continue
            if isinstance(value, list):
                stack.extend(((place, str(index)), item, depth + 1) for index, item in enumerate(value))
                continue
            if isinstance(value, _Doubled):
                yield _error((place, value.key), "duplicate", "A key is named twice.")
            for key, item in value.items():
                if _UNSTORABLE.search(key):
                    yield _error((place, key), "text", "A key holds no NUL and no lone surrogate.")
                stack.append(((place, key), item, depth + 1))


def pointer_of(keys: list[str]) -> str:
    """Return the JSON pointer (RFC 6901) of the place that `keys` lead to, cut to 256 characters."""
    pointer = ""
    for key in keys:
        pointer += "/" + key[:_MAX_POINTER].replace("~", "~0").replace("/", "~1")
        if len(pointer) > _MAX_POINTER:
            break
    return pointer[:_MAX_POINTER]


def _error(place: _Place, code: str, detail: str) -> dict[str, str]:
    keys: list[str] = []
    while place is not None:
        place, key = place
        keys.append(key)
    return {"pointer": pointer_of(keys[::-1]), "code": code, "detail": detail}
