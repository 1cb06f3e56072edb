"""Wake-ups that must not be lost: who registers as idle, claims once more and then sleeps hears of all later work."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import transaction

from ductor.databases import connection_settings, psycopg_parameters
from tenants.policy import set_freeze
from tests.builders import PRINCIPAL, assert_counters_true, build_policy, build_tenant, claim, rows, start
from tests.database import as_role, touch
from tests.races import Aside
from workflows.admission import NewTask, enqueue
from workflows.claims import Outcome, finish, release, take
from workflows.waking import listen_idle


class Sleeper:
    """A worker that registered as idle and listens; `asleep` says how long it would sleep after one more claim."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection

    def registers(self) -> None:
        self.connection.execute("listen ductor_wake")
        listen_idle(worker="sleeper", queues=["default"])

    def asleep(self) -> float:
        """Claim once more; returns the seconds until this worker would look again by itself."""
        taken = take(worker="sleeper", queue="default", limit=10)
        assert taken.tasks == []
        if taken.next_due_at is None:
            return float("inf")
        return (taken.next_due_at - datetime.now(UTC)).total_seconds()

    def heard(self, timeout: float = 3.0) -> bool:
        return bool(list(self.connection.notifies(timeout=timeout, stop_after=1)))


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    touch()
    with psycopg.connect(**psycopg_parameters(connection_settings("worker")), autocommit=True) as connection:
        yield Sleeper(connection)


def held_open(act: Callable[[], None]) -> tuple[Aside, threading.Event]:
    """Run `act` in a transaction of its own that stays open until the event is set."""
    done, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            act()
            done.set()
            assert go_on.wait(20)

    aside = Aside(hold)
    assert done.wait(10)
    return aside, go_on


@pytest.mark.parametrize("delay", [None, 5.0], ids=["ready at once", "delayed"])
def test_work_admitted_before_the_registration_and_committed_after_the_last_claim(
    sleeper: Sleeper, delay: float | None
) -> None:
    """The admission looked for idle workers before there was one; it commits after that one's last look."""
    tenant = build_tenant()
    task = NewTask("w", 1, None, delay_seconds=delay)
    aside, go_on = held_open(
        lambda: enqueue(tenant_id=tenant.id, tasks=[task], principal=PRINCIPAL, immediate=True) and None
    )
    sleeper.registers()
    seconds = sleeper.asleep()
    go_on.set()
    aside.result()
    assert seconds < 1.0 or sleeper.heard()
    if delay is None:
        assert len(claim()) == 1
    assert_counters_true()


def test_an_open_transaction_that_only_inserted_does_not_keep_idle_workers_looking(sleeper: Sleeper) -> None:
    tenant = build_tenant()
    aside, go_on = held_open(lambda: start(tenant) and None)
    sleeper.registers()
    assert sleeper.asleep() == float("inf")
    go_on.set()
    aside.result()
    assert sleeper.heard()


def test_a_delayed_start_that_is_due_before_the_sleeper_looks_again_wakes_it(sleeper: Sleeper) -> None:
    tenant, other = build_tenant(), build_tenant()
    start(other, delay_seconds=600)
    sleeper.registers()
    assert 590 < sleeper.asleep() <= 600
    start(tenant, delay_seconds=2)
    assert sleeper.heard()
    assert sleeper.asleep() <= 2
    start(tenant, delay_seconds=300)
    assert not sleeper.heard(0.3), "what is due later than the rest of its turn is no news"


def test_a_retrys_pause_and_a_delayed_release_are_news_too(sleeper: Sleeper) -> None:
    tenant = build_tenant()
    start(tenant, 2)
    first, second = claim(2)
    sleeper.registers()
    finish(outcomes=[Outcome(first.claim, "retry", delay_seconds=5)])
    assert sleeper.heard()
    release(claims=[second.claim], delay_seconds=2)
    assert sleeper.heard()
    assert sleeper.asleep() <= 2
    assert_counters_true()


def test_lifted_freezes_and_raised_limits_wake(sleeper: Sleeper) -> None:
    tenant = build_tenant(max_leases=1)

    def freeze(*names: str) -> None:
        with as_role("operator"):
            set_freeze(tenant_id=tenant.id, freeze=set(names), principal=PRINCIPAL)

    freeze("timers")
    start(tenant, delay_seconds=0.05)
    start(tenant)
    assert len(claim()) == 1
    start(tenant)
    threading.Event().wait(0.1)
    assert claim() == []
    sleeper.registers()
    build_policy(tenant, max_outstanding=1000, max_leases=2)
    assert sleeper.heard()
    assert len(claim()) == 1
    assert sleeper.asleep() > 1
    freeze()
    assert sleeper.heard()
    freeze("claims")
    build_policy(tenant, max_outstanding=1000, max_leases=3)
    assert sleeper.asleep() > 1
    sleeper.heard(0.1)
    freeze()
    assert sleeper.heard()
    assert len(claim()) == 1
    assert_counters_true()


def test_a_busy_platform_notifies_nobody(sleeper: Sleeper) -> None:
    tenant = build_tenant()
    sleeper.connection.execute("listen ductor_wake")
    start(tenant)
    start(tenant, delay_seconds=timedelta(seconds=1).total_seconds())
    assert not sleeper.heard(0.3)
    assert rows("select count(*) from tenants_listener") == [(0,)]
