"""Where tenants stand against their limits: reads over all tenants, for operators only (row security shows the rest
nothing). Bounded, by slug or by how near the limit is; nothing is counted."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tenants.queries import check_page
from tenants.store import query

# From this share of a limit on, a tenant is near it.
NEAR = 0.8


@dataclass(frozen=True, slots=True)
class Standing:
    """One tenant with its use against the limits in force, which are None where it has no policy."""

    id: UUID
    slug: str
    name: str
    status: str
    service_class: str
    created_at: datetime
    outstanding: int | None
    max_outstanding: int | None
    leased: int | None
    max_leases: int | None
    weight: int | None
    guaranteed_leases: int | None
    frozen: int | None


_SELECT = """
select n.id, n.slug, n.name, n.status, n.service_class, n.created_at, l.outstanding, l.max_outstanding, l.leased,
  l.max_leases, l.weight, l.guaranteed_leases, l.frozen
from tenants_tenant n
"""
_PAGE = f"""
{_SELECT} left join tenants_load l on l.tenant_id = n.id
where n.slug > %s and n.slug like %s order by n.slug limit %s
"""
_NEAREST = f"""
{_SELECT} join tenants_load l on l.tenant_id = n.id
where l.outstanding >= %s * l.max_outstanding or l.leased >= %s * l.max_leases
order by greatest(l.outstanding::float8 / l.max_outstanding, l.leased::float8 / l.max_leases) desc, n.slug limit %s
"""


def list_standings(*, after: str = "", prefix: str = "", limit: int = 100) -> list[Standing]:
    """Return up to `limit` (1 to 1,000) tenants with slugs after `after` that begin with `prefix`, by slug.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    wanted = prefix.replace("\\", "").replace("%", "").replace("_", "")
    return [Standing(*row) for row in query(_PAGE, [after, f"{wanted}%", limit])]


def list_near_limit(*, limit: int = 20) -> list[Standing]:
    """Return up to `limit` (1 to 1,000) tenants whose tasks or leases have reached 80 % of their limit, nearest first.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    return [Standing(*row) for row in query(_NEAREST, [NEAR, NEAR, limit])]
