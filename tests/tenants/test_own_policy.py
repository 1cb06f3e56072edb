"""A tenant's own limits only tighten the operator's, at the version they were decided on, in races too."""

import threading
from typing import Any

import pytest
from django.db import connection

from tenants.errors import LimitInvalid, PolicyMissing, VersionMismatch
from tenants.identity import SYSTEM_TENANT_ID
from tenants.policy import set_own_policy
from tenants.queries import TenantView, get_policy, list_usage
from tenants.scope import attach
from tests.builders import PRINCIPAL, assert_counters_true, build_policy, build_tenant, claim, complete, rows, start
from workflows.errors import QuotaExceeded

LOAD = "select max_outstanding, max_leases, guaranteed_leases, weight from tenants_load where tenant_id = %s"


def tighten(tenant: TenantView, *versions: int, **changes: int | None) -> Any:
    """Set the tenant's own limits, at any version where none is named."""
    return set_own_policy(tenant_id=tenant.id, changes=changes, expected=versions or None, principal=PRINCIPAL)


def stored() -> list[Any]:
    return [rows(f"select md5(t::text) from {table} t order by 1") for table in ("tenants_policy", "tenants_load")]


def test_the_lower_limit_holds_and_null_lifts_it() -> None:
    tenant = build_tenant(max_outstanding=10, max_leases=5, guaranteed_leases=4, weight=3)
    policy = tighten(tenant, own_max_outstanding=2, own_max_leases=3)
    assert (policy.version, policy.own_max_outstanding, policy.effective_max_outstanding) == (2, 2, 2)
    assert (policy.max_outstanding, policy.max_leases, policy.effective_max_leases) == (10, 5, 3)
    assert rows(LOAD, tenant.id) == [(2, 3, 3, 3)]
    start(tenant, 2)
    with pytest.raises(QuotaExceeded):
        start(tenant)
    tighten(tenant, own_max_outstanding=None)
    assert rows(LOAD, tenant.id) == [(10, 3, 3, 3)]
    start(tenant)
    assert_counters_true()


def test_own_leases_hold_claims_back() -> None:
    tenant = build_tenant(max_leases=5)
    tighten(tenant, own_max_leases=1)
    start(tenant, 3)
    assert len(claim()) == 1
    tighten(tenant, own_max_leases=None)
    assert len(claim()) == 2
    assert_counters_true()


def test_the_operator_s_change_keeps_the_tenant_s_own_limits() -> None:
    tenant = build_tenant(max_outstanding=10, max_leases=5)
    tighten(tenant, own_max_outstanding=4)
    build_policy(tenant, max_outstanding=100, max_leases=6)
    assert rows(LOAD, tenant.id) == [(4, 6, 0, 1)]
    build_policy(tenant, max_outstanding=3, max_leases=6)
    assert rows(LOAD, tenant.id) == [(3, 6, 0, 1)]
    assert get_policy(tenant_id=tenant.id).own_max_outstanding == 4


@pytest.mark.parametrize("value", [0, -1, 11, True, 1.5, "2"])
def test_what_does_not_tighten_is_refused(value: Any) -> None:
    tenant = build_tenant(max_outstanding=10)
    before = stored()
    with pytest.raises(LimitInvalid):
        tighten(tenant, own_max_outstanding=value)
    assert stored() == before
    assert rows("select count(*) from tenants_act where act = 'policy.tighten'") == [(0,)]


def test_another_version_is_refused_and_nothing_moves() -> None:
    tenant = build_tenant()
    before = stored()
    for versions in ((0,), (2,), (2, 3)):
        with pytest.raises(VersionMismatch) as refused:
            tighten(tenant, *versions, own_max_leases=1)
        assert refused.value.fields == {"current": 1}
    assert stored() == before
    assert tighten(tenant, 1, 7, own_max_leases=1).version == 2


def test_of_many_at_once_with_one_version_one_wins() -> None:
    tenant = build_tenant()
    won: list[int] = []

    def race(number: int) -> None:
        try:
            with attach(tenant.id):
                tighten(tenant, 1, own_max_leases=number)
            won.append(number)
        except VersionMismatch:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=race, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert rows("select version, own_max_leases from tenants_policy where tenant_id = %s", tenant.id) == [(2, won[0])]
    assert rows("select after from tenants_act where act = 'policy.tighten'") == [
        ({"own_max_outstanding": None, "own_max_leases": won[0]},)
    ]


def test_no_policy_and_the_system_have_nothing_to_tighten() -> None:
    with pytest.raises(PolicyMissing):
        tighten(build_tenant(policy=False), own_max_leases=1)
    with pytest.raises(LimitInvalid):
        set_own_policy(tenant_id=SYSTEM_TENANT_ID, changes={"own_max_leases": 1}, expected=None, principal=PRINCIPAL)


def test_usage_is_the_tenant_s_own_by_queue() -> None:
    mine, other = build_tenant(), build_tenant()
    start(mine, 3)
    start(mine, delay_seconds=60)
    start(other, 5)
    complete(claim(1, worker="w")[:1])
    [usage] = list_usage(tenant_id=mine.id)
    [theirs] = list_usage(tenant_id=other.id)
    assert usage.queue == theirs.queue == "default"
    assert usage.waiting == 1
    assert usage.queued + theirs.queued + usage.completed + theirs.completed == 8
    assert usage.completed + theirs.completed == 1
