"""Requests made from the OpenAPI document by schemathesis, as two tenants with work of their own.

Whatever is generated: no 5xx, every answer as documented, nothing of the other tenant in it and nothing of the other
tenant moved.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import hypothesis
import jsonschema_rs
import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase
from schemathesis import GenerationMode, checks

from ductor import openapi
from tenants.permissions import SCOPES
from tests.api.callers import Caller, build_caller
from tests.api.test_injection import digests, foreign
from tests.api.test_openapi import closed, resolved
from tests.api.workflows import REVIEW

EXAMPLES = 400 if os.environ.get("DUCTOR_TEST_FULL") == "1" else 6
OPERATIONS = [operation["operationId"] for path in openapi.document()["paths"].values() for operation in path.values()]
checks.load_all_checks()
CHECKS = [
    checks.CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    )
]


class Tenants:
    """Two tenants with tasks, keys and a policy, and what each can be told by."""

    def __init__(self) -> None:
        self.callers = [build_caller(*SCOPES, max_outstanding=100_000) for _ in range(2)]
        self.ids = [self._work(caller) for caller in self.callers]
        self.rows = digests()

    def _work(self, caller: Caller) -> dict[str, list[str]]:
        tasks = [caller.start(key=f"key-{number}").json()["id"] for number in range(3)]
        made = caller.post("/api/v1/keys", {"name": "spare", "scopes": ["tasks:read"]}).json()
        return {"task_id": tasks, "key_id": [made["id"]]}

    def marks(self, number: int) -> list[str]:
        """What an answer to the other tenant must not hold."""
        caller = self.callers[number]
        return [caller.tenant.slug, str(caller.tenant.id), *(one for ids in self.ids[number].values() for one in ids)]


@pytest.fixture
def tenants() -> Iterator[Tenants]:
    yield Tenants()


def aim(case: Any, tenants: Tenants, chance: random.Random) -> None:
    """Let most generated requests reach something: a task or key that is there, of one tenant or the other."""
    for name in case.path_parameters or {}:
        known = [one for ids in tenants.ids for one in ids.get(name, [])] or [REVIEW]
        if chance.random() < 0.7:
            case.path_parameters[name] = chance.choice(known)
    if isinstance(case.query, dict) and case.query.get("wait") in range(1, 21):
        case.query["wait"] = 1
    body = case.body
    for start in body.get("items", [body]) if isinstance(body, dict) else []:
        if isinstance(start, dict) and "workflow" in start and chance.random() < 0.7:
            start |= {"workflow": REVIEW, "input": {"order": chance.randrange(10)}}
            start.pop("version", None)
            start.pop("queue", None)
    if case.method == "PATCH" and chance.random() < 0.7:
        case.headers["If-Match"] = "*"


def assert_nothing_undocumented(operation: dict[str, Any], response: Any) -> None:
    """Check a success with every object closed: a member that no schema names would be a leak waiting to happen."""
    content = resolved(operation["responses"][str(response.status_code)]).get("content", {})
    if response.status_code < 300 and content:
        jsonschema_rs.validate(closed(content["application/json"]["schema"]), response.json())


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_generated_requests_of_two_tenants(operation: str, mode: GenerationMode, tenants: Tenants) -> None:
    schema = schemathesis.openapi.from_wsgi("/api/schema", get_wsgi_application())
    [found] = [one.ok() for one in schema.get_all_operations() if one.ok().definition.raw["operationId"] == operation]
    chance, statuses = random.Random(operation), set()

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=found.as_strategy(generation_mode=mode))
    def probe(case: Any) -> None:
        aim(case, tenants, chance)
        for number, caller in enumerate(tenants.callers):
            response = case.call(headers={"Authorization": f"Bearer {caller.key}"})
            case.validate_response(response, checks=CHECKS)
            statuses.add(response.status_code)
            assert_nothing_undocumented(found.definition.raw, response)
            sent = str([case.path_parameters, case.query, case.body, case.headers])
            shown = response.content.decode()
            assert [mark for mark in tenants.marks(1 - number) if mark in shown and mark not in sent] == []
            before, tenants.rows = tenants.rows, digests()
            assert foreign(tenants.rows, caller) == foreign(before, caller)

    probe()
    assert statuses & ({200, 201} if mode is GenerationMode.POSITIVE else {400, 401}), statuses
