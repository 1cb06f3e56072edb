"""`django.tasks` on Ductor's queue: `ductor.contrib.tasks.DuctorBackend`."""

import asyncio
import contextvars
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction
from django_tasks import TaskResultStatus, default_task_backend, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued, task_finished, task_started

from ductor.contrib import tasks as contrib
from ductor.contrib.tasks import DuctorBackend, DuctorTask
from tenants.errors import QueueUnknown, ScopeConflict, ScopeMissing
from tenants.identity import SYSTEM_TENANT_ID
from tenants.scope import attach
from tests.builders import PRINCIPAL, assert_counters_true, build_queue, build_tenant, claim, rows, start
from tests.compat.shop import tasks
from tests.workflows.conftest import TestWorker
from workflows import registry
from workflows.cancelling import cancel
from workflows.errors import InputInvalid, QuotaExceeded, UnknownWorkflow
from workflows.starting import Start, start_tasks

ALL = (tasks.double, tasks.owner, tasks.tell, tasks.sell, tasks.sell_later, tasks.tidy)
PATH = "tests.compat.shop.tasks"


@pytest.fixture
def shop(worker: TestWorker, flows: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestWorker]:
    """A worker whose process has the shop's tasks, as if the shop were installed (in test_docs it is)."""
    real = apps.get_containing_app_config
    monkeypatch.setattr(apps, "get_containing_app_config", lambda name: "shop" if name == PATH else real(name))
    for task in ALL:
        task.get_backend().validate_task(task)
    yield worker


def work(shop: TestWorker) -> None:
    """Run what there is to run, with no tenant attached."""
    contextvars.Context().run(shop.run_all)


def nothing_stands() -> None:
    assert rows("select count(*) from workflows_task") == [(0,)]
    assert_counters_true()


