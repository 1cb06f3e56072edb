"""Workflows as handler authors write them: `Workflow` and its `step` decorator.

A wrong definition never stops the import of its module: what is wrong is collected and reported by
`manage.py check` with a hint, and the workflow refuses to start. A definition is closed at its first use.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload
from uuid import UUID

from tenants.errors import IdentityInvalid
from tenants.identity import parse_name
from workflows import graph, registry
from workflows.durations import Duration, seconds_of
from workflows.graph import Graph, Mistake, Node
from workflows.retries import DEFAULT_FAILURES, MAX_ATTEMPTS, Retry

if TYPE_CHECKING:
    from tenants.principals import Principal
    from workflows.schemas import InputType
    from workflows.starting import TaskHandle

MAX_TIMEOUT_SECONDS = 86_400.0
MAX_VERSION = 2**31 - 1
DEFAULT_TIMEOUT = "5m"
DEFAULT_RETRY = Retry()

Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Step:
    """One step as the engine runs it."""

    name: str
    handler: Callable[[Any], Any]
    retry: Retry
    timeout_seconds: float
    atomic: bool
    is_async: bool


@dataclass(slots=True)
class _Declared:
    step: Step
    after: tuple[Any, ...]


class Workflow:
    """A named, versioned graph of steps.

    Args:
        name: 1 to 128 of letters, digits and `_ . : -`, beginning with a letter.
        version: a whole number from 1; a changed shape or input schema needs a new one.
        input: a JSON Schema as a dict, a dataclass or a TypedDict; None takes any JSON.
        queue: which workers may take its tasks; a declared queue.
        max_failures: failures of all kinds after which a task ends failed (1 to 1,000); by default 3, or what its
            most patient step allows.
        internal: only code starts it; for the API, pages and commands there is no such workflow.
    """

    def __init__(
        self,
        name: str,
        *,
        version: int,
        input: "InputType" = None,
        queue: str = "default",
        max_failures: int | None = None,
        internal: bool = False,
    ) -> None:
        self.name = name
        self.version = version
        self.input_type = input
        self.queue = queue
        self.internal = internal
        self.module = sys._getframe(1).f_globals.get("__name__", "")
        self._max_failures = max_failures
        self._declared: list[_Declared] = []
        self._mistakes: list[Mistake] = []
        self._closed = False
        registry.register(self)

    def __repr__(self) -> str:
        return f"<Workflow {self.name} v{self.version}>"

    @overload
    def step(self, name: Handler) -> Handler: ...
    @overload
    def step(
        self,
        name: str | None = None,
        *,
        after: Any = (),
        retry: Retry = ...,
        timeout: Duration = ...,
        atomic: bool = False,
    ) -> Callable[[Handler], Handler]: ...
    def step(
        self,
        name: Any = None,
        *,
        after: Any = (),
        retry: Retry = DEFAULT_RETRY,
        timeout: Duration = DEFAULT_TIMEOUT,
        atomic: bool = False,
    ) -> Any:
        """Declare the decorated function `handler(ctx)`, sync or async, as a step; the function stays as it is.

        Args:
            name: the step's name; the function's own by default.
            after: the steps that must be completed first: functions or names, one or several.
            retry: attempts and pauses.
            timeout: the longest one attempt may take, in seconds or as a text such as "30s".
            atomic: run the handler and the step's record in one transaction (D7).
        """
        if callable(name) and not isinstance(name, str):
            return self.step()(name)

        def declare(handler: Handler) -> Handler:
            if self._closed:
                raise RuntimeError(f"{self!r} is in use already; declare its steps where it is made.")
            own_name = name if name is not None else getattr(handler, "__name__", "")
            entries = (after,) if isinstance(after, str) or callable(after) else tuple(after)
            step = self._checked_step(own_name, handler, retry, timeout, atomic)
            self._declared.append(_Declared(step, entries))
            return handler

        return declare

    def _checked_step(self, name: Any, handler: Any, retry: Any, timeout: Any, atomic: bool) -> Step:
        wrong = functools.partial(_wrong_step, self._mistakes, name)
        seconds = seconds_of(DEFAULT_TIMEOUT)
        try:
            parse_name(name, "step name")
        except IdentityInvalid as error:
            wrong("E004", error.message, "Give the step a `name=` that keeps the rule.")
        try:
            seconds = seconds_of(timeout, maximum=MAX_TIMEOUT_SECONDS)
        except ValueError as error:
            wrong("E006", f"its timeout is wrong: {error}.", 'Write for example timeout="30s".')
        if not isinstance(retry, Retry):
            wrong("E006", "its retry is no Retry.", "Write for example retry=Retry(max_attempts=5).")
            retry = Retry()
        elif retry.problem:
            wrong("E006", f"its retry is wrong: {retry.problem}.", "See the docstring of ductor.Retry.")
        if not _takes_one_argument(handler):
            wrong("E010", "its handler can't be called with one argument.", "Declare it as `def step(ctx): ...`.")
        is_async = inspect.iscoroutinefunction(inspect.unwrap(handler) if callable(handler) else handler)
        return Step(str(name), handler, retry, seconds, bool(atomic), is_async)

    @functools.cached_property
    def _built(self) -> tuple[Graph | None, list[Mistake]]:
        self._closed = True
        return graph.build(Node(d.step.name, tuple(map(self.name_of, d.after))) for d in self._declared)

    def name_of(self, entry: Any) -> str:
        """Return the name of a step, given by its name or its function."""
        if isinstance(entry, str):
            return entry
        found = [d.step.name for d in self._declared if d.step.handler is entry]
        return found[0] if found else getattr(entry, "__name__", repr(entry))

    def mistakes(self) -> list[Mistake]:
        """Return everything that is wrong with this definition; it can be started only where this is empty."""
        from workflows.schemas import schema_mistakes

        return [*_head_mistakes(self), *self._mistakes, *self._built[1], *schema_mistakes(self.input_type)]

    @functools.cached_property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with it; only a sound workflow is started and run."""
        return not self.mistakes()

    @property
    def graph(self) -> Graph:
        """The shape.

        Raises:
            ValueError: the definition is wrong.
        """
        built = self._built[0]
        if built is None:
            raise ValueError(f"{self!r} is not well formed: " + " ".join(m.text for m in self._built[1]))
        return built

    @functools.cached_property
    def steps(self) -> dict[str, Step]:
        """The steps by name, in topological order."""
        by_name = {d.step.name: d.step for d in self._declared}
        return {name: by_name[name] for name in self.graph.names}

    @functools.cached_property
    def only_step(self) -> Step | None:
        """The step of a one-step workflow that needs no step row; None for all others."""
        steps = list(self.steps.values())
        return steps[0] if len(steps) == 1 and not steps[0].atomic else None

    @functools.cached_property
    def input_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the input, or None where any JSON is taken."""
        from workflows.schemas import schema_of

        return schema_of(self.input_type)

    @functools.cached_property
    def input_validator(self) -> Any | None:
        """The compiled input schema, or None where any JSON is taken."""
        from workflows.schemas import validator_of

        return None if self.input_schema is None else validator_of(self.input_schema)

    @functools.cached_property
    def checksum(self) -> str:
        """SHA-256 of the shape and the input schema."""
        return self.graph.checksum(self.input_schema)

    @functools.cached_property
    def max_failures(self) -> int:
        """Failures of all kinds after which a task of this workflow ends failed."""
        if self._max_failures is not None:
            return self._max_failures
        return max(DEFAULT_FAILURES, *(step.retry.max_attempts for step in self.steps.values()))

    def start(
        self,
        input: Any = None,
        *,
        key: str | None = None,
        tenant: UUID | str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        priority: int = 0,
        principal: "Principal | None" = None,
    ) -> "TaskHandle":
        """Start one task in the attached tenant; joins the caller's open transaction (see `starting.start_one`)."""
        from workflows import starting

        pause = None if delay is None else seconds_of(delay, maximum=starting.MAX_DELAY_SECONDS, zero=True)
        start = starting.Start(self.name, self.version, input, key, None, priority, at, pause)
        return starting.start_handles([start], tenant=tenant, principal=principal)[0]

    def start_many(
        self, inputs: Iterable[Any], *, tenant: UUID | str | None = None, principal: "Principal | None" = None
    ) -> "Sequence[TaskHandle]":
        """Start one task for each input, at most 1,000, all or none; joins the caller's open transaction."""
        from workflows import starting

        starts = [starting.Start(self.name, self.version, value) for value in inputs]
        return starting.start_handles(starts, tenant=tenant, principal=principal)


def _wrong_step(mistakes: list[Mistake], name: Any, code: str, text: str, hint: str) -> None:
    mistakes.append(Mistake(code, f"Step {name!r}: {text}", hint))


def _takes_one_argument(handler: Any) -> bool:
    if not callable(handler):
        return False
    try:
        inspect.signature(handler).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _head_mistakes(workflow: Workflow) -> list[Mistake]:
    mistakes = []
    for value, what in ((workflow.name, "workflow name"), (workflow.queue, "queue name")):
        try:
            parse_name(value, what)
        except IdentityInvalid as error:
            mistakes.append(Mistake("E004", error.message, f"Choose a {what} that keeps the rule."))
    if type(workflow.version) is not int or not 1 <= workflow.version <= MAX_VERSION:
        text = f"Its version {workflow.version!r} is no whole number from 1."
        mistakes.append(Mistake("E011", text, "Write version=1 and count up when the shape changes."))
    cap = workflow._max_failures
    if cap is not None and (type(cap) is not int or not 1 <= cap <= MAX_ATTEMPTS):
        mistakes.append(Mistake("E006", f"max_failures={cap!r} is no whole number from 1 to {MAX_ATTEMPTS}."))
    return mistakes
