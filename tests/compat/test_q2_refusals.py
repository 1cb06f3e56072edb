"""What django-q2's interface refuses, with nothing moved: other functions, no JSON, no tenant, forged rows."""

import uuid
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django_q.models import Task
from django_q.tasks import async_task, fetch, result

from ductor.broker import AsyncTaskRefused
from ductor.contrib.q2 import functions
from tenants.errors import ScopeMissing
from tenants.scope import attach
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows, start
from tests.compat.conftest import SHOP, lines
from tests.compat.shop import tasks
from tests.workflows.conftest import TestWorker
from workflows.errors import InputInvalid, UnknownWorkflow
from workflows.starting import Start, start_tasks

TASKS = "select workflow, queue, state from workflows_task order by id"


def nothing_stands() -> None:
    assert rows("select count(*) from workflows_task") == [(0,)]
    assert rows("select count(*) from django_q_task") == [(0,)]
    assert_counters_true()


@pytest.mark.parametrize(
    "function",
    [
        "os.system",
        "os.getcwd",
        f"{SHOP}.basename",
        f"{SHOP}.async_task",
        f"{SHOP}._private",
        f"{SHOP}.coroutine",
        f"{SHOP}.missing",
        "",
        "x" * 500,
        len,
        partial(tasks.add, 1),
        Task,
    ],
)
def test_what_is_not_among_the_functions_is_refused(shop: TestWorker, function: Any) -> None:
    with attach(build_tenant().id):
        with pytest.raises(UnknownWorkflow):
            async_task(function, 1)
        with pytest.raises(UnknownWorkflow):
            async_task(f"{SHOP}.add", 1, hook=function)
        with pytest.raises(UnknownWorkflow):
            async_task(f"{SHOP}.add", 1, chain=[(function, (1,))], group="g")
    nothing_stands()


@pytest.mark.parametrize(
    "argument", [object(), {1, 2}, b"x", float("nan"), 2**70, {1: 2}, "\0", uuid.uuid4(), "x" * 300_000]
)
def test_arguments_that_are_no_json_are_refused_with_their_place(shop: TestWorker, argument: Any) -> None:
    with attach(build_tenant().id):
        with pytest.raises(InputInvalid) as refused:
            async_task(f"{SHOP}.add", 1, argument)
        with pytest.raises(InputInvalid):
            async_task(f"{SHOP}.add", 1, b=argument)
        with pytest.raises(InputInvalid):
            async_task(f"{SHOP}.add", 1, chain=[(f"{SHOP}.add", (argument,))], group="g")
    assert refused.value.fields["errors"][0]["pointer"] in ("/args/1", "")
    nothing_stands()


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": 301},
        {"timeout": True},
        {"group": "g" * 101},
        {"task_name": "n" * 101},
        {"group": "\0"},
        {"cluster": "c" * 101},
        {"iter_count": 0, "group": "g" * 32},
        {"iter_count": 2},
    ],
)
def test_options_out_of_their_bounds_are_refused(shop: TestWorker, options: dict[str, Any]) -> None:
    with attach(build_tenant().id), pytest.raises(InputInvalid):
        async_task(f"{SHOP}.add", 1, q_options=options)
    nothing_stands()


def test_without_a_tenant_nothing_is_started_and_nothing_is_found(shop: TestWorker) -> None:
    with pytest.raises(ScopeMissing):
        async_task(f"{SHOP}.add", 1)
    with pytest.raises(ScopeMissing):
        result("0" * 32)
    with pytest.raises(ScopeMissing):
        list(Task.objects.all())
    nothing_stands()


@pytest.mark.parametrize("options", [{"sync": True}, {"q_options": {"sync": True}}])
def test_running_in_place_is_refused(shop: TestWorker, options: dict[str, Any]) -> None:
    with attach(build_tenant().id), pytest.raises(AsyncTaskRefused):
        async_task(f"{SHOP}.add", 1, **options)
    with attach(build_tenant().id), pytest.raises(AsyncTaskRefused):
        async_task(f"{SHOP}.add", 1, chain=[(f"{SHOP}.add", (1,), {"sync": True})], group="g")
    nothing_stands()


def test_no_face_starts_a_function_of_q2(shop: TestWorker) -> None:
    tenant = build_tenant()
    answers = []
    for name in (f"q2:{SHOP}.add", f"q2:{SHOP}.none"):
        for source in ("api", "command"):
            with pytest.raises(UnknownWorkflow) as refused:
                start_tasks(tenant_id=tenant.id, starts=[Start(name)], principal=PRINCIPAL, source=source)
            answers.append((refused.value.message, refused.value.fields | {"workflow": ""}))
    assert answers[1:] == answers[:-1]
    nothing_stands()


def test_a_path_that_only_a_row_names_is_run_by_nobody(shop: TestWorker) -> None:
    """What the web role's SQL can do at most: a task of its own tenant that names whatever it likes."""
    tenant = build_tenant()
    link = {"id": "0" * 32, "name": "n", "func": "os.getcwd", "args": [], "kwargs": {}, "hook": "os.getcwd"}
    link |= {"group": None, "cluster": None, "cached": False, "save": True, "timeout": None}
    start(tenant, workflow="q2:os.getcwd", input={"links": [link]})
    start(tenant, workflow=f"q2:{SHOP}.add", input={"links": [link]})
    start(tenant, workflow=f"q2:{SHOP}.add", input={"links": [link | {"id": "1" * 32, "func": f"{SHOP}.whose"}]})
    start(tenant, workflow=f"q2:{SHOP}.add", input={"forged": True})
    shop.run_all()
    assert rows("select workflow, state, error ->> 'class', reason from workflows_task order by id") == [
        ("q2:os.getcwd", "waiting", None, "unknown_workflow"),
        (f"q2:{SHOP}.add", "failed", "PermanentError", "handler_failed"),
        (f"q2:{SHOP}.add", "completed", None, None),
        (f"q2:{SHOP}.add", "failed", "KeyError", "handler_failed"),
    ]
    with attach(tenant.id):
        refused = fetch("0" * 32)
    assert (refused.success, "none of the functions that may run" in refused.result) == (False, True)


def test_the_settings_list_is_read(flows: None) -> None:
    with override_settings(DUCTOR_Q2_FUNCTIONS=["tests.compat.conftest.lines"]):
        functions.discover()
    assert functions.find("tests.compat.conftest.lines") is lines


@pytest.mark.parametrize("wrong", ["os.nothing", "nothing.at.all", "os", "os.path", f"{SHOP}.coroutine"])
def test_a_wrong_name_in_the_settings_is_one_clear_line(flows: None, wrong: str) -> None:
    with override_settings(DUCTOR_Q2_FUNCTIONS=[wrong]), pytest.raises(ImproperlyConfigured, match=f"'{wrong}'"):
        functions.discover()
