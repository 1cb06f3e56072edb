"""One hot tenant does not monopolize the workers (seed 1; I29; DESIGN D5), measured on the real verbs."""

from collections import Counter

from ductor.bench.order import jain_index
from tenants.queries import TenantView
from tests import clock
from tests.builders import assert_counters_true, build_policy, build_tenant, claim, rows, start
from workflows.claims import ClaimedTask, Outcome, finish


def serve(tasks: list[ClaimedTask], used_seconds: float = 0.01) -> None:
    """Finish tasks that took `used_seconds` each, on a clock that lets them."""
    finish(outcomes=[Outcome(task.claim, "completed", used_seconds=used_seconds) for task in tasks])


def served(count: int, batch: int = 20, used: dict | None = None) -> Counter:
    """Claim and serve `count` tasks; returns how many each tenant got."""
    shares: Counter = Counter()
    while sum(shares.values()) < count:
        tasks = claim(batch)
        assert tasks
        for task in tasks:
            shares[task.claim.tenant_id] += 1
        # The charge is corrected by what was used, but never by more than has passed since the claim.
        clock.advance(1)
        finish(
            outcomes=[
                Outcome(task.claim, "completed", used_seconds=(used or {}).get(task.claim.tenant_id, 0.01))
                for task in tasks
            ]
        )
    return shares


def fill(tenants: list[TenantView], each: int) -> None:
    for tenant in tenants:
        for offset in range(0, each, 1000):
            start(tenant, min(1000, each - offset))


def test_equal_tenants_get_equal_shares() -> None:
    tenants = [build_tenant(max_outstanding=10_000) for _ in range(10)]
    fill(tenants, 300)
    shares = served(1000)
    assert jain_index([shares[tenant.id] for tenant in tenants]) >= 0.99
    assert_counters_true()


def test_weights_divide_what_is_served() -> None:
    tenants = [build_tenant(max_outstanding=10_000, max_leases=100, weight=weight) for weight in (1, 2, 5)]
    fill(tenants, 1500)
    shares = served(1600, batch=16)
    total = sum(shares.values())
    for tenant, weight in zip(tenants, (1, 2, 5), strict=True):
        assert abs(shares[tenant.id] / total - weight / 8) <= 0.02


def test_a_weight_acts_on_the_backlog_at_once() -> None:
    a, b = (build_tenant(max_outstanding=10_000, max_leases=100) for _ in range(2))
    fill([a, b], 1000)
    served(200)
    build_policy(a, max_outstanding=10_000, max_leases=100, weight=4)
    shares = served(400)
    assert abs(shares[a.id] / sum(shares.values()) - 0.8) <= 0.03


def test_long_tasks_are_charged_as_lease_seconds() -> None:
    """A tenant whose tasks take four times as long gets a quarter of the starts: lease time is what is shared."""
    slow, quick = (build_tenant(max_outstanding=10_000, max_leases=100) for _ in range(2))
    fill([slow, quick], 1500)
    served(300, used={slow.id: 0.4, quick.id: 0.1})
    shares = served(800, used={slow.id: 0.4, quick.id: 0.1})
    assert abs(shares[slow.id] / sum(shares.values()) - 0.2) <= 0.03


def test_a_hot_tenant_among_a_hundred_gets_one_share() -> None:
    hot = build_tenant(max_outstanding=100_000, max_leases=1000)
    fill([hot], 2500)
    quiet = [build_tenant(max_leases=100) for _ in range(99)]
    fill(quiet, 25)
    shares = served(2000, batch=50)
    assert 0.009 <= shares[hot.id] / 2000 <= 0.0125


def test_quiet_tenants_are_done_before_the_hot_ones_hundredth() -> None:
    hot = build_tenant(max_outstanding=10_000, max_leases=1000)
    fill([hot], 1000)
    served(50)
    quiet = [build_tenant() for _ in range(9)]
    fill(quiet, 10)
    order: list = []
    while sum(tenant_id != hot.id for tenant_id in order) < 90:
        tasks = claim(10)
        order += [task.claim.tenant_id for task in tasks]
        serve(tasks)
    assert order.count(hot.id) < 100


def test_idling_banks_nothing() -> None:
    busy, idle = build_tenant(max_outstanding=10_000, max_leases=100), build_tenant(max_outstanding=10_000)
    fill([busy], 1500)
    start(idle)
    served(1000)
    fill([idle], 500)
    shares = served(200)
    assert 0.4 <= shares[idle.id] / sum(shares.values()) <= 0.6


def test_guaranteed_leases_go_first_and_are_lent_while_unused() -> None:
    greedy = build_tenant(max_outstanding=10_000, max_leases=100)
    promised = build_tenant(max_outstanding=10_000, max_leases=100, guaranteed_leases=5)
    fill([greedy], 200)
    lent = claim(20)
    assert {task.claim.tenant_id for task in lent} == {greedy.id}
    fill([promised], 50)
    first = claim(5)
    assert [task.claim.tenant_id for task in first] == [promised.id] * 5
    assert_counters_true()


def test_a_blocked_tenant_costs_a_claim_nothing_and_comes_back_in_the_freeing_transaction() -> None:
    tenant = build_tenant(max_leases=2)
    start(tenant, 5)
    tasks = claim(10)
    assert len(tasks) == 2
    assert rows("select blocked from tenants_turn") == [(4,)]
    serve(tasks[:1])
    assert rows("select blocked from tenants_turn") == [(0,)]
    serve(tasks[1:])
    serve(claim(10))
    serve(claim(10))
    assert rows("select blocked, queued from tenants_turn") == [(1, 0)]
    assert_counters_true()
