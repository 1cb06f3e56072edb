"""JSON values that a task may carry: what is allowed, and how Python objects become such values.

Every allowed value can be stored in PostgreSQL and read back unchanged: no NUL, no lone surrogate, no infinity, no
whole number beyond 64 bits.
"""

import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_ERRORS = 20
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

_PLAIN = (type(None), bool)

Flaw = dict[str, str]


def flaws(value: Any) -> list[Flaw]:
    """Return what keeps `value` from being stored, as {pointer, code, detail}, at most 20; empty where nothing does.

    Codes: `too_large`, `too_deep`, `nul`, `lone_surrogate`, `number_out_of_bounds`, `not_json`.
    """
    found: list[Flaw] = []
    # An upper bound of the encoded size is enough for nearly all values; only near the limit is it worth encoding.
    bound = _walk(value, found)
    if not found and bound > MAX_BYTES and (size := encoded_size(value)) > MAX_BYTES:
        found.append(_flaw((), "too_large", f"{size} bytes of JSON; at most {MAX_BYTES} are allowed"))
    return found


def encoded_size(value: Any) -> int:
    """Return the bytes of `value` as compact UTF-8 JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _walk(value: Any, found: list[Flaw]) -> int:
    """Look at every value without recursion and return an upper bound of the encoded size in bytes."""
    bound = 0
    todo: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while todo and len(found) < MAX_ERRORS:
        item, path = todo.pop()
        kind = type(item)
        if kind is str:
            bound += 6 * len(item) + 3
            _check_text(item, path, found)
        elif kind in _PLAIN:
            bound += 6
        elif kind is int or kind is float:
            bound += 32
            _check_number(item, path, found)
        elif kind is dict or kind is list or kind is tuple:
            bound += 3 + 2 * len(item)
            if len(path) >= MAX_DEPTH:
                found.append(_flaw(path[:8], "too_deep", f"nested deeper than {MAX_DEPTH} levels"))
            elif kind is dict:
                for name, inner in item.items():
                    if type(name) is str:
                        bound += 6 * len(name) + 3
                        _check_text(name, path, found)
                        todo.append((inner, (*path, name)))
                    else:
                        found.append(_flaw(path, "not_json", f"a key of type {type(name).__name__}; keys are texts"))
            else:
                todo.extend([(inner, (*path, index)) for index, inner in enumerate(item)])
        else:
            found.append(_flaw(path, "not_json", f"a value of type {kind.__name__} is no JSON"))
    return bound


def _check_text(text: str, path: tuple[Any, ...], found: list[Flaw]) -> None:
    if text.isascii():
        if "\0" in text:
            found.append(_flaw(path, "nul", "a NUL character can't be stored"))
        return
    if "\0" in text:
        found.append(_flaw(path, "nul", "a NUL character can't be stored"))
    try:
        text.encode()
    except UnicodeEncodeError:
        found.append(_flaw(path, "lone_surrogate", "half of a surrogate pair is no character"))


def _check_number(number: float, path: tuple[Any, ...], found: list[Flaw]) -> None:
    if type(number) is int:
        if not MIN_INTEGER <= number <= MAX_INTEGER:
            found.append(_flaw(path, "number_out_of_bounds", "whole numbers have at most 64 bits"))
    elif not math.isfinite(number):
        found.append(_flaw(path, "number_out_of_bounds", "numbers must be finite"))


def _flaw(path: tuple[Any, ...], code: str, detail: str) -> Flaw:
    return {"pointer": pointer(path), "code": code, "detail": detail}


def pointer(path: tuple[Any, ...] | list[Any]) -> str:
    """Return the JSON Pointer (RFC 6901) of a path; characters that can't be stored become `?`."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    text = "".join(f"/{part}" for part in parts)
    return text.replace("\0", "?").encode("utf-8", "replace").decode()[:512]


def to_json(value: Any) -> Any:
    """Turn dataclasses, enums, dates, UUIDs, mappings and sets into plain JSON values; leave the rest as it is.

    What is no JSON even then is found by `flaws`.
    """
    kind = type(value)
    if kind is str or kind is int or kind is float or kind in _PLAIN:
        return value
    return _convert(value, 0)


def _convert(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH + 1:
        # Left as it is for `flaws` to find, also where a value contains itself.
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _convert(getattr(value, f.name), depth + 1) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return _convert(value.value, depth + 1)
    if isinstance(value, Mapping):
        return {name: _convert(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_convert(inner, depth + 1) for inner in items]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        return str(value)
    return value
