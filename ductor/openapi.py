"""The OpenAPI document, written from what the views declare of themselves (`tenants.api.description`).

Every rule in it is the object that the views read requests by: bodies, parameters and permissions are not said twice.
`docs/openapi.yaml` is the checked-in copy; a test compares it with what stands here.
"""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from ductor import problems
from ductor.problems import Problem
from tenants.api.description import COMPONENTS, Answer, Operation, Parameter
from tenants.api.requests import Schema
from tenants.permissions import TABLE

URLCONF = "ductor.urls"
JSON = "application/json"
# What any operation may answer, whatever it does; those with a body may answer two more.
COMMON = (
    "invalid_request",
    "unauthenticated",
    "forbidden",
    "not_found",
    "not_acceptable",
    "rate_limited",
    "fault",
    "unavailable",
)
WITH_BODY = ("too_large", "unsupported_media_type")
_WITH_RETRY_AFTER = frozenset({429, 503})

_HEADERS: dict[str, tuple[str, Schema]] = {
    "X-Request-Id": ("The request's id: the caller's own, or one made here.", {"type": "string"}),
    "RateLimit-Policy": ("How many requests (q) within how many seconds (w).", {"type": "string"}),
    "RateLimit": ("How many requests are left (r), and for how many seconds (t).", {"type": "string"}),
    "Retry-After": ("Seconds until the request may succeed.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("How to present a credential.", {"type": "string"}),
    "ETag": ("The version, in quotes.", {"type": "string"}),
    "Location": ("The task's address.", {"type": "string"}),
    "Idempotency-Replayed": ("The key had started this task before.", {"type": "string", "enum": ["true"]}),
}
_TEXT: Schema = {"type": "string"}
_PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457. A problem's own fields stand beside the common ones.",
    "required": ["type", "title", "status", "code", "detail", "request_id"],
    "properties": {
        "type": {**_TEXT, "description": "Leads to the page that explains this problem."},
        "title": _TEXT,
        "status": {"type": "integer"},
        "code": {**_TEXT, "description": "What programs tell problems by."},
        "detail": _TEXT,
        "request_id": _TEXT,
        "retry_after": {"type": "integer", "minimum": 1, "description": "As the header Retry-After."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["code", "detail"],
                "properties": {
                    "pointer": {**_TEXT, "description": "JSON pointer of a place in the body."},
                    "parameter": {**_TEXT, "description": "Name of a parameter or header."},
                    "code": _TEXT,
                    "detail": _TEXT,
                },
            },
        },
    },
}
_REQUEST_ID = "01a22d2d-4419-767d-b74b-bb37896ad131"


class OperationSchema(AutoSchema):
    """Writes an operation from the value that its view declares for the method."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any
    ) -> dict[str, Any] | None:
        operation: Operation = self.view.operations[method]  # type: ignore[attr-defined]
        document: dict[str, Any] = {
            "operationId": operation.id,
            "tags": [operation.tag],
            "summary": operation.summary,
            "description": _description(operation),
        }
        if operation.parameters:
            document["parameters"] = [_parameter(one) for one in operation.parameters]
        if operation.body is not None:
            schema = {"$ref": f"#/components/schemas/{operation.body.name}"}
            content = {JSON: {"schema": schema, "example": operation.body.example}}
            document["requestBody"] = {"required": operation.body_required, "content": content}
            COMPONENTS.setdefault(operation.body.name, operation.body.schema)
        answers = {str(status): _answer(answer) for status, answer in operation.answers.items()}
        document["responses"] = dict(sorted((answers | dict(_refusals(operation))).items()))
        document["security"] = [{"key": []}]
        return document


def add_components(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's hook after the operations are written: add what they refer to, and nothing else."""
    by_name = {_name(problem): problem for problem in problems.explained().values()}
    responses = {name: _refusal([by_name[name]]) for name in _references(result["paths"], "responses")}
    known = {**COMPONENTS, "Problem": _PROBLEM}
    schemas: dict[str, Schema] = {}
    todo = ["Problem", *_references(result["paths"], "schemas")]
    while todo:
        name = todo.pop()
        if name not in schemas:
            schemas[name] = known[name]
            todo += _references(known[name], "schemas")
    result["components"] = {
        "headers": {name: {"description": text, "schema": schema} for name, (text, schema) in _HEADERS.items()},
        "responses": dict(sorted(responses.items())),
        "schemas": dict(sorted(schemas.items())),
        "securitySchemes": {
            "key": {"type": "http", "scheme": "bearer", "description": "A tenant's API key. It names the tenant."}
        },
    }
    return result


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    found: dict[str, Any] = SchemaGenerator(urlconf=URLCONF).get_schema(request=None, public=True)
    return found


