"""The tick: run what is ready of one leased task (DESIGN D7).

A single ready step runs in the calling thread, several run in threads. A one-step workflow takes the short path: no
step row, no look at records. What a tick leaves behind, records and outcome, is written by `results` in batches; a
step that waits for another starts only after the other's record is committed, which `turns` sees to.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from tenants.scope import attach
from workflows.atomic_steps import execute_atomic
from workflows.claims import Outcome, StepRecord
from workflows.definitions import Step
from workflows.execution import Result, StepFailure, execute
from workflows.queries import list_steps
from workflows.step_threads import GRACE_SECONDS, Job, StepThreads
from workflows.ticks import Tick

logger = logging.getLogger("ductor.engine")

KILL_SECONDS = 5.0
_ORDER = {"permanent": 0, "output": 1, "error": 2, "timeout": 3, "later": 4}


@dataclass(frozen=True, slots=True)
class Advance:
    """What one round left behind: records to be written before the next round, or the task's outcome, or neither.

    `hung` says that a step thread did not stop past its grace; the process must go.
    """

    records: tuple[StepRecord, ...] = ()
    outcome: Outcome | None = None
    hung: bool = False


class Engine:
    """Advances ticks; one per process.

    Args:
        deadline: told, before handlers run, after how many seconds this process is to be killed.
    """

    def __init__(self, deadline: Callable[[float | None], None]) -> None:
        self._deadline = deadline
        self.threads = StepThreads()

    def advance(self, tick: Tick) -> Advance:
        """Run every ready step of a task once.

        Raises:
            Unavailable, django.db.Error: the records of a resumed task can't be read.
        """
        with attach(tick.claim.tenant_id):
            only = tick.workflow.only_step
            if only is not None:
                return self._advance_only(tick, only)
            if not tick.loaded:
                self._load(tick)
            ready = tick.workflow.graph.ready(tick.outputs)
            if not ready:
                return Advance(outcome=tick.completed())
            return self._advance_graph(tick, [tick.workflow.steps[name] for name in ready])

    def _advance_only(self, tick: Tick, step: Step) -> Advance:
        failure = tick.load_input(step)
        if failure is None:
            self._begin(tick, step.timeout_seconds)
            output, failure = execute(step, tick.context_for(step))
            self._end(tick)
            tick.outputs[step.name] = output
        if failure is None and not tick.lost:
            return Advance(outcome=tick.completed())
        return self._failed(tick, [(step, failure or StepFailure("lost", {}))], ())

    def _advance_graph(self, tick: Tick, steps: list[Step]) -> Advance:
        begun = datetime.now(UTC)
        failure = tick.load_input(steps[0])
        if failure is not None:
            return self._failed(tick, [(steps[0], failure)], ())
        results, hung = self._run(tick, steps, begun)
        records, failures = [], []
        for step, (output, failure) in results:
            if failure is None:
                tick.outputs[step.name] = output
                if not step.atomic:
                    records.append(tick.record(step.name, begun, output))
            else:
                failures.append((step, failure))
        if hung:
            return Advance(() if tick.lost else tuple(records), hung=True)
        if failures or tick.lost:
            return self._failed(tick, failures, tuple(records), begun)
        if len(tick.outputs) == len(tick.workflow.graph.nodes):
            return Advance(outcome=tick.completed(tuple(records)))
        return Advance(tuple(records))

    def _run(self, tick: Tick, steps: list[Step], begun: datetime) -> tuple[list[tuple[Step, Result]], bool]:
        jobs = [self._job(tick, step, begun) for step in steps]
        rounds = -(-len(jobs) // self.threads.size) if len(jobs) > 1 else 1
        self._begin(tick, rounds * max(job.timeout_seconds for job in jobs), hangs=len(jobs) == 1)
        complete = True
        if len(jobs) == 1:
            jobs[0].result = jobs[0].run()
        else:
            complete = self.threads.run(jobs)
        self._end(tick)
        return [
            (step, job.result) for step, job in zip(steps, jobs, strict=True) if job.result is not None
        ], not complete

    def _job(self, tick: Tick, step: Step, begun: datetime) -> Job:
        context = tick.context_for(step)

        def run() -> Result:
            if step.atomic:
                return execute_atomic(step, context, lambda output: tick.record(step.name, begun, output))
            return execute(step, context)

        return Job(run, context, step.timeout_seconds)

    def _begin(self, tick: Tick, seconds: float, *, hangs: bool = True) -> None:
        """Note that a handler starts; with `hangs` the watchdog ends the process when it outlasts its grace."""
        now = time.monotonic()
        tick.started = tick.started or now
        tick.hard_deadline = now + seconds + GRACE_SECONDS if hangs else 0.0
        self._deadline(seconds + GRACE_SECONDS + KILL_SECONDS)

    def _end(self, tick: Tick) -> None:
        tick.hard_deadline = 0.0
        tick.contexts.clear()
        self._deadline(None)

    def _load(self, tick: Tick) -> None:
        """Read what earlier claims of the task recorded. A claim that was given back unstarted counts as no attempt."""
        tick.loaded = True
        if tick.claimed.attempt == 1:
            return
        for step in list_steps(tenant_id=tick.claim.tenant_id, task_id=tick.claim.task_id):
            if step.state == "completed":
                tick.outputs[step.name] = step.output
            else:
                tick.failed_before[step.name] = tick.failed_before.get(step.name, 0) + 1

    def _failed(
        self,
        tick: Tick,
        failures: list[tuple[Step, StepFailure]],
        records: tuple[StepRecord, ...],
        begun: datetime | None = None,
    ) -> Advance:
        """End the tick of a task that has a step without output: the gravest failure decides."""
        if tick.lost or any(failure.kind == "lost" for _, failure in failures):
            tick.lost = True
            return Advance()
        if begun is not None:
            records += tuple(tick.record(s.name, begun, error=f.error) for s, f in failures if f.kind != "later")
        step, failure = min(failures, key=lambda pair: _ORDER[pair[1].kind])
        outcome = tick.failed(step, failure, records)
        if failure.kind != "later":
            # The class only: a message may quote the tenant's data.
            logger.info("step_failed", extra=_about(tick, step, failure, outcome))
        return Advance(outcome=outcome)


def _about(tick: Tick, step: Step, failure: StepFailure, outcome: Outcome) -> dict[str, object]:
    return {
        "tenant_id": str(tick.claim.tenant_id),
        "task_id": str(tick.claim.task_id),
        "workflow": tick.workflow.name,
        "step": step.name,
        "attempt": tick.claimed.attempt,
        "failure": failure.kind,
        "error_class": failure.error.get("class"),
        "next": outcome.kind,
    }
