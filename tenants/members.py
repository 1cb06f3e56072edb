"""Members: which people act in a tenant, and as what."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from tenants.audit import record
from tenants.errors import Forbidden, IdentityInvalid, LastOwner, MemberNotFound
from tenants.makers import hold_maker
from tenants.permissions import Permission, Role, of_role, scopes_within
from tenants.principals import Principal
from tenants.queries import check_page
from tenants.scope import scope_of
from tenants.store import query


@dataclass(frozen=True, slots=True)
class MemberView:
    """One person in one tenant."""

    id: UUID
    person_id: UUID
    email: str
    name: str
    role: str
    joined_at: datetime


_COLUMNS = "id, person_id, email, name, role, joined_at"
_OWNERS = "select id from tenants_member where tenant_id = %s and role = 'owner' order by id for update"
_ONE = f"select {_COLUMNS} from tenants_member where tenant_id = %s and id = %s"  # noqa: S608
_PAGE = f"select {_COLUMNS} from tenants_member where tenant_id = %s and id > %s order by id limit %s"  # noqa: S608
# A key's maker is a person, or a key whose maker is one. Those within the allowed scopes stay.
_REVOKE_KEYS = """
with recursive made as (
  select k.id from tenants_apikey k where k.tenant_id = %s and k.created_by ->> 'kind' = 'person'
    and k.created_by ->> 'id' = %s
  union
  select k.id from tenants_apikey k join made m on k.created_by ->> 'id' = m.id::text
  where k.tenant_id = %s and k.created_by ->> 'kind' = 'key')
update tenants_apikey k set revoked_at = ductor_now()
where k.tenant_id = %s and k.id in (select id from made) and k.revoked_at is null and not k.scopes <@ %s::varchar[]
returning k.id
"""
_REVOKE_INVITATIONS = """
update tenants_invitation set revoked_at = ductor_now()
where tenant_id = %s and created_by ->> 'kind' = 'person' and created_by ->> 'id' = %s and role = any(%s::varchar[])
  and used_at is null and revoked_at is null returning id
"""
# What it takes to invite somebody as this; for all other roles it is `members.write`.
_NEEDED = {Role.OWNER: Permission.OWNERS_WRITE}
FIRST = UUID(int=0)


def parse_role(text: str) -> Role:
    """Return the role that a text names.

    Raises:
        IdentityInvalid: it names none.
    """
    try:
        return Role(text)
    except ValueError:
        raise IdentityInvalid(f"A role is one of {', '.join(Role)}; got {text[:32]!r}.") from None


def list_members(*, tenant_id: UUID, after: UUID = FIRST, limit: int = 100) -> list[MemberView]:
    """Return up to `limit` (1 to 1,000) members in the order of joining, after the id `after`.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    with scope_of(tenant_id):
        return [MemberView(*row) for row in query(_PAGE, [tenant_id, after, limit])]


def get_member(*, tenant_id: UUID, member_id: UUID) -> MemberView:
    """Return one member.

    Raises:
        MemberNotFound: the tenant has no such member.
    """
    with scope_of(tenant_id):
        rows = query(_ONE, [tenant_id, member_id])
    if not rows:
        raise MemberNotFound
    return MemberView(*rows[0])


def change_role(*, tenant_id: UUID, member_id: UUID, role: str, principal: Principal, reason: str = "") -> MemberView:
    """Give a member another role; in force at the member's next request.

    What the member handed out and could not hand out in the new role is taken back: keys, and invitations that stand.

    Raises:
        MemberNotFound: the tenant has no such member.
        IdentityInvalid: there is no such role.
        Forbidden: an owner is made or unmade by somebody who is none, or who was removed meanwhile.
        LastOwner: the tenant would be left without an owner.
    """
    wanted = parse_role(role)
    with scope_of(tenant_id):
        member = _locked(tenant_id, member_id, principal, leaves=wanted != Role.OWNER)
        if wanted == Role.OWNER:
            refuse_unless_owner(principal)
        if member.role == wanted:
            return member
        query(
            "update tenants_member set role = %s where tenant_id = %s and id = %s", [wanted.value, tenant_id, member_id]
        )
        taken = _take_back(tenant_id, member, of_role(wanted))
        _record(tenant_id, principal, "member.change_role", member, reason, after={"role": wanted.value, **taken})
        return get_member(tenant_id=tenant_id, member_id=member_id)


def remove_member(*, tenant_id: UUID, member_id: UUID, principal: Principal, reason: str = "") -> int:
    """Remove a member, who is refused from the next request on; returns how many keys were revoked with it.

    The keys that the member made, those that these keys made, and the member's invitations that stand are revoked in
    the same transaction.

    Raises:
        MemberNotFound: the tenant has no such member.
        Forbidden: an owner is removed by somebody who is none, or who was removed meanwhile.
        LastOwner: the tenant would be left without an owner.
    """
    with scope_of(tenant_id):
        member = _locked(tenant_id, member_id, principal, leaves=True)
        query("delete from tenants_member where tenant_id = %s and id = %s", [tenant_id, member_id])
        taken = _take_back(tenant_id, member, frozenset())
        _record(tenant_id, principal, "member.remove", member, reason, after=taken)
    return len(taken["revoked_keys"])


def refuse_unless_owner(principal: Principal) -> None:
    """Raise Forbidden unless the principal may make and unmake owners."""
    if not principal.may(Permission.OWNERS_WRITE):
        raise Forbidden("Only an owner makes, changes or removes an owner.")


def _take_back(tenant_id: UUID, member: MemberView, allowed: frozenset[Permission]) -> dict[str, list[str]]:
    """Revoke what the member handed out beyond the permissions `allowed`; returns the ids."""
    person, scopes = str(member.person_id), sorted(scopes_within(allowed))
    keys: list[str] = []
    # A key that is being made holds its maker's row: each statement that revoked one may have waited for its child.
    while found := query(_REVOKE_KEYS, [tenant_id, person, tenant_id, tenant_id, scopes]):
        keys += [str(key) for (key,) in found]
    lost = [role for role in Role if not (allowed >= {_NEEDED.get(role, Permission.MEMBERS_WRITE)})]
    invitations = query(_REVOKE_INVITATIONS, [tenant_id, person, lost])
    return {"revoked_keys": sorted(keys), "revoked_invitations": sorted(str(one) for (one,) in invitations)}


def _locked(tenant_id: UUID, member_id: UUID, principal: Principal, *, leaves: bool) -> MemberView:
    """Lock the tenant's owners, so that two of them can't take each other's place at once, and read the member."""
    owners = [owner for (owner,) in query(_OWNERS, [tenant_id])]
    member = get_member(tenant_id=tenant_id, member_id=member_id)
    hold_maker(tenant_id, principal)
    if member.role == Role.OWNER:
        refuse_unless_owner(principal)
        if leaves and owners == [member_id]:
            raise LastOwner
    return member


def _record(
    tenant_id: UUID, principal: Principal, act: str, member: MemberView, reason: str, *, after: dict[str, Any]
) -> None:
    record(
        tenant_id=tenant_id,
        principal=principal,
        act=act,
        target_kind="member",
        target_id=str(member.id),
        reason=reason,
        before={"email": member.email, "role": member.role},
        after=after,
    )
