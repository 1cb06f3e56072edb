"""API keys: made, shown once, hashed at rest, revoked at once on every process (nothing caches them)."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb
from rest_framework_api_key.crypto import KeyGenerator

from tenants.audit import record
from tenants.errors import Forbidden, IdentityInvalid, KeyNotFound
from tenants.identity import SYSTEM_TENANT_ID, new_id, parse_name
from tenants.makers import hold_maker
from tenants.permissions import SCOPES, scopes_within
from tenants.principals import Principal
from tenants.queries import ApiKeyView, as_key
from tenants.scope import scope_of
from tenants.store import query

# 8 characters of prefix to tell keys apart, 40 of [A-Za-z0-9] (238 bits) that nobody can guess.
generator = KeyGenerator(prefix_length=8, secret_key_length=40)

_INSERT = """
insert into tenants_apikey
  (tenant_id, id, name, prefix, hashed_key, scopes, created_at, created_by, expires_at)
values (%s, %s, %s, %s, %s, %s, ductor_now(), %s, %s)
returning id, prefix, name, scopes, created_at, expires_at, revoked_at
"""
_REVOKE = """
update tenants_apikey set revoked_at = ductor_now() where tenant_id = %s and id = %s and revoked_at is null
returning id, prefix, name, scopes, created_at, expires_at, revoked_at
"""
_FIND = """
select id, prefix, name, scopes, created_at, expires_at, revoked_at from tenants_apikey
where tenant_id = %s and id = %s
"""


def create_api_key(
    *,
    tenant_id: UUID,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
    principal: Principal,
    reason: str = "",
) -> tuple[ApiKeyView, str]:
    """Make a key; the second value is its plain text, which is never stored and can't be shown again.

    One that a key makes ends with it at the latest: where no end is named, at the same moment.

    Raises:
        IdentityInvalid: the name breaks its rule, a scope is unknown, there is none, or the tenant is `system`.
        Forbidden: it gives more than its maker may do, or for longer, or the maker was removed or revoked meanwhile.
    """
    if tenant_id == SYSTEM_TENANT_ID:
        raise IdentityInvalid("The system tenant has no keys: nobody acts as it.")
    parse_name(name, "key's name")
    wanted = sorted(set(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not wanted:
        raise IdentityInvalid(f"A key has one or more of the scopes {', '.join(sorted(SCOPES))}; got {unknown}.")
    # A key gives of what it has itself: its maker's `worker`, for one, is not its own.
    may_give = principal.scopes if principal.kind == "key" else scopes_within(principal.permissions)
    beyond = sorted(set(wanted) - may_give)
    if beyond:
        raise Forbidden(f"A key can't have scopes that its maker lacks: {', '.join(beyond)}.", scope=beyond[0])
    plaintext, prefix, hashed = generator.generate()
    key_id = new_id()
    with scope_of(tenant_id):
        ends_at = _within(expires_at, hold_maker(tenant_id, principal))
        rows = query(_INSERT, [tenant_id, key_id, name, prefix, hashed, wanted, Jsonb(principal.as_json()), ends_at])
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="key.create",
            target_kind="key",
            target_id=str(key_id),
            reason=reason,
            after={"name": name, "prefix": prefix, "scopes": wanted},
        )
    return as_key(rows[0]), plaintext


def _within(wanted: datetime | None, maker_ends_at: datetime | None) -> datetime | None:
    if wanted is not None and maker_ends_at is not None and wanted > maker_ends_at:
        raise Forbidden(f"A key can't outlive the key that makes it, which ends at {maker_ends_at.isoformat()}.")
    return wanted or maker_ends_at


def revoke_api_key(*, tenant_id: UUID, key_id: UUID, principal: Principal, reason: str = "") -> ApiKeyView:
    """Revoke a key; revoking it again changes nothing.

    Raises:
        KeyNotFound: the tenant has no such key.
    """
    with scope_of(tenant_id):
        rows = query(_REVOKE, [tenant_id, key_id])
        if rows:
            record(
                tenant_id=tenant_id,
                principal=principal,
                act="key.revoke",
                target_kind="key",
                target_id=str(key_id),
                reason=reason,
                before={"name": rows[0][2], "prefix": rows[0][1], "scopes": rows[0][3]},
            )
        else:
            rows = query(_FIND, [tenant_id, key_id])
    if not rows:
        raise KeyNotFound
    return as_key(rows[0])