@lru_cache(maxsize=1)
def _as_json() -> bytes:
    return json.dumps(document()).encode()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """Serve the document; made once a process."""
    headers = {"Cache-Control": "public, max-age=300"}
    return HttpResponse(_as_json(), content_type=JSON, headers=headers)


def codes_of(operation: Operation) -> list[str]:
    """Return the codes of every refusal that an operation may answer."""
    body = WITH_BODY if operation.body is not None else ()
    return sorted({*COMMON, *body, *operation.problems})


def _description(operation: Operation) -> str:
    scope = operation.permission and TABLE[operation.permission][1]
    return f"{operation.description} Scope: {f'`{scope}`' if scope else 'none'}."


def _parameter(parameter: Parameter) -> dict[str, Any]:
    document = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": parameter.schema,
    }
    return document if parameter.example is None else {**document, "example": parameter.example}


def _answer(answer: Answer) -> dict[str, Any]:
    names = (*answer.headers, "X-Request-Id", "RateLimit-Policy", "RateLimit")
    document: dict[str, Any] = {"description": answer.description, "headers": _headers(names)}
    if answer.schema is not None:
        document["content"] = {JSON: {"schema": answer.schema, "example": answer.example}}
    return document


def _refusals(operation: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    by_code = {problem.code: problem for problem in problems.explained().values()}
    by_status: dict[int, list[Problem]] = {}
    for code in codes_of(operation):
        by_status.setdefault(by_code[code].status, []).append(by_code[code])
    for status, found in by_status.items():
        if len(found) == 1:
            yield str(status), {"$ref": f"#/components/responses/{_name(found[0])}"}
        else:
            yield str(status), _refusal(found)


def _refusal(found: list[Problem]) -> dict[str, Any]:
    """Return the answer of one status, which these problems have in common."""
    [status] = {problem.status for problem in found}
    names = ["X-Request-Id"]
    names += ["Retry-After"] if status in _WITH_RETRY_AFTER else []
    names += ["WWW-Authenticate"] if status == 401 else ["RateLimit-Policy", "RateLimit"]
    codes: Schema = {"type": "object", "properties": {"code": {"enum": [problem.code for problem in found]}}}
    schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}, codes]}
    examples = {problem.code: {"value": _example(problem)} for problem in found}
    return {
        "description": " ".join(f"`{problem.code}`: {problem.detail}" for problem in found),
        "headers": _headers(names),
        "content": {problems.CONTENT_TYPE: {"schema": schema, "examples": examples}},
    }


def _name(problem: Problem) -> str:
    return problem.code.title().replace("_", "")


def _example(problem: Problem) -> dict[str, Any]:
    common = {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "request_id": _REQUEST_ID,
    }
    return common | ({"retry_after": 2} if problem.status in _WITH_RETRY_AFTER else {})


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _references(value: Any, kind: str) -> Iterator[str]:
    """Yield the names of all components of a kind that a piece of the document refers to."""
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(f"#/components/{kind}/"):
            yield reference.rpartition("/")[2]
        for inner in value.values():
            yield from _references(inner, kind)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner, kind)
