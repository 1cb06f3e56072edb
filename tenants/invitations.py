"""Invitations: the only way a person becomes a member. Bound to one address and tenant, used once, and they expire."""

import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from tenants.audit import record
from tenants.errors import AlreadyMember, IdentityInvalid, InvitationNotFound
from tenants.identity import SYSTEM_TENANT_ID, new_id
from tenants.makers import hold_maker
from tenants.members import MemberView, get_member, parse_role, refuse_unless_owner
from tenants.permissions import Role
from tenants.principals import Principal
from tenants.queries import check_page
from tenants.scope import scope_of
from tenants.store import query

VALID_SECONDS = 7 * 86_400
_ADDRESS = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)*", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class InvitationView:
    """An invitation as its tenant sees it; the token is nowhere."""

    id: UUID
    email: str
    role: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class InvitationOffer:
    """An invitation that stands, as whoever holds its token sees it."""

    tenant_id: UUID
    invitation_id: UUID
    tenant_slug: str
    tenant_name: str
    email: str
    role: str
    expires_at: datetime


_COLUMNS = "id, email, role, created_at, expires_at, used_at, revoked_at"
_INSERT = f"""
insert into tenants_invitation (tenant_id, id, email, role, hashed_token, created_at, created_by, expires_at)
values (%s, %s, %s, %s, %s, ductor_now(), %s, ductor_now() + make_interval(secs => %s)) returning {_COLUMNS}
"""  # noqa: S608
_USE = """
update tenants_invitation set used_at = ductor_now()
where tenant_id = %s and id = %s and hashed_token = %s and used_at is null and revoked_at is null
  and expires_at > ductor_now() returning email, role, created_by
"""
_JOIN = """
insert into tenants_member (tenant_id, id, person_id, email, name, role, joined_at)
values (%s, %s, %s, %s, %s, %s, ductor_now()) on conflict (tenant_id, person_id) do nothing returning id
"""
_REVOKE = f"""
update tenants_invitation set revoked_at = ductor_now()
where tenant_id = %s and id = %s and used_at is null and revoked_at is null returning {_COLUMNS}
"""  # noqa: S608


def parse_address(text: str) -> str:
    """Return an e-mail address in the one form it is kept in: ASCII, lower case.

    Raises:
        IdentityInvalid: it is no such address.
    """
    address = text.strip().lower()
    if len(address) > 254 or not _ADDRESS.fullmatch(address):
        raise IdentityInvalid("An e-mail address here is ASCII, as name@example.com, at most 254 characters.")
    return address


def invite(
    *, tenant_id: UUID, email: str, role: str, principal: Principal, reason: str = ""
) -> tuple[InvitationView, str]:
    """Invite an address; the second value is the token for the link, which is never stored.

    The token goes to that address and to nobody else: holding it proves the address.

    Raises:
        IdentityInvalid: no address, no role, or the system tenant, which has no members.
        Forbidden: an owner is invited by somebody who is none, or the inviter has been removed meanwhile.
    """
    if tenant_id == SYSTEM_TENANT_ID:
        raise IdentityInvalid("The system tenant has no members: nobody acts as it.")
    address, wanted = parse_address(email), parse_role(role)
    if wanted == Role.OWNER:
        refuse_unless_owner(principal)
    token = secrets.token_urlsafe(32)
    values = [tenant_id, new_id(), address, wanted.value, _hash(token), Jsonb(principal.as_json()), VALID_SECONDS]
    with scope_of(tenant_id):
        hold_maker(tenant_id, principal)
        [row] = query(_INSERT, values)
        view = InvitationView(*row)
        _record(tenant_id, principal, "invitation.create", view.id, reason, {"email": address, "role": wanted.value})
    return view, token


def list_invitations(*, tenant_id: UUID, limit: int = 100) -> list[InvitationView]:
    """Return the newest `limit` (1 to 1,000) invitations.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    page = f"select {_COLUMNS} from tenants_invitation where tenant_id = %s order by id desc limit %s"  # noqa: S608
    with scope_of(tenant_id):
        return [InvitationView(*row) for row in query(page, [tenant_id, limit])]


def revoke_invitation(*, tenant_id: UUID, invitation_id: UUID, principal: Principal, reason: str = "") -> None:
    """Take an invitation back; one that was used or taken back before stays as it is.

    Raises:
        InvitationNotFound: the tenant has no such invitation.
    """
    known = "select 1 from tenants_invitation where tenant_id = %s and id = %s"
    with scope_of(tenant_id):
        rows = query(_REVOKE, [tenant_id, invitation_id])
        if rows:
            view = InvitationView(*rows[0])
            _record(tenant_id, principal, "invitation.revoke", view.id, reason, {"email": view.email})
        elif not query(known, [tenant_id, invitation_id]):
            raise InvitationNotFound


def find_invitation(*, token: str) -> InvitationOffer | None:
    """Return the invitation that a token opens, or None for an unknown, used, revoked or expired one."""
    if not _TOKEN.fullmatch(token):
        return None
    rows = query("select * from tenants_find_invitation(%s)", [_hash(token)])
    return InvitationOffer(*rows[0]) if rows else None


def accept_invitation(
    *, token: str, person_id: UUID, name: str, verified: Collection[str], request_id: str = ""
) -> MemberView:
    """Make the person a member of the tenant that invited one of its verified addresses.

    Raises:
        InvitationNotFound: no invitation stands behind this token for this person: unknown, used, taken back, expired,
            or for an address that the person has not verified.
        AlreadyMember: the person is a member; the invitation stays unused.
    """
    offer = find_invitation(token=token)
    if offer is None or offer.email not in verified:
        raise InvitationNotFound
    tenant_id, member_id = offer.tenant_id, new_id()
    with scope_of(tenant_id):
        used = query(_USE, [tenant_id, offer.invitation_id, _hash(token)])
        if not used:
            raise InvitationNotFound
        ((email, role, _),) = used
        if not query(_JOIN, [tenant_id, member_id, person_id, email, name, role]):
            raise AlreadyMember
        principal = Principal(kind="person", id=str(person_id), name=email, role=role, request_id=request_id)
        _record(tenant_id, principal, "invitation.accept", offer.invitation_id, "", {"email": email, "role": role})
        return get_member(tenant_id=tenant_id, member_id=member_id)


def _hash(token: str) -> str:
    """The token holds 256 random bits: a plain digest can't be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()


def _record(
    tenant_id: UUID, principal: Principal, act: str, invitation_id: UUID, reason: str, after: dict[str, str]
) -> None:
    record(
        tenant_id=tenant_id,
        principal=principal,
        act=act,
        target_kind="invitation",
        target_id=str(invitation_id),
        reason=reason,
        after=after,
    )
