"""docs/api.md: its requests are sent as they stand there, its answers keep the schemas, its tables are the code's."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from ductor import Workflow, openapi
from tenants.permissions import SCOPES, TABLE
from tests.api.callers import Caller, build_caller, client
from tests.api.places import calls
from tests.api.test_openapi import closed
from tests.architecture.test_docs import blocks, codes, rows_of
from workflows import registry

PAGE = Path("docs/api.md").read_text()
TASK = "01a22d2d-43e2-7788-aa1a-eaf9913042db"
KEY = "01a22d2d-4375-73bf-923d-160e89a39066"
# By a member that no other answer has: the schema of a document on the page.
SCHEMAS = {
    "created": "StartedTasks",
    "input_schema": "Workflow",
    "queues": "Usage",
    "own_max_leases": "Policy",
    "permissions": "Me",
    "target": "Act",
    "origin": "Task",
}


def requests() -> Iterator[list[str]]:
    """The words of every curl command of the page."""
    for block in blocks(PAGE, "console"):
        for command in block.replace("\\\n", " ").splitlines():
            words = shlex.split(command)
            assert words[0] == "curl", command
            yield words


def send(caller: Caller, words: list[str]) -> Any:
    method, headers, body, address = "GET", {}, "", ""
    left = iter(words[1:])
    for word in left:
        if word == "-X":
            method = next(left)
        elif word == "-H":
            name, _, value = next(left).partition(": ")
            headers[name] = value.replace("$KEY", caller.key)
        elif word == "-d":
            body = next(left)
        else:
            address = word
    path = address.removeprefix("http://127.0.0.1:8000")
    assert path != address
    path = path.replace("wait=20", "wait=0")
    return client(headers=headers).generic(method, path, body, content_type=headers.get("Content-Type", ""))


def test_every_request_of_the_page_is_answered_as_it_says() -> None:
    asked = []
    with registry.isolated():
        review = Workflow("order-review", version=1, input={"type": "object", "required": ["order"]})
        review.step(name="quote")(lambda ctx: None)
        caller = build_caller(*SCOPES)
        made = caller.post("/api/v1/keys", {"name": "old", "scopes": ["tasks:read"]}).json()["id"]
        task = ""
        for words in requests():
            answer = send(caller, [word.replace(TASK, task).replace(KEY, made) for word in words])
            assert answer.status_code in (200, 201), (words, answer.content)
            if answer.status_code == 201 and not task:
                task = answer.json()["id"]
            asked.append(words)
    assert len(asked) == 15


def test_every_answer_of_the_page_keeps_its_schema() -> None:
    checked = []
    for block in blocks(PAGE, "json"):
        document = json.loads(block)
        names = [name for member, name in SCHEMAS.items() if f'"{member}":' in block and "code" not in document]
        if names:
            schema = closed({"$ref": f"#/components/schemas/{names[0]}"})
            jsonschema_rs.validate(schema, document)
            checked.append(names[0])
    assert sorted(checked) == sorted(SCHEMAS.values())


def test_the_table_of_operations_is_the_code_s_own() -> None:
    documented = {codes(row[0])[0]: (row[1], sorted(codes(row[2]))) for row in rows_of("docs/api.md", "## Problems")}
    declared = {}
    for call in calls().values():
        path = re.sub(r"<str:(\w+)>", r"{\1}", call.path)
        permission = call.operation.permission
        scope = "any key" if permission is None else f"`{TABLE[permission][1]}`"
        declared[f"{call.method} {path}"] = (scope, sorted(call.operation.problems))
    assert documented == declared


@pytest.mark.parametrize("codes_of_all", [openapi.COMMON, openapi.WITH_BODY])
def test_what_every_operation_may_answer_is_said_once(codes_of_all: tuple[str, ...]) -> None:
    said = PAGE.split("Every operation may answer")[1].split("\n\n")[0]
    assert set(codes_of_all) <= set(codes(said))
