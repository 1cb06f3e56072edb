"""Members: the owner's rules, races between owners, and what goes with a member who leaves or loses a role."""

from typing import Any
from uuid import UUID

import pytest

from tenants.errors import DuctorError, Forbidden, LastOwner
from tenants.invitations import find_invitation, invite
from tenants.keys import create_api_key
from tenants.members import change_role, list_members, remove_member
from tenants.permissions import Permission, Role, of_role, scopes_within
from tenants.principals import Principal
from tenants.queries import TenantView, list_keys
from tenants.scope import scope_of
from tests.api.callers import Caller
from tests.builders import build_tenant, rows
from tests.people.signing import join
from tests.races import Aside, together, wait_for_lock

ROLES = tuple(Role)


def roles_in(tenant: TenantView) -> list[str]:
    return sorted(one.role for one in list_members(tenant_id=tenant.id))


def make_key(tenant: TenantView, principal: Principal, *scopes: str) -> str:
    return create_api_key(tenant_id=tenant.id, name="made", scopes=scopes, principal=principal)[1]


def opens(tenant: TenantView, key: str) -> bool:
    return bool(Caller(tenant, key).get("/api/v1/tasks").status_code in (200, 403))


def acts(tenant: TenantView) -> list[str]:
    return [act for (act,) in rows("select act from tenants_act where tenant_id = %s order by at, id", tenant.id)]


def test_the_last_owner_can_neither_leave_nor_be_made_less() -> None:
    tenant = build_tenant()
    owner, principal = join(tenant, "owner")
    before = acts(tenant)
    with pytest.raises(LastOwner):
        remove_member(tenant_id=tenant.id, member_id=owner.id, principal=principal)
    for role in ("admin", "operator", "viewer", "auditor"):
        with pytest.raises(LastOwner):
            change_role(tenant_id=tenant.id, member_id=owner.id, role=role, principal=principal)
    assert roles_in(tenant) == ["owner"]
    assert acts(tenant) == before


def test_an_owner_of_another_tenant_does_not_count() -> None:
    tenant, other = build_tenant(), build_tenant()
    owner, principal = join(tenant, "owner")
    join(other, "owner")
    with pytest.raises(LastOwner):
        remove_member(tenant_id=tenant.id, member_id=owner.id, principal=principal)


@pytest.mark.parametrize("role", [role for role in ROLES if role != "owner"])
def test_only_owners_make_change_and_remove_owners(role: str) -> None:
    tenant = build_tenant()
    owner, _ = join(tenant, "owner")
    join(tenant, "owner")
    mine, principal = join(tenant, role)
    for act in (
        lambda: remove_member(tenant_id=tenant.id, member_id=owner.id, principal=principal),
        lambda: change_role(tenant_id=tenant.id, member_id=owner.id, role="viewer", principal=principal),
        lambda: change_role(tenant_id=tenant.id, member_id=mine.id, role="owner", principal=principal),
        lambda: invite(tenant_id=tenant.id, email="x@example.com", role="owner", principal=principal),
    ):
        with pytest.raises(Forbidden):
            act()
    assert roles_in(tenant) == sorted(["owner", "owner", role])
    assert rows("select count(*) from tenants_invitation") == [(0,)]


@pytest.mark.parametrize("demote", [False, True])
def test_two_owners_against_each_other_at_once_leave_one(demote: bool) -> None:
    def against(tenant: TenantView, other: UUID, principal: Principal) -> Any:
        if demote:
            return change_role(tenant_id=tenant.id, member_id=other, role="viewer", principal=principal)
        return remove_member(tenant_id=tenant.id, member_id=other, principal=principal)

    for _ in range(5):
        tenant = build_tenant()
        (first, one), (second, two) = join(tenant, "owner"), join(tenant, "owner")
        results = together(
            lambda t=tenant, o=second.id, p=one: against(t, o, p), lambda t=tenant, o=first.id, p=two: against(t, o, p)
        )
        refused = [result for result in results if isinstance(result, DuctorError)]
        assert len(refused) == 1, results
        assert isinstance(refused[0], Forbidden | LastOwner)
        assert roles_in(tenant).count("owner") == 1


def test_three_owners_in_a_ring_leave_those_who_were_still_somebody() -> None:
    """Whoever has been removed while his request was under way removes nobody any more."""
    tenant = build_tenant()
    members = [join(tenant, "owner") for _ in range(3)]
    results = together(
        *[
            lambda target=members[(index + 1) % 3][0].id, principal=principal: remove_member(
                tenant_id=tenant.id, member_id=target, principal=principal
            )
            for index, (_, principal) in enumerate(members)
        ]
    )
    left = {one.id for one in list_members(tenant_id=tenant.id)}
    for index, (member, _) in enumerate(members):
        done = not isinstance(results[index], DuctorError)
        assert done == (members[(index + 1) % 3][0].id not in left), (results, member)
    assert 1 <= len(left) <= 2


