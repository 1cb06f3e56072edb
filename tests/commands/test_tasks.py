"""`ductor tasks`: start, list, show, cancel from the command line."""

import json
from pathlib import Path

import pytest

from tenants.identity import new_id
from tests.api.callers import ORDER, written
from tests.api.workflows import REVIEW
from tests.builders import build_tenant, claim, complete, rows
from tests.commands.running import Ran, ductor

INPUT = json.dumps(ORDER)


def _start(*more: str, value: str = INPUT, stdin: bytes = b"") -> Ran:
    return ductor("tasks", "start", REVIEW, "--tenant", "acme", "--input", value, *more, stdin=stdin)


def test_start_list_show_and_cancel() -> None:
    build_tenant("acme")
    task = _start("--key", "k-1", "--json").document
    assert (task["state"], task["key"], task["created"]) == ("queued", "k-1", True)
    listed = ductor("tasks", "list", "--tenant", "acme", "--json").document["tasks"]
    assert [found["id"] for found in listed] == [task["id"]]
    shown = ductor("tasks", "show", task["id"], "--tenant", "acme", "--json").document
    assert (shown["input"], shown["steps"], shown["origin"]["source"]) == (ORDER, [], "command")
    assert task["id"] in ductor("tasks", "list", "--tenant", "acme").out
    cancelled = ductor("tasks", "cancel", task["id"], "--tenant", "acme", "--reason", "twice", "--json").document
    assert (cancelled["state"], cancelled["reason"]) == ("cancelled", "twice")
    again = ductor("tasks", "cancel", task["id"], "--tenant", "acme")
    assert (again.code, again.err.split(":")[1].strip()) == (3, "already_terminal")


def test_filters_of_the_list() -> None:
    build_tenant("acme")
    first = _start("--key", "a", "--json").document["id"]
    _start("--key", "b")
    complete(claim(1))
    done = ductor("tasks", "list", "--tenant", "acme", "--state", "completed", "--json").document["tasks"]
    assert [task["id"] for task in done] == [first]
    assert len(ductor("tasks", "list", "--tenant", "acme", "--key", "b", "--json").document["tasks"]) == 1
    assert len(ductor("tasks", "list", "--tenant", "acme", "--limit", "1", "--json").document["tasks"]) == 1
    assert ductor("tasks", "list", "--tenant", "acme", "--state", "done").code == 2
    assert ductor("tasks", "list", "--tenant", "acme", "--limit", "0").code == 2


def test_input_from_a_file_and_from_stdin(tmp_path: Path) -> None:
    build_tenant("acme")
    file = tmp_path / "order.json"
    file.write_text('{"order": 2}')
    assert _start(value=f"@{file}").code == 0
    assert _start(value="-", stdin=b'{"order": 3}').code == 0
    orders = rows("select (input ->> 'order')::int from workflows_task order by 1")
    assert orders == [(2,), (3,)]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "{",
        "NaN",
        '{"order": 1, "order": 2}',
        r'{"order": 1, "note": "\u0000"}',
        "@/nowhere/at/all.json",
        "[" * 5000,
    ],
)
def test_input_that_may_not_pass_is_wrong_usage(value: str) -> None:
    build_tenant("acme")
    before = written()
    ran = _start(value=value)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert written() == before


def test_input_against_the_schema_names_the_place() -> None:
    build_tenant("acme")
    ran = _start(value='{"order": "one"}')
    assert ran.code == 2
    assert "/order" in ran.err


def test_a_key_starts_one_task_and_refuses_other_content() -> None:
    build_tenant("acme")
    first, again = _start("--key", "k", "--json").document, _start("--key", "k", "--json").document
    assert (first["id"], again["created"]) == (again["id"], False)
    other = _start("--key", "k", "--json", value='{"order": 9}')
    assert (other.code, other.out, json.loads(other.err)["error"]["code"]) == (3, "", "key_conflict")


def test_a_delayed_start_waits() -> None:
    build_tenant("acme")
    assert _start("--delay", "2h", "--json").document["state"] == "waiting"
    assert _start("--delay", "some time").code == 2
    assert _start("--delay", "9999d").code == 2


def test_a_refusal_of_the_quota_ends_with_3_and_says_what_to_do() -> None:
    build_tenant("acme", max_outstanding=1)
    _start()
    ran = _start()
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: quota_exceeded: ")
    assert "operator" in ran.err
    error = json.loads(_start("--json").err)["error"]
    assert (error["limit"], error["used"], error["maximum"]) == ("max_outstanding", 1, 1)


def test_what_is_not_there() -> None:
    build_tenant("acme")
    assert ductor("tasks", "list", "--tenant", "nobody").code == 4
    assert ductor("tasks", "start", "nobody-wrote-it", "--tenant", "acme").code == 2
    assert _start("--version", "77").code == 2
    assert _start("--queue", "nobody-made-it").code == 2


@pytest.mark.parametrize("act", ["show", "cancel"])
def test_another_tenant_s_id_and_a_made_up_one_are_one_answer(act: str) -> None:
    build_tenant("acme")
    build_tenant("globex")
    theirs = ductor("tasks", "start", REVIEW, "--tenant", "globex", "--input", INPUT, "--json").document["id"]
    answers = [ductor("tasks", act, task_id, "--tenant", "acme") for task_id in (theirs, str(new_id()))]
    assert answers[0] == answers[1]
    assert (answers[0].code, answers[0].out) == (4, "")
    assert ductor("tasks", act, "x", "--tenant", "acme").code == 4
    assert rows("select state from workflows_task") == [("queued",)]


def test_show_waits_for_the_end() -> None:
    build_tenant("acme")
    task_id = _start("--json").document["id"]
    assert ductor("tasks", "show", task_id, "--tenant", "acme", "--wait", "1s", "--json").document["state"] == "queued"
    complete(claim(), {"sum": 1})
    shown = ductor("tasks", "show", task_id, "--tenant", "acme", "--wait", "20s", "--json").document
    assert (shown["state"], shown["output"]) == ("completed", {"sum": 1})
