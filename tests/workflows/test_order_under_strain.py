"""The fair order under timers, floors, corrections and cancels: nobody waits for what somebody else piled up."""

from uuid import UUID

from tenants.policy import set_freeze
from tenants.queries import TenantView
from tests import clock
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, complete, rows, start
from tests.database import as_role, owner
from workflows.cancelling import cancel
from workflows.claims import Outcome, finish
from workflows.recovery import recover


def by_id(*tenants: TenantView) -> list[TenantView]:
    return sorted(tenants, key=lambda tenant: tenant.id.bytes)


def test_a_flood_of_due_timers_does_not_hold_up_another_tenants_timer() -> None:
    """5,000 timers of one tenant are due first; another's single one is promoted by the first claim or the second."""
    flood, quiet = by_id(build_tenant(max_outstanding=10_000), build_tenant())
    owner().execute("update tenants_load set max_outstanding = 10000, max_leases = 1000")
    for _ in range(5):
        start(flood, 1000, delay_seconds=10)
    (task_id,) = start(quiet, delay_seconds=20)
    clock.advance(60)
    seen = [task.claim.task_id for _ in range(3) for task in claim(20, worker="w")]
    assert task_id in seen
    assert_counters_true()


def test_timers_of_a_hundred_flooded_tenants_come_in_turns() -> None:
    """Turns that promote a part go behind those that have waited for their first promotion."""
    floods = [build_tenant() for _ in range(100)]
    for tenant in floods:
        start(tenant, 20, delay_seconds=10)
    quiet = build_tenant()
    (task_id,) = start(quiet, delay_seconds=20)
    clock.advance(60)
    for _ in range(2):
        claim(1)
    assert rows("select state from workflows_task where id = %s", task_id)[0][0] in ("queued", "leased")
    for _ in range(6):
        claim(1)
    assert rows("select count(*) from workflows_task where state = 'waiting'") == [(0,)]
    assert_counters_true()


def test_a_hundred_frozen_turns_ahead_hide_nobodys_timer() -> None:
    frozen = [build_tenant() for _ in range(110)]
    with as_role("operator"):
        for tenant in frozen:
            set_freeze(tenant_id=tenant.id, freeze={"timers"}, principal=PRINCIPAL)
    for tenant in frozen:
        start(tenant, delay_seconds=1)
    quiet = build_tenant()
    (task_id,) = start(quiet, delay_seconds=2)
    clock.advance(60)
    assert [task.claim.task_id for _ in range(3) for task in claim(10)] == [task_id]
    with as_role("operator"):
        set_freeze(tenant_id=frozen[7].id, freeze=set(), principal=PRINCIPAL)
    assert [task.claim.tenant_id for task in claim(10)] == [frozen[7].id]


def key_of(tenant: TenantView) -> int:
    ((key,),) = rows("select key from tenants_turn where tenant_id = %s", tenant.id)
    return key


def test_a_floors_head_start_is_not_what_a_newcomer_has_to_catch_up_with() -> None:
    """A tenant below its guaranteed leases is served out of order; the clock is not moved by it."""
    favoured, steady = build_tenant(max_leases=50, guaranteed_leases=50), build_tenant(max_leases=50)
    start(favoured, 200)
    start(steady, 200)
    for _ in range(100):
        tasks = claim(1)
        assert tasks[0].claim.tenant_id == favoured.id
        clock.advance(1)
        finish(outcomes=[Outcome(tasks[0].claim, "completed", used_seconds=1)])
    newcomer = build_tenant()
    (task_id,) = start(newcomer)
    owner().execute("update tenants_load set guaranteed_leases = 0")
    owner().execute("update tenants_turn set below_floor = false")
    seen = [task.claim.task_id for _ in range(4) for task in claim(1)]
    assert task_id in seen
    assert key_of(newcomer) < key_of(favoured)


def test_estimates_under_way_do_not_put_a_newcomer_behind() -> None:
    """Two workers hold fifty instant tasks each, charged 0.1 s each as unseen work is; then a newcomer starts."""
    hot = build_tenant(max_leases=1000, max_outstanding=5000)
    start(hot, 1000)
    batches = [claim(50, worker=worker, per_tenant=50) for worker in ("a", "b")]
    for batch in batches:
        finish(outcomes=[Outcome(task.claim, "completed", used_seconds=0.001) for task in batch])
    complete(claim(50, worker="a", per_tenant=50))
    newcomer = build_tenant()
    (task_id,) = start(newcomer)
    seen: list[UUID] = []
    for _ in range(3):
        batch = claim(50, worker="a", per_tenant=50)
        seen += [task.claim.task_id for task in batch]
        finish(outcomes=[Outcome(task.claim, "completed", used_seconds=0.001) for task in batch])
    assert task_id in seen


def test_idling_banks_nothing_beside_a_busy_tenant() -> None:
    idler, busy = build_tenant(max_leases=1000), build_tenant(max_leases=1000)
    start(busy, 400)
    for _ in range(100):
        batch = claim(1)
        finish(outcomes=[Outcome(task.claim, "completed", used_seconds=0.001) for task in batch])
    start(idler, 200)
    shares = []
    for _ in range(100):
        (task,) = claim(1)
        shares.append(task.claim.tenant_id == idler.id)
        complete([task])
    assert 45 <= sum(shares) <= 60


def test_a_cancelled_lease_is_paid_for() -> None:
    """Whoever cancels his tasks before they end uses lease-seconds like everybody else."""
    tenant = build_tenant()
    start(tenant, 2)
    cancelled, finished = claim(2)
    before = key_of(tenant)
    clock.advance(40)
    cancel(tenant_id=tenant.id, task_id=cancelled.claim.task_id, principal=PRINCIPAL)
    after_cancel = key_of(tenant)
    assert 39_000_000 < after_cancel - before + 100_000 < 42_000_000
    finish(outcomes=[Outcome(finished.claim, "completed", used_seconds=40)])
    assert abs((key_of(tenant) - after_cancel) - (after_cancel - before)) < 2_000_000


def test_released_and_recovered_work_costs_nothing_beyond_its_charge() -> None:
    from workflows.claims import release

    tenant = build_tenant()
    start(tenant, 3)
    key = key_of(tenant)
    tasks = claim(3)
    assert release(claims=[task.claim for task in tasks]) == set()
    assert key_of(tenant) == key


def test_a_task_to_be_run_alone_gets_its_turn_beside_tenants_below_their_floor() -> None:
    """They stand first in every claim; whoever shares the rest of the batch shares it with the lonely one, too."""
    lonely = build_tenant()
    (task_id,) = start(lonely)
    assert len(claim(1, lease_seconds=5)) == 1
    clock.advance(10)
    assert recover(limit=10) == 1
    favoured, steady = build_tenant(guaranteed_leases=10, max_leases=10), build_tenant()
    start(favoured, 500)
    start(steady, 500)
    for _ in range(12):
        batch = claim(20)
        if task_id in [task.claim.task_id for task in batch]:
            assert len(batch) == 1 and batch[0].alone
            break
        finish(outcomes=[Outcome(task.claim, "completed", used_seconds=0.1) for task in batch])
    else:
        raise AssertionError("the lonely task starves")
