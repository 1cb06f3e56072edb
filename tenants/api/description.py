"""What an operation of the API takes and answers, said once.

A view reads its requests by these values, and the OpenAPI document is written from the same ones, so that neither can
say what the other does not do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from tenants.api.cursors import read_cursor
from tenants.api.errors import RequestInvalid
from tenants.api.parsing import bounded_integer, single_parameters
from tenants.api.requests import Body, Schema
from tenants.permissions import Permission

COMPONENTS: dict[str, Schema] = {}
DEFAULT_PAGE = 50
MAX_PAGE = 200


def component(name: str, schema: Schema) -> Schema:
    """File a schema under a name of the document, and return the reference to it."""
    COMPONENTS[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: Mapping[str, Schema], **more: Any) -> Schema:
    """Return the schema of an answer's object, all of whose members are always there."""
    return {"type": "object", "required": list(properties), "properties": dict(properties), **more}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter beside the body; its schema is what a query parameter is read by."""

    name: str
    description: str
    schema: Schema
    example: Any = None
    place: Literal["query", "path", "header"] = "query"
    required: bool = False

    def read(self, text: str) -> Any:
        """Return the value that a query parameter's text stands for.

        Raises:
            RequestInvalid: the text does not keep the schema.
        """
        schema = self.schema
        if schema["type"] == "integer":
            return bounded_integer(text, self.name, schema["minimum"], schema["maximum"])
        if "enum" in schema and text not in schema["enum"]:
            raise RequestInvalid.parameter(self.name, "enum", f"One of {', '.join(schema['enum'])}.")
        if len(text) > schema.get("maxLength", len(text)):
            raise RequestInvalid.parameter(self.name, "maxLength", f"At most {schema['maxLength']} characters.")
        return _moment(self.name, text) if schema.get("format") == "date-time" else text


@dataclass(frozen=True, slots=True)
class Answer:
    """One way in which an operation succeeds; `headers` names those beyond what every answer has."""

    description: str
    schema: Schema | None = None
    example: Any = None
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one resource. `problems` names the codes beyond those that every operation may answer."""

    id: str
    tag: str
    summary: str
    description: str
    permission: Permission | None
    answers: Mapping[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    body_required: bool = True
    problems: tuple[str, ...] = ()

    def read_query(self, query: QueryDict) -> dict[str, Any]:
        """Return the given query parameters as values.

        Raises:
            RequestInvalid: one is unknown, given twice or out of its bounds.
        """
        known = {one.name: one for one in self.parameters if one.place == "query"}
        given = single_parameters(query, frozenset(known))
        return {name: known[name].read(text) for name, text in given.items()}


LIMIT = Parameter(
    "limit",
    "How many a page holds at most.",
    {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
)
CURSOR = Parameter(
    "cursor",
    "Where to go on: `next_cursor` of the page before. Opaque, signed for this tenant and this list.",
    {"type": "string", "maxLength": 256},
)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page of a list is wanted: what comes after the place `after`, at most `limit` rows."""

    after: str | None
    limit: int

    @property
    def before(self) -> UUID | None:
        """The place, in a list whose places are ids."""
        return None if self.after is None else UUID(hex=self.after)


def read_page(given: Mapping[str, Any], *, tenant_id: UUID, listing: str) -> PageRequest:
    """Return the wanted page of `listing`.

    Raises:
        RequestInvalid: the cursor was not written for this tenant and list.
    """
    cursor = given.get("cursor")
    place = None if cursor is None else read_cursor(cursor, tenant_id=tenant_id, listing=listing)
    return PageRequest(place, given.get("limit", DEFAULT_PAGE))


def page_schema(name: str, item: Schema) -> Schema:
    """Return the reference to the schema of a page of `item`."""
    cursor = {"type": ["string", "null"], "description": "The cursor of the page after this one."}
    rows: Schema = {"type": "array", "items": item}
    return component(name, record({"data": rows, "next_cursor": cursor, "has_more": {"type": "boolean"}}))


def _moment(name: str, text: str) -> datetime:
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise RequestInvalid.parameter(name, "format", "An RFC 3339 time with an offset.")
    return at
