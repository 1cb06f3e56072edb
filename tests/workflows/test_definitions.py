"""Workflow, Retry, durations and the registry, as handler authors meet them."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from ductor import Context, Retry, RetryLater, Workflow
from workflows import registry
from workflows.durations import seconds_of
from workflows.errors import UnknownWorkflow


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        yield


def nothing(ctx: Context[Any]) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("span", "seconds"),
    [(3, 3.0), (0.5, 0.5), ("30s", 30.0), ("5m", 300.0), ("1h30m", 5400.0), ("2d", 172_800.0), ("250ms", 0.25)],
)
def test_spans_of_time_are_read(span: Any, seconds: float) -> None:
    assert seconds_of(span) == seconds
    assert seconds_of(timedelta(seconds=seconds)) == seconds


@pytest.mark.parametrize(
    "span", [0, -1, "", "5", "m5", "5 m", "-5m", "5y", None, True, float("nan"), float("inf"), 10**400, [], "٣s"]
)
def test_what_is_no_span_of_time_is_refused(span: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        seconds_of(span)


def test_a_span_above_the_maximum_is_refused() -> None:
    with pytest.raises(ValueError, match="longest"):
        RetryLater(after="400d")


def test_pauses_double_up_to_the_maximum_with_full_jitter() -> None:
    retry = Retry(max_attempts=5, first="2s", factor=2, max="5m")
    drawn: list[tuple[float, float]] = []

    def highest(low: float, high: float) -> float:
        drawn.append((low, high))
        return high

    assert [retry.pause(n, highest) for n in (1, 2, 3, 8, 9, 500)] == [2.0, 4.0, 8.0, 256.0, 300.0, 300.0]
    assert {low for low, _ in drawn} == {0.0}
    assert all(0 <= retry.pause(3) <= 8 for _ in range(100))


def test_the_decorated_function_stays_a_function() -> None:
    flow = Workflow("plain", version=1)

    assert flow.step(nothing) is nothing
    assert list(flow.steps) == ["nothing"]


def test_steps_are_named_by_function_or_by_name() -> None:
    flow = Workflow("edges", version=1)

    @flow.step
    def last(ctx: Context[Any]) -> None: ...

    @flow.step("first-of-all")
    def first(ctx: Context[Any]) -> None: ...

    @flow.step(after=first)
    async def middle(ctx: Context[Any]) -> None: ...

    @flow.step(after=["middle", first, last])
    def end(ctx: Context[Any]) -> None: ...

    assert flow.mistakes() == []
    assert {node.name: node.after for node in flow.graph.nodes} == {
        "last": (),
        "first-of-all": (),
        "middle": ("first-of-all",),
        "end": ("middle", "first-of-all", "last"),
    }
    assert flow.steps["middle"].is_async
    assert not flow.steps["end"].is_async
    assert flow.only_step is None


def test_a_one_step_workflow_has_an_only_step_unless_it_is_atomic() -> None:
    plain, atomic = Workflow("one", version=1), Workflow("one-atomic", version=1)
    plain.step(nothing)
    atomic.step(atomic=True)(nothing)

    assert plain.only_step is plain.steps["nothing"]
    assert atomic.only_step is None


def test_defaults_are_five_minutes_and_three_attempts() -> None:
    flow = Workflow("defaults", version=1)
    flow.step(nothing)

    step = flow.steps["nothing"]
    assert (step.timeout_seconds, step.retry.max_attempts, flow.max_failures) == (300.0, 3, 3)


def test_the_failure_cap_follows_the_most_patient_step_unless_it_is_named() -> None:
    patient = Workflow("patient", version=1)
    patient.step(retry=Retry(max_attempts=7))(nothing)
    named = Workflow("named", version=1, max_failures=2)
    named.step(retry=Retry(max_attempts=7))(nothing)

    assert (patient.max_failures, named.max_failures) == (7, 2)


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        ({"timeout": "soon"}, "E006"),
        ({"timeout": 0}, "E006"),
        ({"timeout": "2d"}, "E006"),
        ({"retry": 3}, "E006"),
        ({"retry": Retry(max_attempts=0)}, "E006"),
        ({"retry": Retry(first="x")}, "E006"),
        ({"retry": Retry(factor=0.5)}, "E006"),
        ({"name": "with space"}, "E004"),
        ({"name": "x" * 129}, "E004"),
        ({"after": ["nobody"]}, "E002"),
        ({"after": nothing}, "E001"),
    ],
)
def test_a_wrong_step_is_a_mistake_and_no_exception(declared: dict[str, Any], code: str) -> None:
    flow = Workflow("wrong", version=1)
    flow.step(**declared)(nothing)

    assert [mistake.code for mistake in flow.mistakes()] == [code]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": ""}, "E004"),
        ({"name": "ünicode"}, "E004"),
        ({"version": 0}, "E011"),
        ({"version": True}, "E011"),
        ({"version": "1"}, "E011"),
        ({"version": 2**31}, "E011"),
        ({"queue": "no queue"}, "E004"),
        ({"max_failures": 0}, "E006"),
        ({"input": 5}, "E009"),
        ({"input": {"type": "nix"}}, "E009"),
    ],
)
def test_a_wrong_head_is_a_mistake_and_no_exception(arguments: dict[str, Any], code: str) -> None:
    flow = Workflow(**{"name": "wrong", "version": 1, **arguments})
    flow.step(nothing)

    assert [mistake.code for mistake in flow.mistakes()] == [code]


def test_a_handler_takes_one_argument() -> None:
    flow = Workflow("handler", version=1)
    flow.step(lambda: None)

    assert [mistake.code for mistake in flow.mistakes()] == ["E004", "E010"]


def test_a_workflow_in_use_takes_no_more_steps() -> None:
    flow = Workflow("closed", version=1)
    flow.step(nothing)
    assert flow.graph.names == ("nothing",)

    with pytest.raises(RuntimeError, match="in use already"):
        flow.step("other")(nothing)


def test_a_broken_graph_is_no_graph() -> None:
    with pytest.raises(ValueError, match="no step"):
        _ = Workflow("empty", version=1).graph


def test_the_registry_gives_the_newest_version() -> None:
    flows = {version: Workflow("known", version=version) for version in (2, 10, 1)}

    assert registry.get("known") is flows[10]
    assert registry.get("known", 2) is flows[2]
    assert len(registry.all()) == 3


@pytest.mark.parametrize(("name", "version"), [("unknown", None), ("known", 3), ("known", 0)])
def test_an_unknown_workflow_or_version_is_refused(name: str, version: int | None) -> None:
    Workflow("known", version=1)

    with pytest.raises(UnknownWorkflow) as refusal:
        registry.get(name, version)
    assert refusal.value.fields == {"workflow": name, "version": version}


def test_importing_the_package_needs_no_django() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, ductor; print('django' in sys.modules, 'Workflow' in dir(ductor))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]


def test_the_package_has_no_other_names() -> None:
    import ductor

    with pytest.raises(AttributeError, match="Nonsense"):
        _ = ductor.Nonsense
