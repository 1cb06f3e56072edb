"""django-q2's schedules: fired once, in their own tenant, whatever stands in another's."""

import contextvars
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django.db.utils import ProgrammingError
from django_q.models import Failure, Schedule, Task
from django_q.tasks import result, schedule

from ductor.contrib.q2 import schedules
from tenants.errors import ScopeMissing
from tenants.identity import SYSTEM_TENANT_ID
from tenants.policy import set_freeze
from tenants.queries import TenantView
from tenants.scope import attach
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows
from tests.compat.conftest import SHOP
from tests.database import as_role, owner
from tests.workflows.conftest import TestWorker
from workflows import registry
from workflows.errors import InputInvalid, UnknownWorkflow
from workflows.system import ensure_running

ADD = f"{SHOP}.add"
STARTED = "select tenant_id, workflow, queue from workflows_task where workflow like 'q2:%%' order by id"
PAST = datetime.now(UTC) - timedelta(minutes=10)


def build_schedule(tenant: TenantView | None, *args: Any, func: str = ADD, **more: Any) -> Schedule:
    """Make a schedule that is due."""
    more.setdefault("next_run", PAST)
    if tenant is None:
        with as_role("operator"):
            return schedule(func, *args, **more)
    with attach(tenant.id):
        return schedule(func, *args, **more)


def test_a_schedule_fires_in_its_own_tenant_and_leaves_its_result(shop: TestWorker) -> None:
    tenant = build_tenant()
    made = build_schedule(tenant, 1, b=2, name="sums", hook=f"{SHOP}.note")
    assert schedules.fire_due() == schedules.LOOK_SECONDS
    assert rows(STARTED) == [(tenant.id, f"q2:{ADD}", "default")]
    assert rows("select count(*) from django_q_schedule") == [(0,)]
    shop.run_all()
    with attach(tenant.id):
        (task,) = Task.objects.filter(group="sums")
        assert (task.result, task.hook) == (3, f"{SHOP}.note")
        assert result(f"after-{task.id}") == 1003
    assert made.func == ADD
    assert_counters_true()


def test_a_repeating_schedule_moves_on_and_says_which_task_was_its_last(shop: TestWorker) -> None:
    tenant = build_tenant()
    made = build_schedule(
        tenant, 1, schedule_type=Schedule.HOURLY, repeats=2, intended_date_kwarg="b", cluster="ductor"
    )
    assert schedules.fire(tenant_id=tenant.id, schedule_id=made.pk)
    assert not schedules.fire(tenant_id=tenant.id, schedule_id=made.pk)
    with attach(tenant.id):
        after = Schedule.objects.get()
    assert (after.next_run, after.repeats) == (PAST + timedelta(hours=1), 1)
    ((task_id, kwargs),) = rows(
        "select replace(id::text, '-', ''), input -> 'links' -> 0 -> 'kwargs' from workflows_task"
    )
    assert (after.task, kwargs) == (task_id, {"b": PAST.isoformat()})
    clock.advance(3600)
    assert schedules.fire(tenant_id=tenant.id, schedule_id=made.pk)
    clock.advance(7200)
    assert not schedules.fire(tenant_id=tenant.id, schedule_id=made.pk)
    assert len(rows(STARTED)) == 2


def test_missed_times_are_made_up_one_by_one(shop: TestWorker) -> None:
    ten_ago = datetime.now(UTC) - timedelta(minutes=10)
    build_schedule(build_tenant(), 1, schedule_type=Schedule.MINUTES, minutes=3, next_run=ten_ago)
    assert 0 < schedules.fire_due() <= schedules.LOOK_SECONDS
    assert len(rows(STARTED)) == 4


def test_a_once_with_repeats_stays_and_does_not_fire_again(shop: TestWorker) -> None:
    build_schedule(build_tenant(), 1, repeats=1)
    schedules.fire_due()
    schedules.fire_due()
    assert len(rows(STARTED)) == 1
    assert rows("select repeats, task is not null from django_q_schedule") == [(0, True)]


def test_a_schedule_without_a_tenant_is_the_systems(shop: TestWorker) -> None:
    build_schedule(None, 20, 22, name="platform")
    assert rows("select tenant_id from django_q_schedule") == [(SYSTEM_TENANT_ID,)]
    schedules.fire_due()
    assert rows(STARTED) == [(SYSTEM_TENANT_ID, f"q2:{ADD}", "system")]
    shop.run_all()
    with attach(SYSTEM_TENANT_ID):
        assert Task.objects.get(group="platform").result == 42


