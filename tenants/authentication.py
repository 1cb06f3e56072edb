"""From a presented credential to a tenant and a principal: the only way a request gets a tenant."""

from dataclasses import dataclass
from uuid import UUID

from tenants.keys import generator
from tenants.principals import Principal
from tenants.store import call

# prefix (8), a dot, secret (40); anything longer is not looked at.
MAX_PRESENTED = 64


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A tenant that proved who it is, and who acts for it."""

    tenant_id: UUID
    slug: str
    service_class: str
    principal: Principal


def authenticate(presented: str) -> Authenticated | None:
    """Return whose key `presented` is, or None for an unknown, expired or revoked one, or a tenant that may not act.

    One call of a DEFINER function; no tenant table is touched and nothing is cached.

    Raises:
        Unavailable: the database can't be reached.
    """
    prefix, dot, secret = presented.partition(".")
    if not (presented.isascii() and presented.isprintable() and len(presented) <= MAX_PRESENTED and dot and secret):
        return None
    rows = call("tenants_find_api_key", prefix, generator.hash(presented))
    if not rows:
        return None
    tenant_id, slug, service_class, key_id, name, scopes, behind = rows[0]
    principal = Principal(kind="key", id=str(key_id), name=name, scopes=frozenset(scopes), behind=behind or "")
    return Authenticated(tenant_id, slug, service_class, principal)


def host_allowed(*, tenant_id: UUID, host: str) -> bool:
    """Say whether a request with this tenant's credential may come in under `host`: not under another tenant's."""
    ((allowed,),) = call("tenants_check_domain", tenant_id, host.lower())
    return bool(allowed)
