"""The values of leased work: a claim, the task it holds, and what its worker hands back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Beat = Literal["extended", "skipped", "lost"]


@dataclass(frozen=True, slots=True)
class Claim:
    """Ownership of one task: by whom, and the fencing token it was taken with."""

    tenant_id: UUID
    task_id: UUID
    worker: str
    token: int

    def as_json(self) -> dict[str, Any]:
        """Return the claim as the SQL verbs take it."""
        return {"tenant_id": str(self.tenant_id), "task_id": str(self.task_id), "token": self.token}


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A leased task as its worker needs it."""

    claim: Claim
    workflow: str
    version: int
    queue: str
    key: str | None
    input: Any
    attempt: int
    failures: int
    max_failures: int
    alone: bool
    progress: Any
    format: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer of a claim; where it is empty, `next_due_at` is when something may become due."""

    tasks: list[ClaimedTask]
    next_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One node's execution, to be recorded under its task's claim."""

    claim: Claim
    name: str
    attempt: int
    state: Literal["completed", "failed"]
    output: Any
    error: dict[str, Any] | None
    started_at: datetime
    finished_at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return the record as the SQL verbs take it."""
        return {
            "name": self.name,
            "attempt": self.attempt,
            "state": self.state,
            "output": self.output,
            "error": self.error,
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tick ended. `failure` says that it counts against `max_failures`; `used_seconds` is what it is charged."""

    claim: Claim
    kind: Literal["completed", "retry", "failed"]
    output: Any = None
    error: dict[str, Any] | None = None
    delay_seconds: float = 0
    failure: bool = False
    used_seconds: float = 0
    steps: tuple[StepRecord, ...] = ()
    progress: Any = None

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as the SQL verb takes it."""
        return {
            **self.claim.as_json(),
            "kind": self.kind,
            "output": self.output,
            "error": self.error,
            "delay_seconds": self.delay_seconds,
            "failure": self.failure,
            "used_us": int(self.used_seconds * 1_000_000),
            "progress": self.progress,
            "steps": [step.as_json() for step in self.steps],
        }
