"""Input types, schemas, and which values a task may carry."""

import enum
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows import schemas
from workflows.values import MAX_BYTES, MAX_DEPTH, encoded_size, flaws, to_json


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: UUID
    lines: list[Line]
    colour: Colour
    on: date
    at: datetime | None = None
    kind: Literal["new", "old"] = "new"
    weights: dict[str, float] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


class Query(TypedDict):
    path: str
    limit: NotRequired[int]


ORDER = Order(
    id=UUID(int=7),
    lines=[Line("a"), Line("b", 2)],
    colour=Colour.BLUE,
    on=date(2025, 1, 2),
    at=datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC),
    weights={"kg": 2.0},
    tags=("x", "y"),
)


def flaws_of(input_type: Any, value: Any) -> list[tuple[str, str]]:
    schema = schemas.schema_of(input_type)
    validator = None if schema is None else schemas.validator_of(schema)
    return [(flaw["pointer"], flaw["code"]) for flaw in schemas.input_flaws(validator, value)]


def test_a_dataclass_goes_to_json_and_comes_back() -> None:
    value = schemas.dump_input(ORDER)

    assert json.loads(json.dumps(value)) == value
    assert flaws_of(Order, value) == []
    assert schemas.load_input(Order, value) == ORDER


def test_a_typed_dict_is_a_closed_object() -> None:
    assert flaws_of(Query, {"path": "x"}) == []
    assert flaws_of(Query, {"path": "x", "limit": 3}) == []
    assert flaws_of(Query, {"limit": "3", "other": 1}) == [
        ("/limit", "schema_type"),
        ("", "schema_additionalProperties"),
        ("", "schema_required"),
    ]
    assert schemas.load_input(Query, {"path": "x"}) == {"path": "x"}


def test_every_flaw_has_a_pointer_and_no_value_of_the_input() -> None:
    schema = {"type": "object", "properties": {"a~/b": {"type": "array", "items": {"maximum": 3}}}}
    found = schemas.input_flaws(schemas.validator_of(schema), {"a~/b": [1, 424242]})

    assert [(flaw["pointer"], flaw["code"]) for flaw in found] == [("/a~0~1b/1", "schema_maximum")]
    assert "424242" not in found[0]["detail"]


def test_without_a_schema_any_json_is_taken() -> None:
    for value in (None, True, 3, 2.5, "ä", [1, [2]], {"a": {"b": None}}):
        assert flaws_of(None, value) == []


@pytest.mark.parametrize(
    ("value", "pointer", "code"),
    [
        ("a\0b", "", "nul"),
        ({"a\0": 1}, "", "nul"),
        ("ä\0", "", "nul"),
        (["\ud800"], "/0", "lone_surrogate"),
        ({"k\udfff": 1}, "", "lone_surrogate"),
        (2**63, "", "number_out_of_bounds"),
        (-(2**63) - 1, "", "number_out_of_bounds"),
        (float("nan"), "", "number_out_of_bounds"),
        ([float("inf")], "/0", "number_out_of_bounds"),
        ({1: 2}, "", "not_json"),
        (["a", {"b": object()}], "/1/b", "not_json"),
        (b"x", "", "not_json"),
    ],
)
def test_what_cannot_be_stored_is_named(value: Any, pointer: str, code: str) -> None:
    assert [(flaw["pointer"], flaw["code"]) for flaw in flaws(value)] == [(pointer, code)]


def test_the_bounds_themselves_are_allowed() -> None:
    assert flaws([2**63 - 1, -(2**63), 1.7e308, -0.0]) == []


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_the_depth_is_bounded() -> None:
    assert flaws(nested(MAX_DEPTH)) == []
    assert [flaw["code"] for flaw in flaws(nested(MAX_DEPTH + 1))] == ["too_deep"]
    assert [flaw["code"] for flaw in flaws(nested(100_000))] == ["too_deep"]


@pytest.mark.parametrize("filler", ["x", "ä", "\x01", '"', "😀"])
def test_the_size_is_bounded_to_the_byte(filler: str) -> None:
    unit = encoded_size(filler) - 2
    fits = filler * ((MAX_BYTES - 2) // unit)
    rest = "x" * (MAX_BYTES - 2 - unit * len(fits))

    assert encoded_size(fits + rest) == MAX_BYTES
    assert flaws(fits + rest) == []
    assert [flaw["code"] for flaw in flaws(fits + rest + "x")] == ["too_large"]


def test_a_value_that_contains_itself_is_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert [flaw["code"] for flaw in flaws(to_json(loop))] == ["too_deep"]


def test_at_most_twenty_flaws_are_listed() -> None:
    assert len(flaws(["\0"] * 1000)) == 20
    assert len(schemas.input_flaws(schemas.validator_of({"items": {"type": "null"}}), [1] * 1000)) == 20


@pytest.mark.parametrize(
    ("input_type", "words"),
    [
        ({"$ref": "http://example.com/schema"}, "retrieving it failed"),
        ({"$ref": "file:///etc/passwd"}, "retrieving it failed"),
        ({"pattern": "(?=a)b"}, "regex"),
        ({"type": "nix"}, "not valid"),
        ({"const": "\0"}, "NUL"),
        (int, "neither"),
        ("order", "neither"),
    ],
)
def test_a_wrong_input_type_is_one_mistake(input_type: Any, words: str) -> None:
    (mistake,) = schemas.schema_mistakes(input_type)

    assert mistake.code == "E009"
    assert words in mistake.text
    assert "\n" not in mistake.text


def test_a_dataclass_with_an_unknown_type_is_a_mistake() -> None:
    @dataclass
    class Odd:
        what: complex

    assert [mistake.code for mistake in schemas.schema_mistakes(Odd)] == ["E009"]


def test_a_hostile_pattern_takes_linear_time() -> None:
    validator = schemas.validator_of({"type": "string", "pattern": "^(a+)+$"})
    begun = time.monotonic()

    assert schemas.input_flaws(validator, "a" * 50_000 + "b")
    assert time.monotonic() - begun < 2


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=30,
    )
)
def test_a_value_without_flaws_is_encodable_and_reads_back(value: Any) -> None:
    if flaws(value):
        return
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)

    assert "\\u0000" not in json.dumps(value).replace("\\\\", "")
    assert json.loads(text.encode()) == value
