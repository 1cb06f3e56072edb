"""The OpenAPI document: it is what the views do, whole, lawful, and the checked-in copy of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from ductor import openapi, problems
from tenants.api.requests import Body
from tenants.api.views import TenantResource
from tests.api.callers import build_caller, client

CHECKED_IN = Path("docs/openapi.yaml")
METHODS = ("get", "post", "put", "patch", "delete")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation of the document, with its path and method."""
    for path, item in openapi.document()["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield path, method.upper(), operation


def routes(patterns: Any = None, prefix: str = "/") -> Iterator[tuple[str, type[TenantResource]]]:
    """Every API route as the document writes its path, with its view."""
    for pattern in patterns or get_resolver("ductor.urls").url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern) and path.startswith("/api/v1/"):
            yield path.replace("<str:", "{").replace(">", "}"), pattern.callback.cls


def resolved(value: Any) -> Any:
    """The value with its references followed."""
    while isinstance(value, dict) and "$ref" in value:
        _, kind, name = value["$ref"].removeprefix("#/").split("/")
        value = openapi.document()["components"][kind][name]
    return value


def closed(value: Any) -> Any:
    """A copy of a schema in which no object may have a member that is not described, with every reference followed."""
    value = resolved(value)
    if isinstance(value, list):
        return [closed(one) for one in value]
    if not isinstance(value, dict):
        return value
    copy = {name: inner if name in ("example", "enum") else closed(inner) for name, inner in value.items()}
    if isinstance(copy.get("properties"), dict) and copy.get("type") == "object":
        copy.setdefault("additionalProperties", False)
    return copy


def test_the_checked_in_document_is_the_one_that_is_served(tmp_path: Path) -> None:
    fresh = tmp_path / "openapi.yaml"
    call_command("spectacular", "--urlconf", openapi.URLCONF, "--file", str(fresh), "--fail-on-warn")
    remedy = "run: python3 manage.py spectacular --urlconf ductor.urls --file docs/openapi.yaml"
    assert fresh.read_text() == CHECKED_IN.read_text(), remedy
    answer = client().get("/api/schema")
    assert answer["Content-Type"] == "application/json"
    assert json.loads(answer.content) == yaml.safe_load(CHECKED_IN.read_text())


def test_it_is_lawful_openapi_3_1() -> None:
    assert openapi.document()["openapi"] == "3.1.1"
    validate_schema(openapi.document())


def test_it_has_every_route_and_method_and_no_other() -> None:
    declared = {(path, method) for path, view in routes() for method in view.operations}
    assert len(declared) >= 15
    assert {(path, method) for path, method, _ in operations()} == declared
    for path, view in routes():
        handlers = {name.upper() for name in view.http_method_names if hasattr(view, name)} - {"HEAD"}
        assert handlers == set(view.operations), path


def test_every_operation_says_what_it_is_takes_and_answers() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))
    for path, _, operation in operations():
        assert operation["summary"]
        assert operation["description"]
        assert operation["security"] == [{"key": []}]
        named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        for status, answer in operation["responses"].items():
            [(kind, content)] = resolved(answer).get("content", {"": {}}).items()
            expected = {"2": "application/json", "3": ""}.get(status[0], problems.CONTENT_TYPE)
            assert kind == expected
            assert status == "304" or "example" in content or content["examples"]
        assert {"400", "401", "403", "404", "406", "429", "500", "503"} <= set(operation["responses"])


def test_bodies_and_parameters_are_the_objects_that_views_read_by() -> None:
    """The same values, not equal ones: a second copy of a rule would be another object."""
    for _, view in routes():
        for operation in view.operations.values():
            if operation.body is not None:
                assert isinstance(operation.body, Body)
                assert openapi.COMPONENTS[operation.body.name] is operation.body.schema
    for path, view in routes():
        for method, operation in view.operations.items():
            documented = openapi.document()["paths"][path][method.lower()].get("parameters", [])
            assert [(one["name"], one["schema"]) for one in documented] == [
                (one.name, json.loads(json.dumps(one.schema))) for one in operation.parameters
            ]


def test_every_example_keeps_its_schema() -> None:
    checked = 0
    for _, _, operation in operations():
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for place in [*bodies, *(resolved(answer) for answer in operation["responses"].values())]:
            for content in place.get("content", {}).values():
                examples = [one["value"] for one in content.get("examples", {}).values()]
                examples += [content["example"]] if "example" in content else []
                schema = content["schema"] if "examples" in content else closed(content["schema"])
                validator = jsonschema_rs.Draft202012Validator(
                    {**schema, "components": openapi.document()["components"]}, validate_formats=True, offline=True
                )
                for example in examples:
                    validator.validate(example)
                    checked += 1
        for parameter in operation.get("parameters", ()):
            if "example" in parameter:
                jsonschema_rs.validate(parameter["schema"], parameter["example"])
    assert checked > 100


def test_every_code_has_one_status_and_stands_in_the_catalogue() -> None:
    known = {problem.code: problem.status for problem in problems.explained().values()}
    for _, _, operation in operations():
        for status, answer in operation["responses"].items():
            for content in resolved(answer).get("content", {}).values():
                for code in content.get("examples", {}):
                    assert known[code] == int(status)


@pytest.mark.parametrize(("path", "headers"), [("/api/docs/", {}), ("/problems/not-found", {"Accept": "text/html"})])
def test_public_pages_run_nothing_of_others_and_nothing_inline(path: str, headers: dict[str, str]) -> None:
    answer = client().get(path, headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/html")
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<style" not in page
    assert " style=" not in page
    assert " on" not in page.partition("<body")[2].replace(" one", "").replace(" on the", "").replace(" on our", "")
    assert "<script>" not in page
    assert "//" not in page.replace("<!doctype html>", "")


def test_the_docs_page_s_files_are_served_by_the_surface_itself() -> None:
    surface = client()
    page = surface.get("/api/docs/").content.decode()
    files = [part.split('"')[0] for part in page.replace('href="', 'src="').split('src="')[1:]]
    static = [file for file in files if file.startswith("/static/")]
    assert len(static) == 4
    for file in static:
        answer = surface.get(file)
        assert answer.status_code == 200, file
        assert b"".join(answer.streaming_content)
        answer.close()
    assert "/api/schema" in page


def test_the_document_names_no_tenant_and_is_the_same_for_all() -> None:
    caller = build_caller()
    anonymous, known = (client().get("/api/schema"), caller.get("/api/schema"))
    assert anonymous.content == known.content
    assert caller.tenant.slug.encode() not in known.content
