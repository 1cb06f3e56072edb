"""Strict JSON: every input of contract A6 is refused with its place; what is left can be stored and read back."""

import json

import pytest

from tenants.api.errors import RequestInvalid
from tenants.api.jsontext import MAX_ERRORS, decode


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        (b'"\\u0000"', "", "text"),
        (b'{"a": {"b/c": "x\\u0000y"}}', "/a/b~1c", "text"),
        (b'{"a\\u0000": 1}', "/a\x00", "text"),
        (b'["\\ud800"]', "/0", "text"),
        (b'["\\uDFFFx"]', "/0", "text"),
        (b'{"\\ud800": 1}', "/\ud800", "text"),
        (b'{"a": 1, "b": 2, "a": 1}', "/a", "duplicate"),
        (b'{"x": [{}, {"a": 1, "a": 1}]}', "/x/1/a", "duplicate"),
        (b"[NaN]", "/0", "number"),
        (b"[-Infinity]", "/0", "number"),
        (b"[1e400]", "/0", "number"),
        (b"[1e100000]", "/0", "number"),
        (b"[9223372036854775808]", "/0", "number"),
        (b"[-9223372036854775809]", "/0", "number"),
        (b'{"n": ' + b"9" * 5000 + b"}", "/n", "number"),
        (b"[0." + b"1" * 4000 + b"]", "/0", "number"),
        (b"[" * 65 + b"]" * 65, "/0" * 64, "depth"),
        (b"[" * 990 + b"]" * 990, None, "depth"),
        (b"[" * 20_000 + b"]" * 20_000, None, "depth"),
        (b"[" * 100_000, None, "depth"),
        (b'{"a":' * 100_000, None, "depth"),
        (b"\xff\xfe", "", "encoding"),
        (b'"\xed\xa0\x80"', "", "encoding"),
        ("{}".encode("utf-16"), "", "encoding"),
        (b"", "", "syntax"),
        (b"{", "", "syntax"),
        (b"[01]", "", "syntax"),
        (b'{"a": 1} x', "", "syntax"),
        (b"\xef\xbb\xbf{}", "", "syntax"),
        (b'["\x00"]', "", "syntax"),
        ("[１]".encode(), "", "syntax"),
    ],
)
def test_what_may_not_pass_is_refused_with_its_place(body: bytes, pointer: str | None, code: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        decode(body)
    fault = refused.value.fields["errors"][0]
    assert fault["code"] == code
    if pointer is not None:
        assert fault["pointer"] == pointer[:256]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        2**63 - 1,
        -(2**63),
        1.5,
        1.7e308,
        "",
        "é\U0001f600‮",
        {"a": [1, {"b": None}], "": "empty key"},
        [[]] * 100,
        {str(index): [index] for index in range(200)},
    ],
)
def test_what_passes_reads_back_the_same(value: object) -> None:
    assert decode(json.dumps(value).encode()) == value
    assert decode(json.dumps(value, ensure_ascii=False).encode()) == value


def test_nesting_up_to_the_limit_passes() -> None:
    assert decode(b"[" * 64 + b"]" * 64) is not None


def test_the_number_of_named_faults_is_bounded() -> None:
    with pytest.raises(RequestInvalid) as refused:
        decode(b"[" + b",".join([b"NaN"] * 1000) + b"]")
    assert len(refused.value.fields["errors"]) == MAX_ERRORS


def test_a_pointer_is_bounded_however_long_the_keys_are() -> None:
    with pytest.raises(RequestInvalid) as refused:
        decode(b'{"' + b"k" * 5000 + b'": {"' + b"l" * 5000 + b'": NaN}}')
    assert len(refused.value.fields["errors"][0]["pointer"]) == 256