def test_a_removed_member_s_keys_and_those_that_these_made_are_closed_at_once() -> None:
    tenant = build_tenant()
    join(tenant, "owner")
    admin, principal = join(tenant, "admin")
    _, boss = join(tenant, "owner")
    mine = make_key(tenant, principal, "keys:write", "tasks:read")
    [(key_id,)] = rows("select id from tenants_apikey where prefix = %s", mine.partition(".")[0])
    by_key = Principal(kind="key", id=str(key_id), scopes=frozenset({"keys:write", "tasks:read"}), behind=admin.email)
    child, other = make_key(tenant, by_key, "tasks:read"), make_key(tenant, boss, "tasks:read")
    assert all(opens(tenant, key) for key in (mine, child, other))
    assert remove_member(tenant_id=tenant.id, member_id=admin.id, principal=boss, reason="left") == 2
    assert [opens(tenant, key) for key in (mine, child, other)] == [False, False, True]
    [(act, reason, before, after)] = rows(
        "select act, reason, before, after from tenants_act where act = 'member.remove'"
    )
    assert (act, reason) == ("member.remove", "left")
    assert before == {"email": admin.email, "role": "admin"}
    assert len(after["revoked_keys"]) == 2


@pytest.mark.parametrize("role", [role for role in ROLES if role != "owner"])
def test_a_lower_role_takes_back_the_keys_that_go_beyond_it(role: str) -> None:
    tenant = build_tenant()
    _, boss = join(tenant, "owner")
    member, principal = join(tenant, "owner")
    scopes = ("tasks:read", "tasks:write", "policy:write", "audit:read", "keys:write", "worker")
    keys = {scope: make_key(tenant, principal, scope) for scope in scopes}
    change_role(tenant_id=tenant.id, member_id=member.id, role=role, principal=boss)
    allowed = scopes_within(of_role(role))
    assert {scope for scope, key in keys.items() if opens(tenant, key)} == allowed & set(scopes)


def test_a_member_s_invitations_go_with_the_right_to_have_made_them() -> None:
    tenant = build_tenant()
    _, boss = join(tenant, "owner")
    member, principal = join(tenant, "owner")
    _, as_owner = invite(tenant_id=tenant.id, email="a@example.com", role="owner", principal=principal)
    _, as_viewer = invite(tenant_id=tenant.id, email="b@example.com", role="viewer", principal=principal)
    _, of_boss = invite(tenant_id=tenant.id, email="c@example.com", role="owner", principal=boss)

    def standing() -> list[bool]:
        return [find_invitation(token=token) is not None for token in (as_owner, as_viewer, of_boss)]

    change_role(tenant_id=tenant.id, member_id=member.id, role="admin", principal=boss)
    assert standing() == [False, True, True]
    change_role(tenant_id=tenant.id, member_id=member.id, role="viewer", principal=boss)
    assert standing() == [False, False, True]
    remove_member(tenant_id=tenant.id, member_id=member.id, principal=boss)
    assert standing() == [False, False, True]


def test_a_key_that_is_being_made_while_its_maker_is_removed_does_not_outlive_him() -> None:
    tenant = build_tenant()
    _, boss = join(tenant, "owner")
    member, principal = join(tenant, "admin")
    with scope_of(tenant.id):
        key = make_key(tenant, principal, "tasks:read")
        removal = Aside(lambda: remove_member(tenant_id=tenant.id, member_id=member.id, principal=boss))
        wait_for_lock()
    assert removal.result() == 1
    assert not opens(tenant, key)


def test_a_key_made_by_a_key_while_its_maker_is_removed_does_not_outlive_him() -> None:
    tenant = build_tenant()
    _, boss = join(tenant, "owner")
    member, principal = join(tenant, "admin")
    make_key(tenant, principal, "keys:write", "tasks:read")
    [parent] = list_keys(tenant_id=tenant.id)
    by_key = Principal(kind="key", id=str(parent.id), scopes=frozenset(parent.scopes), behind=member.email)
    with scope_of(tenant.id):
        child = make_key(tenant, by_key, "tasks:read")
        removal = Aside(lambda: remove_member(tenant_id=tenant.id, member_id=member.id, principal=boss))
        wait_for_lock()
    assert removal.result() == 2
    assert not opens(tenant, child)


@pytest.mark.parametrize("fate", ["removed", "demoted", "revoked"])
def test_a_request_let_in_before_its_maker_lost_the_right_makes_nothing(fate: str) -> None:
    tenant = build_tenant()
    _, boss = join(tenant, "owner")
    member, principal = join(tenant, "admin")
    if fate == "removed":
        remove_member(tenant_id=tenant.id, member_id=member.id, principal=boss)
    elif fate == "demoted":
        change_role(tenant_id=tenant.id, member_id=member.id, role="viewer", principal=boss)
    else:
        make_key(tenant, principal, "keys:write")
        [parent] = list_keys(tenant_id=tenant.id)
        principal = Principal(kind="key", id=str(parent.id), scopes=frozenset(parent.scopes))
        remove_member(tenant_id=tenant.id, member_id=member.id, principal=boss)
    before = acts(tenant)
    with pytest.raises(Forbidden):
        make_key(tenant, principal, "keys:write")
    if principal.kind == "person":
        assert principal.may(Permission.MEMBERS_WRITE), "what the request believes"
        with pytest.raises(Forbidden):
            invite(tenant_id=tenant.id, email="x@example.com", role="viewer", principal=principal)
    assert acts(tenant) == before
