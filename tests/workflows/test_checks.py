"""System checks: each mistake is named, with its place and what to do."""

from typing import Any

import pytest
from django.core import checks

from ductor import Workflow
from workflows.checks import check_workflows

pytestmark = pytest.mark.usefixtures("flows")


def nothing(ctx: Any) -> None: ...


def flow(name: str = "checked", version: Any = 1, steps: tuple[str, ...] = ("only",), **more: Any) -> Workflow:
    made = Workflow(name, version=version, **more)
    for step in steps:
        made.step(step)(nothing)
    return made


def found() -> list[str]:
    return [str(message.id) for message in check_workflows()]


def test_sound_workflows_give_no_message() -> None:
    flow()
    flow(version=2, steps=("only", "another"))
    flow("other", queue="system")

    assert check_workflows() == []


def test_a_mistake_names_its_workflow_and_module() -> None:
    flow(steps=())
    (message,) = check_workflows()

    assert message.id == "ductor.E008"
    assert message.level == checks.ERROR
    assert message.msg == f"Workflow 'checked' version 1 in {__name__}: It has no step."
    assert message.hint


def test_a_changed_shape_without_a_new_version_is_an_error() -> None:
    flow()
    flow(steps=("only", "another"))

    assert found() == ["ductor.E005"]


def test_a_changed_input_schema_without_a_new_version_is_an_error() -> None:
    flow()
    flow(input={"type": "object"})

    assert found() == ["ductor.E005"]


def test_the_same_workflow_declared_twice_is_an_error() -> None:
    flow()
    flow()

    assert found() == ["ductor.E003"]


def test_a_queue_that_is_not_declared_is_a_warning() -> None:
    flow(queue="nowhere")
    (message,) = check_workflows()

    assert (message.id, message.level) == ("ductor.W007", checks.WARNING)


def test_all_mistakes_are_listed() -> None:
    made = Workflow("two words", version=0)
    made.step("a", after=["b"], timeout="soon")(nothing)

    assert found() == ["ductor.E004", "ductor.E011", "ductor.E006", "ductor.E002"]


def test_the_checks_are_part_of_manage_py_check() -> None:
    flow(steps=())

    assert "ductor.E008" in [message.id for message in checks.run_checks(tags=["ductor"])]
