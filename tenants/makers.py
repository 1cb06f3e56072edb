"""Whoever hands out access must still have it when that commits.

A request is let in by a look at the membership or the key. Until it commits, that member may be removed or the key
revoked by others; what it hands out meanwhile (a key, an invitation) would outlive them, unseen by their removal. So
the maker's own row is held to the end of the transaction: either the removal waits and finds what was made, or the
maker is gone.
"""

from datetime import datetime
from uuid import UUID

from tenants.errors import Forbidden, NotFound
from tenants.identity import parse_id
from tenants.principals import Principal
from tenants.store import query

_MEMBER = "select role, null from tenants_member where tenant_id = %s and person_id = %s for share"
_KEY = "select 'key', expires_at from tenants_apikey where tenant_id = %s and id = %s and revoked_at is null for share"


def hold_maker(tenant_id: UUID, principal: Principal) -> datetime | None:
    """Hold the row by which a person or a key acts, and return when that key ends, None where nothing ends.

    Call it inside the scope, before what is made is written.

    Raises:
        Forbidden: the row is gone, the key was revoked, or the person has another role by now.
    """
    if principal.kind not in ("person", "key"):
        return None
    statement, expected = (_MEMBER, principal.role) if principal.kind == "person" else (_KEY, "key")
    try:
        rows = query(statement, [tenant_id, parse_id(principal.id)])
    except NotFound:
        rows = []
    if [row[0] for row in rows] != [expected]:
        raise Forbidden("Whoever acts here has lost the right to do so meanwhile.")
    ends_at: datetime | None = rows[0][1]
    return ends_at