def test_a_task_runs_and_its_result_is_found_by_its_id(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        ready = tasks.double.enqueue(21)
        assert (ready.status, ready.args, ready.kwargs, ready.attempts) == (TaskResultStatus.READY, [21], {}, 0)
        assert rows("select id, workflow, version, queue, priority from workflows_task") == [
            (uuid.UUID(ready.id), f"task:{PATH}.double", 1, "default", 0)
        ]
        with pytest.raises(ValueError, match="not finished"):
            _ = ready.return_value
        work(shop)
        ready.refresh()
        assert (ready.status, ready.return_value, ready.errors) == (TaskResultStatus.SUCCESSFUL, 42, [])
        found = tasks.double.get_result(ready.id)
        assert (found.args, found.attempts, found.is_finished) == ([21], 1, True)
        assert found.enqueued_at <= found.started_at <= found.finished_at
        with pytest.raises(TaskResultMismatch):
            tasks.sell.get_result(ready.id)
    assert_counters_true()


def test_coroutines_run_and_can_be_awaited(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        ready = asyncio.run(tasks.owner.aenqueue())
        work(shop)
        found = asyncio.run(tasks.owner.aget_result(ready.id))
    assert (found.return_value, found.task.priority) == (str(tenant.id), 5)


def test_a_task_that_takes_its_context_gets_it(shop: TestWorker) -> None:
    with attach(build_tenant().id):
        ready = tasks.tell.enqueue(word="hello")
        work(shop)
        ready.refresh()
        assert ready.return_value == ["hello", 1, ready.id, "RUNNING"]


def test_a_task_that_raises_is_failed_with_its_class_and_traceback(shop: TestWorker) -> None:
    with attach(build_tenant().id):
        ready = tasks.sell.enqueue("tea")
        work(shop)
        ready.refresh()
        (error,) = ready.errors
        assert (ready.status, error.exception_class) == (TaskResultStatus.FAILED, tasks.OutOfStock)
        assert error.traceback.strip().endswith("OutOfStock: tea")
        with pytest.raises(ValueError, match="failed"):
            _ = ready.return_value
    assert rows("select state, attempt from workflows_task") == [("failed", 1)]


@pytest.mark.parametrize(
    ("stored", "path"),
    [
        ({"class": "LookupError", "traceback": "LookupError: no"}, "builtins.LookupError"),
        ({"class": "PermanentError"}, "workflows.control.PermanentError"),
        ({"class": "OutOfStock", "traceback": f"{PATH}.OutOfStock: no"}, f"{PATH}.OutOfStock"),
        # A message that pretends to be a traceback's last line leads to no import.
        (
            {"class": "OutOfStock", "traceback": f"{PATH}.OutOfStock: x\nantigravity.OutOfStock: y"},
            f"{PATH}.OutOfStock",
        ),
        ({"class": "system", "traceback": "os.system: x"}, "builtins.Exception"),
        ({"class": "Popen", "traceback": "subprocess.Popen: x"}, "builtins.Exception"),
        ({"class": "Unheard", "traceback": "this.Unheard: x"}, "builtins.Exception"),
        ({}, "builtins.Exception"),
    ],
)
def test_an_errors_class_is_one_that_is_loaded_already(stored: dict[str, Any], path: str) -> None:
    assert contrib._class_path(stored) == path


def test_retries_are_tasks_attempts(shop: TestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = registry.get(f"task:{PATH}.sell_later", 1)
    assert (workflow.steps["call"].retry.max_attempts, tasks.sell_later.retries) == (3, 2)
    monkeypatch.setattr("workflows.retries.Retry.pause", lambda self, failures: 0.0)
    with attach(build_tenant().id):
        ready = tasks.sell_later.enqueue("tea")
        work(shop)
        ready.refresh()
    assert (ready.status, ready.attempts) == (TaskResultStatus.FAILED, 3)


def test_states_are_the_librarys(shop: TestWorker) -> None:
    tenant = build_tenant()
    later = datetime.now(UTC) + timedelta(hours=1)
    with attach(tenant.id):
        waiting = tasks.double.using(run_after=later).enqueue(1)
        queued = tasks.double.enqueue(2)
        (claimed,) = contextvars.Context().run(claim)
        for result in (waiting, queued):
            result.refresh()
        assert (waiting.status, queued.status) == (TaskResultStatus.READY, TaskResultStatus.RUNNING)
        cancel(tenant_id=tenant.id, task_id=uuid.UUID(waiting.id), principal=PRINCIPAL)
        waiting.refresh()
        assert (waiting.status, waiting.errors[0].exception_class.__name__) == (TaskResultStatus.FAILED, "Cancelled")
    assert claimed.claim.task_id == uuid.UUID(queued.id)
    assert rows("select abs(extract(epoch from due_at - %s)) < 1 from workflows_task where state = 'cancelled'", later)
    assert_counters_true()


def test_a_task_in_a_transaction_that_is_rolled_back_is_none(shop: TestWorker) -> None:
    with attach(build_tenant().id), pytest.raises(LookupError):
        with transaction.atomic():
            tasks.double.enqueue(1)
            raise LookupError
    nothing_stands()


def test_priority_and_queue_are_the_tasks(shop: TestWorker) -> None:
    build_queue("mail")
    with attach(build_tenant().id):
        with pytest.raises(InvalidTaskError, match="Queue 'mail'"):
            tasks.double.using(queue_name="mail")
        backend = DuctorBackend("mailing", {"QUEUES": ["mail", "nowhere"]})
        for queue in ("mail", "nowhere"):
            task = DuctorTask(func=tasks.double.func, backend="default")
            object.__setattr__(task, "queue_name", queue)
            object.__setattr__(task, "priority", -7)
            if queue == "mail":
                backend.enqueue(task, (1,), {})
            else:
                with pytest.raises(QueueUnknown):
                    backend.enqueue(task, (1,), {})
        with pytest.raises(InvalidTaskError, match="priority"):
            tasks.double.using(priority=101)
    assert rows("select queue, priority from workflows_task") == [("mail", -7)]


def test_what_is_no_json_and_what_is_over_the_limit_is_refused(shop: TestWorker) -> None:
    with attach(build_tenant(max_outstanding=1).id):
        for argument in (object(), float("nan"), {1: 2}, "\0", "x" * 300_000):
            with pytest.raises(InputInvalid):
                tasks.double.enqueue(argument)
        nothing_stands()
        tasks.double.enqueue(1)
        with pytest.raises(QuotaExceeded):
            tasks.double.enqueue(2)
    assert_counters_true()


def test_without_a_tenant_nothing_is_started_or_found(shop: TestWorker) -> None:
    with pytest.raises(ScopeMissing):
        tasks.double.enqueue(1)
    with pytest.raises(ScopeMissing):
        default_task_backend.get_result(str(uuid.uuid4()))
    nothing_stands()


def test_another_tenants_result_is_like_one_that_never_existed(shop: TestWorker) -> None:
    mine, other = build_tenant(), build_tenant()
    with attach(other.id):
        theirs = tasks.double.enqueue(1)
    answers = []
    with attach(mine.id):
        (plain,) = start(mine)
        for result_id in (theirs.id, str(uuid.uuid4()), "made up", theirs.id.upper(), str(plain)):
            with pytest.raises(TaskResultDoesNotExist) as refused:
                tasks.double.get_result(result_id)
            answers.append(str(refused.value).replace(result_id, "<id>"))
    assert answers == ["<id>"] * 5


def test_the_systems_backend_is_for_house_keeping(shop: TestWorker) -> None:
    with attach(build_tenant().id), pytest.raises(ScopeConflict):
        tasks.tidy.enqueue()
    nothing_stands()
    ready = tasks.tidy.enqueue()
    assert rows("select tenant_id, queue from workflows_task") == [(SYSTEM_TENANT_ID, "system")]
    work(shop)
    ready.refresh()
    assert ready.return_value == str(SYSTEM_TENANT_ID)
    assert_counters_true()


def local_function() -> None:
    """Stands in no installed app."""


def test_only_functions_of_installed_apps_are_run(shop: TestWorker) -> None:
    tenant = build_tenant()
    with attach(tenant.id):
        task = DuctorTask(func=local_function)
        with pytest.raises(InvalidTaskError, match="no installed app"):
            task.enqueue()
        with pytest.raises(InvalidTaskError):
            DuctorTask(func=lambda: None)
        impostor = type(local_function)(local_function.__code__, {}, "double")
        impostor.__module__, impostor.__qualname__ = PATH, "double"
        with pytest.raises(InvalidTaskError, match="Another function"):
            DuctorTask(func=impostor)
        for wrong in ({"retries": -1}, {"retries": "x"}, {"timeout": "soon"}, {"timeout": 0}):
            registry._known.pop(f"task:{PATH}.double", None)
            with pytest.raises(InvalidTaskError):
                DuctorTask(func=tasks.double.func, **wrong)
    nothing_stands()


def test_a_path_that_only_a_row_names_is_run_by_nobody_and_no_face_starts_a_task(shop: TestWorker) -> None:
    tenant = build_tenant()
    start(tenant, workflow="task:os.getcwd", input={"args": [], "kwargs": {}})
    shop.run_all()
    assert rows("select state, reason from workflows_task") == [("waiting", "unknown_workflow")]
    for source in ("api", "command"):
        with pytest.raises(UnknownWorkflow):
            start_tasks(tenant_id=tenant.id, starts=[Start(f"task:{PATH}.double")], principal=PRINCIPAL, source=source)


def test_signals_are_sent(shop: TestWorker) -> None:
    seen: list[tuple[str, str]] = []

    def receiver(name: str) -> Any:
        return lambda sender, task_result, **_: seen.append((name, str(task_result.status)))

    receivers = {
        signal: receiver(name)
        for name, signal in (("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished))
    }
    for signal, function in receivers.items():
        signal.connect(function)
    try:
        with attach(build_tenant().id):
            tasks.double.enqueue(1)
            tasks.sell.enqueue("x")
        work(shop)
    finally:
        for signal, function in receivers.items():
            signal.disconnect(function)
    assert seen == [
        ("enqueued", "READY"),
        ("enqueued", "READY"),
        ("started", "RUNNING"),
        ("finished", "SUCCESSFUL"),
        ("started", "RUNNING"),
        ("finished", "FAILED"),
    ]


def test_the_backend_says_what_it_can(shop: TestWorker) -> None:
    backend = task_backends["default"]
    assert (backend.supports_defer, backend.supports_async_task) == (True, True)
    assert (backend.supports_get_result, backend.supports_priority) == (True, True)
    assert backend.queues == {"default"}
    assert list(backend.check()) == []
