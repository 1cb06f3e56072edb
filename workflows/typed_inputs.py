"""Dataclasses and TypedDicts as input types: their JSON Schema, and a checked JSON value made into one of them.

Known types: str, int, float, bool, None, Any, list, tuple[X, ...], dict[str, X], Literal, Enum, unions, datetime, date,
UUID, and dataclasses and TypedDicts of these.
"""

import dataclasses
import enum
import types
import typing
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
    Any: {},
    dict: {"type": "object"},
    list: {"type": "array"},
}
_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    UUID: UUID,
}


def is_record(kind: Any) -> bool:
    """Say whether `kind` is a dataclass or a TypedDict, the types that can be a workflow's input."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or is_typeddict(kind))


def schema_for(kind: Any, inside: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of a type.

    Raises:
        TypeError: the type is not one of the known ones, or contains itself.
    """
    if is_record(kind):
        if kind in inside:
            raise TypeError(f"{kind.__name__} contains itself; write its JSON Schema as a dict instead")
        return _record_schema(kind, (*inside, kind))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_for(arg, inside) for arg in args]}
    if origin is list or (origin is tuple and args[1:] == (Ellipsis,)):
        return {"type": "array", "items": schema_for(args[0], inside)}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": schema_for(args[1], inside)}
    try:
        return dict(_SCALARS[kind])
    except (KeyError, TypeError):
        raise TypeError(f"{kind!r} has no JSON Schema here; write the schema as a dict instead") from None


def _record_schema(kind: type, inside: tuple[Any, ...]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    if is_typeddict(kind):
        fields = {name: _bare(hint) for name, hint in hints.items()}
        # `__required_keys__` is wrong under postponed evaluation, so the markers decide where there are any.
        required = [name for name, hint in hints.items() if _is_required(kind, name, hint)]
    else:
        fields = {f.name: _bare(hints[f.name]) for f in dataclasses.fields(kind) if f.init}
        required = [
            f.name
            for f in dataclasses.fields(kind)
            if f.init and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
    return {
        "type": "object",
        "properties": {name: schema_for(hint, inside) for name, hint in fields.items()},
        "required": sorted(required),
        "additionalProperties": False,
    }


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    if get_origin(hint) is Required:
        return True
    if get_origin(hint) is NotRequired:
        return False
    return name in kind.__required_keys__


def _bare(hint: Any) -> Any:
    while get_origin(hint) in (Required, NotRequired, typing.Annotated):
        hint = get_args(hint)[0]
    return hint


def load(kind: Any, value: Any) -> Any:
    """Make a value that fits `schema_for(kind)` into an object of that type; TypedDicts stay dicts."""
    if isinstance(value, dict) and is_record(kind):
        return _load_record(kind, value)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _load_union(args, value)
    if isinstance(value, list) and origin in (list, tuple):
        return origin(load(args[0], item) for item in value)
    if isinstance(value, dict) and origin is dict:
        return {name: load(args[1], item) for name, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if isinstance(value, str) and kind in _FROM_TEXT:
        return _FROM_TEXT[kind](value)
    if kind is float and type(value) is int:
        return float(value)
    return value


def _load_record(kind: Any, value: dict[str, Any]) -> Any:
    hints = {name: _bare(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    loaded = {name: load(hints.get(name, Any), item) for name, item in value.items()}
    return loaded if is_typeddict(kind) else kind(**loaded)


def _load_union(args: tuple[Any, ...], value: Any) -> Any:
    """Take the first member whose shape the value has."""
    from workflows.schemas import fits

    for arg in args:
        if fits(schema_for(arg), value):
            return load(arg, value)
    return value
