"""Reading the audit (D17): newest first, filtered, paged, bounded, and never another tenant's."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tenants.acts import ActView, list_acts
from tenants.audit import record
from tenants.errors import LimitInvalid
from tenants.identity import new_id
from tenants.principals import Principal
from tenants.queries import TenantView
from tenants.scope import scope_of
from tests import clock
from tests.builders import build_tenant, rows

ANNA = Principal(kind="key", id="k1", name="ci", behind="anna", request_id="request-1")


def act(tenant: TenantView, name: str = "task.cancel", target: str = "t1", **more: Any) -> None:
    """Write the row of one act."""
    with scope_of(tenant.id):
        record(tenant_id=tenant.id, principal=ANNA, act=name, target_kind="task", target_id=target, **more)


def seen(tenant: TenantView, **filters: Any) -> list[ActView]:
    """The tenant's acts without those of its making."""
    return [one for one in list_acts(tenant_id=tenant.id, **filters) if one.target_kind == "task"]


def test_an_act_is_shown_as_it_was_written() -> None:
    tenant = build_tenant()
    act(tenant, reason="withdrawn", before={"state": "queued"}, after={"state": "cancelled"})
    [one] = seen(tenant)
    assert one.principal == {"kind": "key", "id": "k1", "name": "ci", "behind": "anna"}
    assert (one.act, one.target_kind, one.target_id) == ("task.cancel", "task", "t1")
    assert (one.reason, one.request_id) == ("withdrawn", "request-1")
    assert (one.before, one.after) == ({"state": "queued"}, {"state": "cancelled"})
    assert rows("select at from tenants_act where id = %s", one.id) == [(one.at,)]


def test_filters_take_what_they_say() -> None:
    tenant = build_tenant()
    act(tenant, target="t1")
    act(tenant, target="t2")
    act(tenant, name="task.note", target="t2")
    assert [one.target_id for one in seen(tenant, act="task.cancel")] == ["t2", "t1"]
    assert [one.act for one in seen(tenant, target_kind="task", target_id="t2")] == ["task.note", "task.cancel"]
    assert len(seen(tenant, target_kind="task")) == 3
    assert seen(tenant, act="task.cancel", target_id="t3") == []


def test_since_counts_and_until_does_not() -> None:
    tenant = build_tenant()
    for number in range(3):
        act(tenant, target=str(number))
        clock.advance(10)
    times = {one.target_id: one.at for one in seen(tenant)}
    assert [one.target_id for one in seen(tenant, since=times["1"])] == ["2", "1"]
    assert [one.target_id for one in seen(tenant, until=times["1"])] == ["0"]
    assert seen(tenant, since=times["1"] + timedelta(seconds=1), until=times["2"]) == []


def test_pages_hold_each_act_once_also_those_of_one_moment() -> None:
    tenant = build_tenant()
    clock.freeze("2026-11-30 12:00+00")
    for number in range(7):
        act(tenant, target=str(number))
    walked: list[UUID] = []
    while page := list_acts(tenant_id=tenant.id, target_kind="task", before=walked[-1] if walked else None, limit=2):
        walked += [one.id for one in page]
    assert len(walked) == len(set(walked)) == 7
    assert [one.id for one in seen(tenant)] == walked


def test_another_tenant_s_acts_and_places_are_nothing() -> None:
    mine, other = build_tenant(), build_tenant()
    act(other)
    act(mine)
    [foreign] = seen(other)
    assert [one.id for one in seen(mine)] != [foreign.id]
    assert list_acts(tenant_id=mine.id, before=foreign.id) == list_acts(tenant_id=mine.id, before=new_id()) == []


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_is_bounded(limit: int) -> None:
    with pytest.raises(LimitInvalid):
        list_acts(tenant_id=build_tenant().id, limit=limit)
