"""From a presented credential to a tenant and a principal: the only way a request gets a tenant."""

from dataclasses import dataclass
from uuid import UUID

from tenants.keys import generator
from tenants.principals import Principal
from tenants.queries import MAX_PAGE
from tenants.store import query

# prefix (8), a dot, secret (40); anything longer is not looked at.
MAX_PRESENTED = 64


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A tenant that proved who it is, and who acts for it."""

    tenant_id: UUID
    slug: str
    service_class: str
    principal: Principal
    host_allowed: bool


def authenticate(presented: str, *, host: str) -> Authenticated | None:
    """Return whose key `presented` is, or None for an unknown, expired or revoked one, or a tenant that may not act.

    `host_allowed` says whether that tenant's requests may come in under `host`: not under another tenant's domain.
    One statement that calls DEFINER functions; no tenant table is touched and nothing is cached.

    Raises:
        Unavailable: the database can't be reached.
    """
    prefix, dot, secret = presented.partition(".")
    if not (presented.isascii() and presented.isprintable() and len(presented) <= MAX_PRESENTED and dot and secret):
        return None
    rows = query(
        "select k.*, tenants_check_domain(k.tenant_id, %s) from tenants_find_api_key(%s, %s) k",
        [host.lower(), prefix, generator.hash(presented)],
    )
    if not rows:
        return None
    tenant_id, slug, service_class, key_id, name, scopes, behind, allowed = rows[0]
    principal = Principal(kind="key", id=str(key_id), name=name, scopes=frozenset(scopes), behind=behind or "")
    return Authenticated(tenant_id, slug, service_class, principal, allowed)


def find_membership(*, person_id: UUID, email: str, tenant_id: UUID, host: str) -> Authenticated | None:
    """Return a person as a member of a tenant, or None for one who is none (any more), or a tenant that may not act.

    Asked at every request of a session: a removed member and a changed role are in force at the next one, everywhere.
    """
    rows = query("select * from tenants_find_membership(%s, %s, %s)", [person_id, tenant_id, host.lower()])
    if not rows:
        return None
    found_id, slug, service_class, _, _, role, allowed = rows[0]
    principal = Principal(kind="person", id=str(person_id), name=email, role=role)
    return Authenticated(found_id, slug, service_class, principal, allowed)


@dataclass(frozen=True, slots=True)
class Membership:
    """One of the tenants that a person may act in."""

    tenant_id: UUID
    slug: str
    name: str
    role: str


def list_memberships(*, person_id: UUID) -> list[Membership]:
    """Return the tenants (at most 1,000) that a person is a member of, by slug."""
    rows = query("select * from tenants_list_memberships(%s, %s)", [person_id, MAX_PAGE])
    return [Membership(*row) for row in rows]
