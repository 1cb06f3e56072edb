"""What a handler gets: its task's input, identity and means to report and to stop."""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from workflows.control import Cancelled, StepTimeout
from workflows.values import flaws

if TYPE_CHECKING:
    from workflows.definitions import Workflow

Input = TypeVar("Input")

_MAX_NOTE = 500


class Context(Generic[Input]):
    """The one argument of a handler.

    Attributes:
        input: the task's input, as the workflow's input type where that is a dataclass, else the JSON value.
        tenant: the id of the tenant that the task belongs to; it is attached while the handler runs.
        task_id: the task's id.
        step: the name of the running step.
        attempt: which claim of the task this is, from 1.
    """

    __slots__ = (
        "_cancel_hook",
        "_definition",
        "_log",
        "_outputs",
        "_reason",
        "_report",
        "attempt",
        "input",
        "step",
        "task_id",
        "tenant",
    )

    def __init__(
        self,
        *,
        input: Input,
        tenant: UUID,
        task_id: UUID,
        definition: "Workflow",
        step: str,
        attempt: int,
        outputs: Mapping[str, Any],
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        self.input = input
        self.tenant = tenant
        self.task_id = task_id
        self._definition = definition
        self.step = step
        self.attempt = attempt
        self._outputs = outputs
        self._report = report
        self._reason: type[Cancelled] | type[StepTimeout] | None = None
        self._cancel_hook: Callable[[], None] | None = None
        self._log: Any = None

    @property
    def idempotency_key(self) -> str:
        """A text that is the same in every attempt of this step and different everywhere else."""
        return f"{self.task_id}:{self.step}"

    def output(self, step: Any) -> Any:
        """Return the output of a completed step, named by its name or its function.

        Raises:
            KeyError: that step is not completed; name it in `after=` to wait for it.
        """
        name = self._definition.name_of(step)
        try:
            return self._outputs[name]
        except KeyError:
            raise KeyError(f"The step {name!r} is not completed here; name it in `after=` of {self.step!r}.") from None

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far the step is; shown with the task. Cheap: it is sent at most every two seconds.

        Raises:
            ValueError: a number is not finite, or the note holds a character that can't be stored.
        """
        report = {"step": self.step, "done": done, "total": total, "note": None if note is None else note[:_MAX_NOTE]}
        if found := flaws(report):
            raise ValueError(f"progress{found[0]['pointer']}: {found[0]['detail']}")
        self._report(report)

    @property
    def log(self) -> Any:
        """A structlog logger that carries the tenant, task, workflow, step and attempt."""
        if self._log is None:
            import structlog

            self._log = structlog.get_logger("ductor.handler").bind(
                tenant_id=str(self.tenant),
                task_id=str(self.task_id),
                workflow=self._definition.name,
                version=self._definition.version,
                step=self.step,
                attempt=self.attempt,
            )
        return self._log

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: the task was cancelled, its lease lost, or the step's time is over."""
        return self._reason is not None

    def raise_if_cancelled(self) -> None:
        """Stop here if the handler should stop; call it in long loops of steps that run side by side.

        Raises:
            Cancelled: the task was cancelled or its lease was lost.
            StepTimeout: the step ran longer than its timeout.
        """
        if self._reason is not None:
            raise self._reason


def cancel(context: "Context[Any]", reason: "type[Cancelled] | type[StepTimeout]" = Cancelled) -> None:
    """Tell a handler to stop; the first reason stands. Called from any thread."""
    with _latch:
        if context._reason is not None:
            return
        context._reason = reason
        hook = context._cancel_hook
    if hook is not None:
        hook()


def mark_stopped(context: "Context[Any]", reason: "type[Cancelled] | type[StepTimeout]") -> None:
    """Note why a handler stops, without calling its hook: the caller stops it."""
    if context._reason is None:
        context._reason = reason


def on_cancel(context: "Context[Any]", hook: Callable[[], None] | None) -> None:
    """Have `hook` called when the handler is told to stop, at once where it already was."""
    with _latch:
        context._cancel_hook = hook
        due = hook is not None and context._reason is not None
    if due and hook is not None:
        hook()


def stop_reason(context: "Context[Any]") -> "type[Cancelled] | type[StepTimeout] | None":
    """Return why the handler was told to stop, or None."""
    return context._reason


# Reentrant: a signal handler may call `cancel` while its own thread is inside `on_cancel`.
_latch = threading.RLock()
