"""What can be read about tenants: frozen values, bounded."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tenants.errors import LimitInvalid, PolicyMissing, TenantNotFound
from tenants.scope import scope_of
from tenants.store import call, query

MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TenantView:
    """One tenant."""

    id: UUID
    slug: str
    name: str
    status: str
    service_class: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A tenant's policy beside its present use; `own_…` are limits that it set for itself, None where it did not."""

    max_outstanding: int
    max_leases: int
    weight: int
    guaranteed_leases: int
    version: int
    frozen: int
    outstanding: int
    leased: int
    own_max_outstanding: int | None
    own_max_leases: int | None
    updated_at: datetime

    @property
    def effective_max_outstanding(self) -> int:
        """The limit that holds: the lower one of the operator's and the tenant's own."""
        return min(self.max_outstanding, self.own_max_outstanding or self.max_outstanding)

    @property
    def effective_max_leases(self) -> int:
        """The limit that holds: the lower one of the operator's and the tenant's own."""
        return min(self.max_leases, self.own_max_leases or self.max_leases)


@dataclass(frozen=True, slots=True)
class QueueUsage:
    """A tenant's work in one queue: what stands there, and how much has ended how."""

    queue: str
    queued: int
    waiting: int
    completed: int
    failed: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class ApiKeyView:
    """An API key without its secret."""

    id: UUID
    prefix: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


_TENANT = "select id, slug, name, status, service_class, created_at from tenants_tenant"
_KEY = "select id, prefix, name, scopes, created_at, expires_at, revoked_at from tenants_apikey where tenant_id = %s"


def get_tenant(*, slug: str) -> TenantView:
    """Return the tenant with this slug (for operators and commands; a tenant's own requests know theirs).

    Raises:
        TenantNotFound: there is none.
    """
    rows = query(f"{_TENANT} where slug = %s", [slug])
    if not rows:
        raise TenantNotFound(f"There is no tenant {slug!r}. `manage.py ductor tenants list` shows them.")
    return TenantView(*rows[0])


def list_tenants(*, after: str = "", limit: int = 100) -> list[TenantView]:
    """Return up to `limit` (1 to 1,000) tenants with slugs after `after`, by slug; the system tenant is one of them.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    return [TenantView(*row) for row in query(f"{_TENANT} where slug > %s order by slug limit %s", [after, limit])]


def get_policy(*, tenant_id: UUID) -> PolicyView:
    """Return the tenant's policy and use.

    Raises:
        PolicyMissing: none was set.
    """
    with scope_of(tenant_id):
        rows = query(
            "select p.max_outstanding, p.max_leases, p.weight, p.guaranteed_leases, p.version, l.frozen, l.outstanding,"
            " l.leased, p.own_max_outstanding, p.own_max_leases, p.updated_at"
            " from tenants_policy p join tenants_load l on l.tenant_id = p.tenant_id where p.tenant_id = %s",
            [tenant_id],
        )
    if not rows:
        raise PolicyMissing
    return PolicyView(*rows[0])


def list_usage(*, tenant_id: UUID) -> list[QueueUsage]:
    """Return the tenant's work by queue, as many rows as it has used queues."""
    with scope_of(tenant_id):
        rows = call("tenants_read_usage", tenant_id)
    return [QueueUsage(*row) for row in rows]


def list_keys(*, tenant_id: UUID, before: UUID | None = None, limit: int = 100) -> list[ApiKeyView]:
    """Return up to `limit` (1 to 1,000) keys of a tenant, newest first; `before` is the last id of the page before.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    rest, params = ("", []) if before is None else (" and id < %s", [before])
    with scope_of(tenant_id):
        rows = query(f"{_KEY}{rest} order by id desc limit %s", [tenant_id, *params, limit])
    return [as_key(row) for row in rows]


def as_key(row: tuple) -> ApiKeyView:
    """Turn a row of `tenants_apikey` (id, prefix, name, scopes, created, expires, revoked) into its view."""
    key_id, prefix, name, scopes, *times = row
    return ApiKeyView(key_id, prefix, name, tuple(scopes), *times)


def check_page(limit: int) -> None:
    """Raise LimitInvalid unless `limit` lies in 1 to 1,000."""
    if not 1 <= limit <= MAX_PAGE:
        raise LimitInvalid(f"A page holds 1 to {MAX_PAGE} rows, got {limit}.", minimum=1, maximum=MAX_PAGE, seen=limit)
