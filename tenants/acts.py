"""What can be read about audited acts (DESIGN D17): frozen values, newest first, bounded."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from tenants.queries import check_page
from tenants.scope import scope_of
from tenants.store import loaded, query


@dataclass(frozen=True, slots=True)
class ActView:
    """One act: who did what to which thing, when, why, and how the thing stood before and after."""

    id: UUID
    at: datetime
    principal: dict[str, str]
    act: str
    target_kind: str
    target_id: str
    reason: str
    request_id: str
    before: Any
    after: Any


_COLUMNS = [field.name for field in fields(ActView)]
_JSON = frozenset({"principal", "before", "after"})


def list_acts(
    *,
    tenant_id: UUID,
    act: str | None = None,
    target_kind: str | None = None,
    target_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[ActView]:
    """Return up to `limit` (1 to 1,000) acts, newest first; `before` is the last id of the page before.

    `since` is the first moment that counts, `until` the first that no longer does.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    conditions: list[tuple[str, list[Any]]] = [
        ("act = %s", [act]),
        ("target_kind = %s", [target_kind]),
        ("target_id = %s", [target_id]),
        ("at >= %s", [since]),
        ("at < %s", [until]),
        # An id that is not this tenant's leaves the comparison unknown, and the page empty.
        ("(at, id) < (select at, id from tenants_act where tenant_id = %s and id = %s)", [tenant_id, before]),
    ]
    given = [(text, values) for text, values in conditions if values[-1] is not None]
    where = " and ".join(["tenant_id = %s", *(text for text, _ in given)])
    params = [tenant_id, *(value for _, values in given for value in values), limit]
    sql = f"select {', '.join(_COLUMNS)} from tenants_act where {where} order by at desc, id desc limit %s"  # noqa: S608
    with scope_of(tenant_id):
        rows = query(sql, params)
    return [_as_act(row) for row in rows]


def _as_act(row: tuple[Any, ...]) -> ActView:
    return ActView(*(loaded(value) if name in _JSON else value for name, value in zip(_COLUMNS, row, strict=True)))