def test_the_web_makes_no_schedule_without_a_tenant(shop: TestWorker) -> None:
    with pytest.raises(ScopeMissing):
        schedule(ADD, 1)
    with as_role("web"), pytest.raises(ScopeMissing):
        schedule(ADD, 1)
    assert rows("select count(*) from django_q_schedule") == [(0,)]


def test_another_tenants_schedules_can_not_be_seen_moved_or_made(shop: TestWorker) -> None:
    mine, other = build_tenant(), build_tenant()
    theirs = build_schedule(other, 1, name="nightly")
    before = rows("select md5(s::text) from django_q_schedule s")
    with attach(mine.id):
        assert not Schedule.objects.filter(pk=theirs.pk).exists()
        assert Schedule.objects.update(func="os.system") == 0
        assert Schedule.objects.all().delete()[0] == 0
        assert schedule(ADD, 1, name="nightly").name == "nightly"
        with pytest.raises(IntegrityError):
            schedule(ADD, 1, name="nightly")
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            _insert(other)
    with attach(mine.id):
        assert not schedules.fire(tenant_id=mine.id, schedule_id=theirs.pk)
    owner().execute("delete from django_q_schedule where tenant_id = %s", [mine.id])
    assert rows("select md5(s::text) from django_q_schedule s") == before


def _insert(tenant: TenantView, **fields: Any) -> None:
    """What SQL alone can put into a schedule."""
    known = {"tenant_id": tenant.id, "func": ADD, "schedule_type": "O", "repeats": -1, "next_run": PAST, **fields}
    with connections["default"].cursor() as cursor:
        cursor.execute(
            f"insert into django_q_schedule ({', '.join(known)}) values ({', '.join(['%s'] * len(known))})",
            list(known.values()),
        )


def insert_raw(tenant: TenantView, **fields: Any) -> None:
    with attach(tenant.id), transaction.atomic():
        _insert(tenant, **fields)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"func": "os.system"}, UnknownWorkflow),
        ({"func": ADD, "hook": "os.getcwd"}, UnknownWorkflow),
        ({"func": ADD, "args": "__import__('os').getcwd()"}, InputInvalid),
        ({"func": ADD, "args": "(" * 300}, InputInvalid),
        ({"func": ADD, "args": "1" * 70_000}, InputInvalid),
        ({"func": ADD, "args": "{1, 2}"}, InputInvalid),
        ({"func": ADD, "kwargs": "x=1) or g("}, InputInvalid),
        ({"func": ADD, "kwargs": "**{'x': 1}"}, InputInvalid),
        ({"func": ADD, "kwargs": "1"}, InputInvalid),
        ({"func": ADD, "kwargs": "x=open('f')"}, InputInvalid),
    ],
)
def test_what_could_never_fire_is_refused_and_put_there_by_sql_it_fails_alone(
    shop: TestWorker, fields: dict[str, Any], refusal: type[Exception]
) -> None:
    tenant, other = build_tenant(), build_tenant()
    with attach(tenant.id), pytest.raises(refusal):
        Schedule(**fields).save()
    assert rows("select count(*) from django_q_schedule") == [(0,)]
    insert_raw(tenant, name="wrong", **fields)
    build_schedule(other, 1)
    schedules.fire_due()
    assert rows(STARTED) == [(other.id, f"q2:{ADD}", "default")]
    assert rows("select count(*) from django_q_schedule") == [(0,)]
    with attach(tenant.id):
        failure = Failure.objects.get(group="wrong")
    assert failure.func == fields["func"]
    assert failure.result
    assert_counters_true()


@pytest.mark.parametrize(
    "fields", [{"schedule_type": "X"}, {"schedule_type": "C", "cron": "* * * * *"}, {"schedule_type": "C"}]
)
def test_a_schedule_whose_next_time_nobody_can_name_ends(shop: TestWorker, fields: dict[str, Any]) -> None:
    tenant = build_tenant()
    insert_raw(tenant, **fields)
    schedules.fire_due()
    schedules.fire_due()
    assert len(rows(STARTED)) == 1
    assert rows("select repeats from django_q_schedule") == [(0,)]


