"""A tick: one leased advance of one task, as the process that holds the lease sees it."""

import time
from datetime import UTC, datetime
from typing import Any, Literal

from workflows.claims import Claim, ClaimedTask, Outcome, StepRecord
from workflows.context import Context, cancel
from workflows.control import Cancelled
from workflows.definitions import Step, Workflow
from workflows.execution import OutputInvalid, StepFailure, describe, failure_of
from workflows.schemas import load_input
from workflows.values import flaws


class Tick:
    """One claimed task while this process works on it.

    Attributes:
        started: the monotonic time of its first handler, or 0.0 while none has run.
        confirmed_at: the monotonic time at which its lease was last known to be whole.
        hard_deadline: the monotonic time after which the running handler counts as hung, or 0.0.
        lost: nothing may be written for it any more.
        outputs: the outputs of its completed steps; filled from the records where the task is resumed.
        failed_before: how often each step has failed in earlier ticks.
    """

    __slots__ = (
        "claim",
        "claimed",
        "confirmed_at",
        "contexts",
        "failed_before",
        "hard_deadline",
        "input",
        "loaded",
        "lost",
        "outputs",
        "progress",
        "progress_sent",
        "started",
        "workflow",
    )

    def __init__(self, claimed: ClaimedTask, workflow: Workflow, now: float) -> None:
        self.claimed = claimed
        self.claim: Claim = claimed.claim
        self.workflow = workflow
        self.confirmed_at = now
        self.started = 0.0
        self.hard_deadline = 0.0
        self.lost = False
        self.loaded = False
        self.input: Any = None
        self.outputs: dict[str, Any] = {}
        self.failed_before: dict[str, int] = {}
        self.contexts: list[Context[Any]] = []
        self.progress: dict[str, Any] | None = None
        self.progress_sent: dict[str, Any] | None = None

    def context_for(self, step: Step) -> Context[Any]:
        """Make the context of one step; `lose` stops its handler as long as the step runs."""
        context: Context[Any] = Context(
            input=self.input,
            tenant=self.claim.tenant_id,
            task_id=self.claim.task_id,
            definition=self.workflow,
            step=step.name,
            attempt=self.claimed.attempt,
            outputs=self.outputs,
            report=self.report,
        )
        self.contexts.append(context)
        if self.lost:
            cancel(context, Cancelled)
        return context

    def load_input(self, context_of: Step) -> StepFailure | None:
        """Make the stored JSON into the workflow's input type; a failure where the type no longer takes it."""
        value = self.claimed.input
        if self.workflow.input_type is None or isinstance(self.workflow.input_type, dict):
            self.input = value
            return None
        try:
            self.input = load_input(self.workflow.input_type, value)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            return failure_of(error, self.context_for(context_of))
        return None

    def report(self, progress: dict[str, Any]) -> None:
        """Keep the latest progress; the heartbeat sends it."""
        self.progress = progress

    def lose(self) -> None:
        """Stop the running handlers and write nothing more. Called from any thread."""
        self.lost = True
        for context in list(self.contexts):
            cancel(context, Cancelled)

    def used_seconds(self) -> float:
        """Return the lease-seconds used since the first handler."""
        return time.monotonic() - self.started if self.started else 0.0

    def record(self, step: str, begun: datetime, output: Any = None, error: dict[str, Any] | None = None) -> StepRecord:
        """Return the record of one step that ends now."""
        state: Literal["completed", "failed"] = "completed" if error is None else "failed"
        return StepRecord(self.claim, step, self.claimed.attempt, state, output, error, begun, datetime.now(UTC))

    def completed(self, steps: tuple[StepRecord, ...] = ()) -> Outcome:
        """Return the outcome of a task whose graph is done; it fails where its outputs are too large together."""
        output = self._output()
        known: dict[str, Any] = {"used_seconds": self.used_seconds(), "steps": steps, "progress": self.progress}
        if len(self.workflow.graph.sinks) > 1 and (found := flaws(output)):
            error = describe(OutputInvalid(f"The outputs of the last steps together: {found[0]['detail']}"), "output")
            return Outcome(self.claim, "failed", error=error, failure=True, **known)
        return Outcome(self.claim, "completed", output=output, **known)

    def yielded(self, steps: tuple[StepRecord, ...] = ()) -> Outcome:
        """Return the outcome of a started task that another worker is to go on with at once."""
        return Outcome(self.claim, "retry", used_seconds=self.used_seconds(), steps=steps, progress=self.progress)

    def failed(self, step: Step, failure: StepFailure, steps: tuple[StepRecord, ...] = ()) -> Outcome:
        """Return the outcome of a tick in which a step has no output: a pause and another attempt, or the end."""
        error = {**failure.error, "step": step.name, "attempt": self.claimed.attempt}
        known: dict[str, Any] = {
            "used_seconds": self.used_seconds(),
            "steps": steps,
            "progress": self.progress,
        }
        if failure.kind == "later":
            return Outcome(self.claim, "retry", delay_seconds=failure.after_seconds, **known)
        failures = self._failures_of(step) + 1
        if failure.kind in ("permanent", "output") or failures >= step.retry.max_attempts:
            return Outcome(self.claim, "failed", error=error, failure=True, **known)
        pause = step.retry.pause(failures)
        return Outcome(self.claim, "retry", error=error, failure=True, delay_seconds=pause, **known)

    def _failures_of(self, step: Step) -> int:
        if self.workflow.only_step is not None:
            return self.claimed.failures
        return self.failed_before.get(step.name, 0)

    def _output(self) -> Any:
        sinks = self.workflow.graph.sinks
        if len(sinks) == 1:
            return self.outputs[sinks[0]]
        return {name: self.outputs[name] for name in sinks}
