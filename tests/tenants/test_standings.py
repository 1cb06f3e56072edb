"""Reads over all tenants, and what operators may make: only their role sees and does it."""

import pytest
from django.db import ProgrammingError

from tenants.errors import LimitInvalid, ReasonMissing, ScopeMissing, SlugTaken
from tenants.identity import new_id
from tenants.principals import Principal
from tenants.provisioning import create_tenant
from tenants.scope import scope_of
from tenants.standings import list_near_limit, list_standings
from tenants.store import call, query
from tenants.visits import open_tenant
from tests.builders import build_tenant, claim, rows, start
from tests.database import as_role

OPERATOR = Principal.operator(new_id(), "op@example.com", "request-1")


def test_tenants_are_listed_by_slug_with_use_and_limits_in_force() -> None:
    one = build_tenant("aa-one", max_outstanding=10, max_leases=4)
    build_tenant("ab-two", policy=False)
    start(one, 3)
    claim(2)
    with as_role("operator"):
        first, second = list_standings(prefix="a")
        assert (first.slug, first.outstanding, first.max_outstanding, first.leased, first.max_leases) == (
            "aa-one",
            3,
            10,
            2,
            4,
        )
        assert (second.slug, second.outstanding, second.max_outstanding) == ("ab-two", None, None)
        assert [seen.slug for seen in list_standings(after="aa-one", limit=1)] == ["ab-two"]
        assert list_standings(prefix="%") == list_standings()
        with pytest.raises(LimitInvalid):
            list_standings(limit=0)


def test_near_a_limit_begins_at_four_fifths_of_either() -> None:
    for slug, tasks, leases in (("below", 7, 0), ("tasks", 8, 0), ("leases", 4, 4), ("full", 10, 0)):
        tenant = build_tenant(slug, max_outstanding=10, max_leases=5)
        start(tenant, tasks, queue="default")
        if leases:
            assert len(claim(leases)) == leases
    rows(
        "update tenants_load l set leased = case slug when 'leases' then 4 else 0 end from tenants_tenant n"
        " where n.id = l.tenant_id returning 1"
    )
    with as_role("operator"):
        assert [seen.slug for seen in list_near_limit()] == ["full", "leases", "tasks"]
        assert [seen.slug for seen in list_near_limit(limit=1)] == ["full"]


def test_the_web_sees_no_tenant_at_all() -> None:
    build_tenant()
    with as_role("web"):
        with pytest.raises(ScopeMissing):
            list_near_limit()
        with pytest.raises(ProgrammingError, match="permission denied"), scope_of(build_tenant().id):
            list_standings()


def test_an_operator_makes_a_tenant_by_the_one_way_and_has_no_right_on_the_table() -> None:
    with as_role("operator"):
        made = create_tenant(slug="fresh", name="Fresh", principal=OPERATOR, reason="signed today")
        with pytest.raises(SlugTaken):
            create_tenant(slug="fresh", principal=OPERATOR)
        for sql in (
            "insert into tenants_tenant (id, slug, schema_name, name, status, service_class, created_at)"
            " values (gen_random_uuid(), 'x1', 'x1', '', 'active', 'free', now())",
            "update tenants_tenant set status = 'closing'",
            "delete from tenants_tenant",
        ):
            with pytest.raises(ProgrammingError, match="permission denied"):
                query(sql)
    assert rows("select slug, status, service_class from tenants_tenant where id = %s", made.id) == [
        ("fresh", "active", "standard")
    ]
    assert rows("select act, principal->>'kind', principal->>'name', reason, request_id from tenants_act") == [
        ("tenant.create", "operator", "op@example.com", "signed today", "request-1")
    ]


@pytest.mark.parametrize("role", ["web", "worker"])
def test_neither_the_web_nor_a_worker_makes_tenants(role: str) -> None:
    tenant_id = new_id()
    with as_role(role), pytest.raises(ProgrammingError, match="permission denied"), scope_of(tenant_id):
        call("tenants_provision", tenant_id, "stolen", "", "free")
    assert rows("select 1 from tenants_tenant where slug = 'stolen'") == []


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_tenant_is_not_opened_without_a_reason(reason: str) -> None:
    tenant = build_tenant()
    with as_role("operator"), pytest.raises(ReasonMissing):
        open_tenant(tenant_id=tenant.id, principal=OPERATOR, reason=reason)
    assert rows("select 1 from tenants_act where act = 'tenant.open'") == []
