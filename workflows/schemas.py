"""Input schemas: what a workflow's `input=` means, and checking a task's input against it.

Schemas are checked by jsonschema-rs offline (a `$ref` fetches nothing) with a linear-time regex engine, since both
schemas and inputs may be hostile.
"""

import functools
import json
from typing import Any

import jsonschema_rs

from workflows import typed_inputs
from workflows.graph import Mistake
from workflows.values import MAX_ERRORS, Flaw, flaws, pointer, to_json

InputType = dict[str, Any] | type | None

_MAX_DETAIL = 300


def schema_of(input_type: InputType) -> dict[str, Any] | None:
    """Return the JSON Schema of a workflow's input type, or None where any JSON is taken.

    Raises:
        TypeError: it is neither a dict, a dataclass nor a TypedDict, or uses a type without a schema.
        ValueError: it is no valid JSON Schema.
    """
    if input_type is None:
        return None
    if isinstance(input_type, dict):
        schema = input_type
    elif typed_inputs.is_record(input_type):
        schema = typed_inputs.schema_for(input_type)
    else:
        raise TypeError(f"input={input_type!r} is neither a JSON Schema as a dict, a dataclass nor a TypedDict")
    if wrong := flaws(schema):
        raise ValueError(f"the schema is no JSON: {wrong[0]['detail']} at {wrong[0]['pointer'] or '/'}")
    validator_of(schema)
    return schema


def schema_mistakes(input_type: InputType) -> list[Mistake]:
    """Return what is wrong with a workflow's `input=`, for the checks."""
    try:
        schema_of(input_type)
    except (TypeError, ValueError, NameError) as error:
        reason = str(error).partition("\n")[0]
        return [
            Mistake("E009", f"Its input type is wrong: {reason}.", "Give a JSON Schema as a dict, a dataclass or None.")
        ]
    return []


def input_flaws(validator: Any | None, value: Any) -> list[Flaw]:
    """Return why `value` is no lawful input, as {pointer, code, detail}, at most 20; empty where it is one.

    `validator` is the workflow's (`validator_of`), or None where any JSON is taken.

    The codes are those of `values.flaws`, and `schema_<keyword>` for what breaks the schema.
    """
    found = flaws(value)
    if found or validator is None:
        return found
    if validator.is_valid(value):
        return []
    for error in validator.iter_errors(value):
        found.append(
            {
                "pointer": pointer(error.instance_path),
                "code": f"schema_{_keyword(error.schema_path)}",
                # The masked message names no value of the input: problems are logged and shown to others.
                "detail": error.message[:_MAX_DETAIL],
            }
        )
        if len(found) >= MAX_ERRORS:
            break
    return found


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Say whether `value` keeps `schema`."""
    return bool(validator_of(schema).is_valid(value))


def load_input(input_type: InputType, value: Any) -> Any:
    """Return what a handler sees as `ctx.input`: the dataclass, where the input type is one, else the JSON value."""
    if input_type is None or isinstance(input_type, dict):
        return value
    return typed_inputs.load(input_type, value)


def dump_input(value: Any) -> Any:
    """Return an input, given as JSON or as an object of the input type, as JSON."""
    return {} if value is None else to_json(value)


def _keyword(schema_path: list[str | int]) -> str:
    words = [part for part in schema_path if isinstance(part, str)]
    return words[-1] if words else "false"


def validator_of(schema: dict[str, Any]) -> Any:
    """Return the compiled form of a schema, from a cache of 1,000.

    Raises:
        ValueError: it is no valid JSON Schema, or refers to something outside itself.
    """
    return _validator(json.dumps(schema, sort_keys=True))


@functools.lru_cache(maxsize=1_000)
def _validator(text: str) -> Any:
    return jsonschema_rs.validator_for(
        json.loads(text),
        offline=True,
        validate_formats=True,
        mask="the value",
        pattern_options=jsonschema_rs.RegexOptions(),
    )
