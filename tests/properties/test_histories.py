"""Random histories of every verb on a few tenants and two queues, against the reference model (I2, I5, I6, I7, A3.1).

A trigger notes every change of a task's state and token, so that each move is judged and not only where it led.
"""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tenants.errors import DuctorError
from tenants.policy import FREEZES, set_freeze, set_tenant_policy
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_queue, build_tenant, rows
from tests.database import as_role, owner
from tests.properties.model import TERMINAL, Model, ModelTenant, Wanted
from workflows.admission import NewTask, enqueue
from workflows.cancelling import cancel
from workflows.claims import Claim, Outcome, finish, heartbeat, release, take
from workflows.recovery import recover
from workflows.states import MOVES, State

STEPS = 200
CHECK_EVERY = 40
QUEUES = ("default", "external:test")
WORKERS = ("w1", "w2", "w3")
LEASE = 10.0
EPOCH = datetime(2040, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def moves() -> Iterator[None]:
    """Have the database note every change of a task."""
    build_queue(QUEUES[1])
    owner().execute(
        "create table review_moves (n bigserial, id uuid, was text, now text, old_token bigint, new_token bigint);"
        "create function review_note() returns trigger language plpgsql security definer as $$ begin"
        " insert into public.review_moves (id, was, now, old_token, new_token)"
        " values (new.id, old.state, new.state, old.token, new.token); return null; end $$;"
        "create trigger review_note after update on workflows_task for each row"
        " when (old.state <> new.state or old.token <> new.token) execute function review_note()"
    )
    yield
    owner().execute("drop trigger review_note on workflows_task; drop function review_note(); drop table review_moves")


class History:
    """One seeded history on fresh tenants."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model()
        self.claims: list[Claim] = []
        self.done: list[str] = []
        clock.freeze(EPOCH.isoformat())
        for _ in range(self.random.randint(3, 4)):
            limits = self.limits()
            tenant = build_tenant(**limits)
            self.model.tenants[tenant.id] = ModelTenant(tenant.id, limits["max_outstanding"], limits["max_leases"])

    def limits(self) -> dict[str, int]:
        leases = self.random.randint(1, 6)
        return {
            "max_outstanding": self.random.randint(3, 25),
            "max_leases": leases,
            "weight": self.random.choice((1, 1, 2, 5)),
            "guaranteed_leases": self.random.choice((0, 0, leases // 2)),
        }

    def run(self) -> None:
        acts: dict[Callable[[], str], int] = {
            self.start: 24,
            self.claim: 24,
            self.finish: 18,
            self.heartbeat: 6,
            self.release: 6,
            self.cancel: 5,
            self.recover: 3,
            self.advance: 8,
            self.set_policy: 2,
            self.freeze: 3,
        }
        for step in range(1, STEPS + 1):
            (act,) = self.random.choices(list(acts), list(acts.values()))
            self.done.append(f"{step} {act.__name__}")
            self.done[-1] += " " + act()
            if step % CHECK_EVERY == 0:
                self.check()
        self.check()

    def tenant(self) -> ModelTenant:
        return self.random.choice(list(self.model.tenants.values()))

    def start(self) -> str:
        tenant = self.tenant()
        wanted = [
            Wanted(
                queue=self.random.choice(QUEUES),
                priority=self.random.choice((0, 0, 0, 5, -5)),
                delay=self.random.choice((0.0, 0.0, 3.0, 12.0)),
                key=self.random.choice((None, None, *(f"k{n}" for n in range(8)))),
                max_failures=2,
            )
            for _ in range(self.random.choice((1, 1, 1, 2, 4)))
        ]
        expected = self.model.start_refusal(tenant, wanted)
        tasks = [
            NewTask("w", 1, {}, one.key, one.queue, one.priority, None, one.delay or None, one.max_failures)
            for one in wanted
        ]
        immediate = self.random.random() < 0.5
        try:
            answers = enqueue(tenant_id=tenant.id, tasks=tasks, principal=PRINCIPAL, immediate=immediate)
        except DuctorError as error:
            assert type(error).__name__ == expected
            return f"refused: {expected}"
        assert expected is None
        self.model.started(tenant, wanted, [(answer.task_id, answer.created) for answer in answers])
        return f"{len(wanted)}"

    def claim(self) -> str:
        queue, worker = self.random.choice(QUEUES), self.random.choice(WORKERS)
        limit, each = self.random.choice((1, 2, 5, 20)), self.random.choice((1, 3, 50))
        self.model.promote(queue)
        self.model.recover(self.model.expired(queue))
        taken = take(worker=worker, queue=queue, limit=limit, per_tenant=each, lease_seconds=LEASE)
        self.model.claimed(worker, queue, limit, each, LEASE, taken.tasks)
        self.claims += [task.claim for task in taken.tasks]
        return f"{len(taken.tasks)} of {queue}"

    def some(self) -> list[Claim]:
        """Return claims of one worker, fresh and stale ones."""
        worker = self.random.choice(WORKERS)
        recent = [claim for claim in self.claims[-40:] if claim.worker == worker]
        self.random.shuffle(recent)
        known = {claim.task_id: claim for claim in recent}
        return self.random.sample(list(known.values()), min(len(known), self.random.randint(1, 6)))

    def finish(self) -> str:
        outcomes = []
        for claim in self.some():
            kind: Any = self.random.choice(("completed", "completed", "retry", "retry", "failed"))
            failure = kind == "failed" or (kind == "retry" and self.random.random() < 0.5)
            delay = self.random.choice((0.0, 0.0, 4.0)) if kind == "retry" else 0.0
            used = self.random.choice((0.0, 0.01, 2.0))
            outcomes.append(Outcome(claim, kind, {}, None, delay, failure, used))
        if not outcomes:
            return "nothing"
        stale = finish(outcomes=outcomes)
        assert stale == {one.claim for one in outcomes if not self.model.holds(one.claim)}
        for one in outcomes:
            if one.claim not in stale:
                self.model.finished(one.claim, one.kind, one.delay_seconds, one.failure)
        return f"{len(outcomes)}, {len(stale)} stale"

    def heartbeat(self) -> str:
        claims = self.some()
        if not claims:
            return "nothing"
        beats = heartbeat(claims=claims, lease_seconds=LEASE)
        assert beats == {claim: "extended" if self.model.holds(claim) else "lost" for claim in claims}
        for claim in claims:
            if beats[claim] == "extended":
                self.model.beaten(claim, LEASE)
        return f"{len(claims)}"

    def release(self) -> str:
        claims, delay = self.some(), self.random.choice((0.0, 5.0))
        if not claims:
            return "nothing"
        stale = release(claims=claims, delay_seconds=delay)
        assert stale == {claim for claim in claims if not self.model.holds(claim)}
        for claim in claims:
            if claim not in stale:
                self.model.released(claim, delay)
        return f"{len(claims)}, {len(stale)} stale"

    def cancel(self) -> str:
        if not self.model.tasks:
            return "nothing"
        task, tenant = self.random.choice(list(self.model.tasks.values())), self.tenant()
        by = tenant.id if self.random.random() < 0.2 else task.tenant
        expected = "TaskNotFound" if by != task.tenant else "TaskFinished" if task.state in TERMINAL else None
        try:
            assert cancel(tenant_id=by, task_id=task.id, principal=PRINCIPAL).state == "cancelled"
        except DuctorError as error:
            assert type(error).__name__ == expected
            return f"refused: {expected}"
        assert expected is None
        task.state, task.worker = "cancelled", ""
        return "one"

    def recover(self) -> str:
        expired = self.model.expired()
        assert recover(limit=100) == len(expired)
        self.model.recover(expired)
        return f"{len(expired)}"

    def advance(self) -> str:
        self.model.now += self.random.choice((1.0, 3.0, 9.0, 12.0))
        clock.freeze((EPOCH + timedelta(seconds=self.model.now)).isoformat())
        return f"to {self.model.now}"

    def set_policy(self) -> str:
        tenant, limits = self.tenant(), self.limits()
        with as_role("operator"):
            set_tenant_policy(tenant_id=tenant.id, principal=PRINCIPAL, **limits)
        tenant.max_outstanding, tenant.max_leases = limits["max_outstanding"], limits["max_leases"]
        return f"{limits}"

    def freeze(self) -> str:
        tenant = self.tenant()
        frozen = frozenset(name for name in FREEZES if self.random.random() < 0.25)
        with as_role("operator"):
            set_freeze(tenant_id=tenant.id, freeze=frozen, principal=PRINCIPAL)
        tenant.frozen = frozen
        return f"{sorted(frozen)}"

    def check(self) -> None:
        """Compare the database with the model, and judge all moves since the last look."""
        assert_counters_true()
        seen = rows("select id, state, token, attempt, failures, alone, worker from workflows_task order by id")
        assert seen == sorted((task.seen() for task in self.model.tasks.values()), key=lambda task: task[0])
        tokens: dict[UUID, int] = {}
        for task_id, was, now, old, new in rows(
            "with taken as (delete from review_moves returning *)"
            " select id, was, now, old_token, new_token from taken order by n"
        ):
            assert was == now or State(now) in MOVES[State(was)], (was, now)
            assert new == old + (now == "leased"), (was, now, old, new)
            assert tokens.setdefault(task_id, old) == old
            tokens[task_id] = new


def run(seed: int) -> None:
    history = History(seed)
    try:
        history.run()
    except AssertionError as error:
        lines = "\n".join(history.done[-30:])
        raise AssertionError(f"seed {seed} at step {len(history.done)}: {error}\n{lines}") from error


@pytest.mark.parametrize("seed", range(25))
def test_a_history_is_as_the_model_says(seed: int) -> None:
    run(seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_many_histories_are_as_the_model_says(seed: int) -> None:
    run(seed)
