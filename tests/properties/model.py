"""The reference model of the kernel: what each verb has to answer, kept in plain Python with a clock of its own.

It knows states, tokens, limits, leases and keys. It does not know the fair order between tenants: of a claim it says
which answers are lawful, and takes over the one that was given.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from workflows.leased import Claim, ClaimedTask

TERMINAL = ("completed", "failed", "cancelled")


@dataclass
class ModelTask:
    """One task; times are seconds of the model's clock."""

    id: UUID
    tenant: UUID
    queue: str
    priority: int
    due: float
    state: str
    max_failures: int
    token: int = 0
    attempt: int = 0
    failures: int = 0
    alone: bool = False
    worker: str = ""
    expires: float = 0.0

    def place(self) -> tuple[Any, ...]:
        """Return its place inside its tenant's queue."""
        return (-self.priority, self.due, self.id.bytes)

    def seen(self) -> tuple[Any, ...]:
        """Return what the database must show of it."""
        return (self.id, self.state, self.token, self.attempt, self.failures, self.alone, self.worker or None)


@dataclass
class ModelTenant:
    """One tenant's limits, freezes and keys."""

    id: UUID
    max_outstanding: int
    max_leases: int
    frozen: frozenset[str] = frozenset()
    keys: dict[str, tuple[UUID, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """One task of a start: `key` None for none; `content` is all that a key is bound to."""

    queue: str
    priority: int
    delay: float
    key: str | None
    max_failures: int

    @property
    def content(self) -> Any:
        return (self.queue, self.priority, self.delay)


class Model:
    """All tenants and tasks."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tenants: dict[UUID, ModelTenant] = {}
        self.tasks: dict[UUID, ModelTask] = {}

    def of(self, tenant: UUID, *states: str) -> list[ModelTask]:
        """Return a tenant's tasks in these states."""
        return [task for task in self.tasks.values() if task.tenant == tenant and task.state in states]

    def outstanding(self, tenant: UUID) -> int:
        """Return how many tasks of a tenant have not ended."""
        return len(self.of(tenant, "queued", "leased", "waiting"))

    def start_refusal(self, tenant: ModelTenant, wanted: Sequence[Wanted]) -> str | None:
        """Return the name of the error that a start has to raise, or None."""
        fresh = [one for one in wanted if one.key is None]
        new_keys = {one.key for one in wanted if one.key is not None and one.key not in tenant.keys}
        places = len(fresh) + len(new_keys)
        if places and "admission" in tenant.frozen:
            return "TenantFrozen"
        if places and self.outstanding(tenant.id) + places > tenant.max_outstanding:
            return "QuotaExceeded"
        bound = {key: content for key, (_, content) in tenant.keys.items()}
        for one in wanted:
            if one.key is not None and bound.setdefault(one.key, one.content) != one.content:
                return "KeyConflict"
        return None

    def started(self, tenant: ModelTenant, wanted: Sequence[Wanted], answers: Iterable[tuple[UUID, bool]]) -> None:
        """Take over the answers of a start that was not refused."""
        for one, (task_id, created) in zip(wanted, answers, strict=True):
            known = tenant.keys.get(one.key) if one.key is not None else None
            assert created == (known is None)
            if known is not None:
                assert known[0] == task_id
                continue
            assert task_id not in self.tasks
            state = "waiting" if one.delay > 0 else "queued"
            due = self.now + one.delay
            self.tasks[task_id] = ModelTask(task_id, tenant.id, one.queue, one.priority, due, state, one.max_failures)
            if one.key is not None:
                tenant.keys[one.key] = (task_id, one.content)

    def promote(self, queue: str) -> None:
        """Make ready what is due, as each claim does first."""
        for task in self.tasks.values():
            due = task.state == "waiting" and task.queue == queue and task.due <= self.now
            if due and "timers" not in self.tenants[task.tenant].frozen:
                task.state = "queued"

    def expired(self, queue: str | None = None) -> list[ModelTask]:
        """Return the tasks whose lease has run out."""
        leased = [task for task in self.tasks.values() if task.state == "leased" and task.expires <= self.now]
        return [task for task in leased if queue is None or task.queue == queue]

    def recover(self, tasks: Iterable[ModelTask]) -> None:
        """Take these expired tasks back."""
        for task in tasks:
            task.failures += task.alone
            task.alone = True
            task.worker = ""
            task.state = "failed" if task.failures >= task.max_failures else "queued"

    def claimable(self, queue: str) -> dict[UUID, list[ModelTask]]:
        """Return, by tenant, what could be claimed now, in order."""
        found: dict[UUID, list[ModelTask]] = {}
        for tenant in self.tenants.values():
            ready = sorted((t for t in self.of(tenant.id, "queued") if t.queue == queue), key=ModelTask.place)
            free = tenant.max_leases - len(self.of(tenant.id, "leased"))
            if ready and free > 0 and "claims" not in tenant.frozen:
                found[tenant.id] = ready
        return found

    def claimed(
        self, worker: str, queue: str, limit: int, each: int, lease: float, answer: Sequence[ClaimedTask]
    ) -> None:
        """Check that a claim's answer is lawful, and take it over."""
        ready = self.claimable(queue)
        assert len(answer) <= limit
        assert bool(answer) == bool(ready), f"{len(answer)} claimed, while {len(ready)} tenants have ready work"
        for tenant_id, count in Counter(one.claim.tenant_id for one in answer).items():
            assert tenant_id in ready and count <= each
            tasks = [self.tasks[one.claim.task_id] for one in answer if one.claim.tenant_id == tenant_id]
            if ready[tenant_id][0].alone:
                assert tasks == ready[tenant_id][:1] and len(answer) == 1
            else:
                assert tasks == [task for task in ready[tenant_id] if not task.alone][:count]
            leased = len(self.of(tenant_id, "leased"))
            assert leased + count <= self.tenants[tenant_id].max_leases
        for one in answer:
            task = self.tasks[one.claim.task_id]
            task.state, task.worker, task.expires = "leased", worker, self.now + lease
            task.token += 1
            task.attempt += 1
            assert (one.claim.worker, one.claim.token, one.attempt) == (worker, task.token, task.attempt)
            assert (one.failures, one.alone, one.max_failures) == (task.failures, task.alone, task.max_failures)

    def holds(self, claim: Claim) -> bool:
        """Say whether a claim still holds."""
        task = self.tasks[claim.task_id]
        held = (task.state, task.token, task.worker) == ("leased", claim.token, claim.worker)
        return held and task.expires > self.now

    def beaten(self, claim: Claim, lease: float) -> None:
        """Extend the lease of a claim that holds."""
        task = self.tasks[claim.task_id]
        task.expires = max(task.expires, self.now + lease)

    def finished(self, claim: Claim, kind: str, delay: float, failure: bool) -> None:
        """End the tick of a claim that holds."""
        task = self.tasks[claim.task_id]
        task.failures += failure or kind == "failed"
        task.worker, task.alone = "", False
        if kind in ("completed", "failed"):
            task.state = kind
        elif failure and task.failures >= task.max_failures:
            task.state = "failed"
        else:
            task.state, task.due = ("waiting" if delay > 0 else "queued"), self.now + delay

    def released(self, claim: Claim, delay: float) -> None:
        """Give back the task of a claim that holds."""
        task = self.tasks[claim.task_id]
        task.attempt -= 1
        task.worker = ""
        task.state = "waiting" if delay > 0 else "queued"
        if delay > 0:
            task.due = self.now + delay
