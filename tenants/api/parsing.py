"""The parser of every JSON body, and the reader of every query string."""

from collections.abc import Mapping
from typing import IO, Any

from django.http import QueryDict
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from tenants.api.errors import BodyTooLarge, RequestInvalid
from tenants.api.jsontext import MAX_ERRORS, decode

MAX_BODY_BYTES = 1_048_576
MAX_PARAMETER_CHARACTERS = 1024


class StrictJSONParser(JSONParser):
    """Parses a JSON object of at most 1 MiB; refusals as in `tenants.api.jsontext.decode`."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLarge
        value = decode(body)
        if not isinstance(value, dict):
            raise RequestInvalid.at("", "type", "The body is a JSON object.")
        return value


def single_parameters(query: QueryDict, allowed: frozenset[str]) -> dict[str, str]:
    """Return the query parameters, each given once and each one of `allowed`.

    Raises:
        RequestInvalid: a parameter is unknown, given twice, empty, too long or holds a control character.
    """
    errors = [
        {"parameter": name[:64], "code": code, "detail": detail}
        for name, values in query.lists()
        if (refusal := _parameter_fault(name, [str(value) for value in values], allowed))
        for code, detail in [refusal]
    ]
    if errors:
        raise RequestInvalid.many(errors[:MAX_ERRORS])
    return {name: str(values[0]) for name, values in query.lists()}


def single_header(request: Request, name: str) -> str | None:
    """Return a header that may be given once; Django would join two with a comma, which a value may hold as well.

    Raises:
        RequestInvalid: it is given twice.
    """
    wire: list[tuple[bytes, bytes]] = getattr(request, "scope", {}).get("headers", [])
    if sum(given.lower() == name.lower().encode() for given, _ in wire) > 1:
        raise RequestInvalid.parameter(name, "duplicate", "A header is given once.")
    return request.headers.get(name)


def _parameter_fault(name: str, values: list[str], allowed: frozenset[str]) -> tuple[str, str] | None:
    if name not in allowed:
        return "unknown", f"The parameters are {', '.join(sorted(allowed)) or 'none'}."
    if len(values) != 1:
        return "duplicate", "A parameter is given once."
    if not values[0] or len(values[0]) > MAX_PARAMETER_CHARACTERS or not values[0].isprintable():
        return "text", f"A parameter has 1 to {MAX_PARAMETER_CHARACTERS} printable characters."
    return None


def bounded_integer(text: str, name: str, low: int, high: int) -> int:
    """Read a decimal query parameter between `low` and `high`.

    Raises:
        RequestInvalid: it is not one; digits of other scripts are none.
    """
    if text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high:
        return int(text)
    raise RequestInvalid.parameter(name, "number", f"An integer between {low} and {high}.")
