"""What a start over HTTP asks of PostgreSQL, and what a process may remember of it."""

import re
from typing import Any

from django.db import connection
from pytest import MonkeyPatch

from tests.api.callers import Caller, assert_problem, build_caller
from tests.api.workflows import REVIEW
from tests.builders import assert_counters_true, build_policy, rows, start
from tests.races import counted_waits
from workflows import starting


def statements_of(caller: Caller, **more: Any) -> tuple[int, list[str], int]:
    """Start a task; returns the status, the statements by their first function or table, and how often it waited."""
    seen: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        seen.append(re.split(r"[ (]", sql.partition(" from ")[2])[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note), counted_waits() as waits:
        status = caller.start(**more).status_code
    return status, seen, len(waits)


def test_a_start_of_a_known_workflow_is_two_statements_and_two_waits() -> None:
    caller = build_caller()
    assert caller.start().status_code == 201
    assert statements_of(caller) == (201, ["tenants_find_api_key", "workflows_start_task"], 2)
    assert statements_of(caller, key="k") == (201, ["tenants_find_api_key", "workflows_start_task"], 2)
    assert statements_of(caller, key="k") == (200, ["tenants_find_api_key", "workflows_start_task"], 2)
    assert statements_of(caller, key="k", priority=3)[0] == 409
    assert rows("select count(*) from workflows_task") == [(3,)]
    assert_counters_true()


def test_a_definition_is_known_only_once_its_commit_is_known() -> None:
    caller = build_caller(max_outstanding=1)
    start(caller.tenant)
    assert_problem(caller.start(), 429, "quota_exceeded")
    assert rows("select count(*) from workflows_definition") == [(0,)]
    build_policy(caller.tenant, max_outstanding=3, max_leases=20)
    status, seen, _ = statements_of(caller)
    assert (status, "workflows_definition" in seen) == (201, True)
    assert rows("select name from workflows_definition") == [(REVIEW,)]
    assert statements_of(caller)[1] == ["tenants_find_api_key", "workflows_start_task"]


def test_another_process_looks_for_itself(monkeypatch: MonkeyPatch) -> None:
    caller = build_caller()
    assert caller.start().status_code == 201
    # What a second process knows at its start.
    monkeypatch.setattr(starting, "_known", type(starting._known)())
    status, seen, _ = statements_of(caller)
    assert (status, "workflows_definition" in seen) == (201, True)
    assert rows("select count(*) from workflows_definition") == [(1,)]


def test_a_revoked_key_is_refused_at_the_next_start_though_all_else_is_known() -> None:
    caller = build_caller()
    assert caller.start().status_code == 201
    rows("update tenants_apikey set revoked_at = ductor_now() where tenant_id = %s returning id", caller.tenant.id)
    assert_problem(caller.start(), 401, "unauthenticated")
    assert rows("select count(*) from workflows_task") == [(1,)]
