"""Bodies of requests, each read by the JSON Schema that the OpenAPI document shows."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
from rest_framework.request import Request

from tenants.api.errors import RequestInvalid
from tenants.api.jsontext import MAX_ERRORS, pointer_of

Schema = dict[str, Any]

NAME: Schema = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.:-]{0,127}$"}
# A reason is stored and shown to people: control characters and overrides of direction would rewrite their screen.
REASON: Schema = {
    "type": "string",
    "maxLength": 1000,
    "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]*$",
}

_DETAILS = {
    "type": "This has another JSON type than it should.",
    "pattern": "This holds a character it may not, or too many or too few.",
    "minimum": "This is too small.",
    "maximum": "This is too large.",
    "maxLength": "This is too long.",
    "minItems": "There are too few.",
    "maxItems": "There are too many.",
    "uniqueItems": "One stands here twice.",
    "minProperties": "There is nothing in it.",
    "enum": "This is none of the values it may have.",
    "format": "This is no RFC 3339 time with an offset.",
}


class Body:
    """The body of one operation: the name and schema that the document shows, and the reader that keeps to it."""

    def __init__(self, name: str, schema: Schema, example: Any) -> None:
        self.name = name
        self.schema = schema
        self.example = example
        self._validator = jsonschema_rs.Draft202012Validator(
            schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )

    def read(self, request: Request) -> Mapping[str, Any]:
        """Return the request's body; an empty object where there is none.

        Raises:
            RequestInvalid: a member is unknown, missing, of another type or out of bounds; up to 20 places are named.
        """
        # Without a body REST framework has an empty form here, whatever the content type.
        body: Mapping[str, Any] = request.data if isinstance(request.data, dict) else {}
        self.check(body)
        return body

    def check(self, body: Mapping[str, Any]) -> None:
        """Raise RequestInvalid for a body that does not keep the schema."""
        if self._validator.is_valid(body):
            return
        errors = [one for error in self._validator.iter_errors(body) for one in self._named(error)]
        raise RequestInvalid.many(errors[:MAX_ERRORS])

    def _named(self, error: Any) -> Iterator[dict[str, str]]:
        place = [str(key) for key in error.instance_path]
        keyword = error.kind.name
        if keyword == "required":
            yield _error([*place, error.kind.property], keyword, "This is needed.")
        elif keyword == "additionalProperties":
            known = ", ".join(self._members_at(error.instance_path))
            for name in error.kind.unexpected[:MAX_ERRORS]:
                yield _error([*place, name], "unknown", f"The members are {known}.")
        else:
            yield _error(place, keyword, _DETAILS.get(keyword, "This is not lawful."))

    def _members_at(self, path: list[Any]) -> list[str]:
        schema = self.schema
        for key in path:
            schema = schema["items"] if isinstance(key, int) else schema["properties"][key]
        return list(schema["properties"])


def _error(place: list[str], code: str, detail: str) -> dict[str, str]:
    return {"pointer": pointer_of(place), "code": code, "detail": detail}
