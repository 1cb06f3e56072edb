"""How commands speak: help, one line an error, one document, plain text into a pipe."""

import json

import pytest

from ductor.commands.screen import exit_code
from tenants.errors import ScopeMissing, Unavailable
from tests.builders import build_tenant, start
from tests.commands.running import ductor, ductor_process
from workflows.errors import InputInvalid, KeyConflict, Overloaded, QuotaExceeded, TaskNotFound

GROUPS = {
    (): {"tenants", "keys", "tasks", "queues", "doctor", "init-db"},
    ("tenants",): {"create", "list", "policy", "freeze", "unfreeze"},
    ("keys",): {"create", "list", "revoke"},
    ("tasks",): {"start", "list", "show", "cancel"},
    ("queues",): {"create", "list"},
}


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_help_is_shown_where_nothing_is_asked(group: tuple[str, ...]) -> None:
    bare, asked = ductor(*group), ductor(*group, "--help")
    assert (bare.code, asked.code) == (2, 0)
    for name in GROUPS[group]:
        assert name in bare.out
        assert name in asked.out


@pytest.mark.parametrize(
    "arguments",
    [("surprise",), ("tenants", "surprise"), ("tasks", "list"), ("tasks", "list", "--tenant"), ("doctor", "x")],
)
def test_wrong_usage_is_one_line_and_2(arguments: tuple[str, ...]) -> None:
    ran = ductor(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: usage: ")
    assert "--help" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("surprise",),
        ("tasks", "list"),
        ("tasks", "list", "--tenant", "acme", "--limit", "0"),
        ("tasks", "list", "--tenant", "acme", "--surprise"),
        ("tenants", "create", "acme"),
        ("keys", "create", "--tenant", "acme", "--scope", "surprise"),
    ],
)
def test_wrong_usage_is_a_document_where_one_is_asked_for(arguments: tuple[str, ...]) -> None:
    ran = ductor(*arguments, "--json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert json.loads(ran.err)["error"]["code"] == "usage"
    assert "--help" in json.loads(ran.err)["error"]["detail"]
    assert ductor(*arguments).err.startswith("error: usage: ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TaskNotFound(), 4),
        (QuotaExceeded(), 3),
        (Overloaded(), 3),
        (KeyConflict(), 3),
        (InputInvalid(), 2),
        (Unavailable(), 1),
        (ScopeMissing(), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error: Exception, code: int) -> None:
    assert exit_code(error) == code  # type: ignore[arg-type]


def test_a_process_of_its_own_writes_plain_text_into_a_pipe() -> None:
    tenant = build_tenant("acme")
    [task_id] = start(tenant, key="[bold]order[/bold]" + "k" * 100)
    ran = ductor_process("tasks", "list", "--tenant", "acme", FORCE_COLOR="", NO_COLOR="1", COLUMNS="20")
    assert (ran.code, ran.err) == (0, "")
    [line] = [line for line in ran.out.splitlines() if str(task_id) in line]
    assert "[bold]order[/bold]" + "k" * 100 in line
    assert "\x1b" not in ran.out


def test_json_is_one_document_whatever_the_tenant_wrote() -> None:
    tenant = build_tenant("acme")
    start(tenant, key='a"b\\c', input={"text": "line\nbreak \u2028 é"})
    ran = ductor("tasks", "list", "--tenant", "acme", "--json")
    assert (ran.code, ran.err) == (0, "")
    [task] = ran.document["tasks"]
    assert task["key"] == 'a"b\\c'
    shown = ductor("tasks", "show", task["id"], "--tenant", "acme", "--json").document
    assert shown["input"] == {"text": "line\nbreak \u2028 é"}


def test_an_error_with_json_is_a_document_on_stderr() -> None:
    ran = ductor("tenants", "policy", "nobody", "--json")
    assert (ran.code, ran.out) == (4, "")
    assert json.loads(ran.err)["error"]["code"] == "not_found"