def freeze(tenant: TenantView) -> None:
    with as_role("operator"):
        set_freeze(tenant_id=tenant.id, freeze=["admission"], principal=PRINCIPAL)


@pytest.mark.parametrize("hold", ["limit", "policy", "freeze"])
def test_a_tenant_that_may_start_nothing_holds_up_nobody_and_loses_nothing(shop: TestWorker, hold: str) -> None:
    held = build_tenant(max_outstanding=1, policy=hold != "policy")
    if hold == "freeze":
        freeze(held)
    if hold == "limit":
        build_schedule(held, 0)
        schedules.fire_due()
    for number in range(5):
        build_schedule(held, number, next_run=PAST - timedelta(days=1))
    other = build_tenant()
    build_schedule(other, 1)
    assert schedules.fire_due() == schedules.LOOK_SECONDS
    assert [row for row in rows(STARTED) if row[0] == other.id] == [(other.id, f"q2:{ADD}", "default")]
    assert rows("select tenant_id, count(*)::int from django_q_schedule group by 1") == [(held.id, 5)]
    if hold == "limit":
        for _ in range(6):
            contextvars.Context().run(shop.run_all)
            schedules.fire_due()
        assert len(rows(STARTED)) == 7
        assert rows("select count(*) from django_q_schedule") == [(0,)]
    assert_counters_true()


def test_a_tenants_many_do_not_hold_up_anothers_one(shop: TestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    many, one = build_tenant(), build_tenant()
    for number in range(5):
        build_schedule(many, number, next_run=PAST - timedelta(days=1))
    build_schedule(one, 1)
    monkeypatch.setattr(schedules, "PAGE", 2)
    schedules.fire_due()
    assert [row[0] for row in rows(STARTED)] == [many.id, one.id, *[many.id] * 4]


def test_one_schedule_fired_by_many_at_once_starts_one_task_each_time(shop: TestWorker) -> None:
    tenant = build_tenant()
    made = build_schedule(tenant, 1, schedule_type=Schedule.MINUTES, minutes=1, next_run=PAST)
    fired: list[bool] = []
    barrier = threading.Barrier(6)

    def fire() -> None:
        for _ in range(5):
            barrier.wait()
            fired.append(schedules.fire(tenant_id=tenant.id, schedule_id=made.pk))
        connections.close_all()

    threads = [threading.Thread(target=fire) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    times = rows("select input -> 'links' -> 0 -> 'kwargs' from workflows_task")
    with attach(tenant.id):
        moved = Schedule.objects.get().next_run - PAST
    assert len(times) == fired.count(True) == moved / timedelta(minutes=1)
    assert len(times) >= 5
    assert_counters_true()


def test_a_firing_that_does_not_commit_has_not_happened(shop: TestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = build_tenant()
    made = build_schedule(tenant, 1)
    before = rows("select md5(s::text) from django_q_schedule s")

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(schedules, "_move_on", die)
        with pytest.raises(KeyboardInterrupt):
            schedules.fire(tenant_id=tenant.id, schedule_id=made.pk)
    assert rows("select md5(s::text) from django_q_schedule s") == before
    assert rows(STARTED) == []
    assert schedules.fire(tenant_id=tenant.id, schedule_id=made.pk)
    assert_counters_true()


@pytest.fixture
def watching(shop: TestWorker) -> Callable[[], int]:
    registry.register(schedules.watch)
    return lambda: contextvars.Context().run(shop.run_all)


def test_the_systems_task_fires_for_every_tenant_and_comes_again_for_ever(watching: Callable[[], int]) -> None:
    tenants = [build_tenant(), build_tenant()]
    for tenant in tenants:
        build_schedule(tenant, func=f"{SHOP}.whose", name="w")
    ensure_running(schedules.watch, schedules.KEY)
    ensure_running(schedules.watch, schedules.KEY)
    watching()
    for tenant in tenants:
        with attach(tenant.id):
            assert Task.objects.get(group="w").result == str(tenant.id)
    for _ in range(3):
        clock.advance(6)
        assert watching() == 1
    assert rows("select key, state, failures from workflows_task where workflow = 'q2-schedules'") == [
        ("q2-schedules-1", "waiting", 0)
    ]
    assert_counters_true()
