"""Which keys go with a member: what a page says before it removes one."""

from uuid import UUID

from tenants.members import get_member
from tenants.scope import scope_of
from tenants.store import query

# A key's maker is a person, or a key whose maker is one.
_COUNT = """
with recursive made as (
  select k.id from tenants_apikey k where k.tenant_id = %s and k.created_by ->> 'kind' = 'person'
    and k.created_by ->> 'id' = %s
  union
  select k.id from tenants_apikey k join made m on k.created_by ->> 'id' = m.id::text
  where k.tenant_id = %s and k.created_by ->> 'kind' = 'key')
select count(*) from tenants_apikey k
where k.tenant_id = %s and k.id in (select id from made) and k.revoked_at is null
"""


def count_keys(*, tenant_id: UUID, member_id: UUID) -> int:
    """Return how many keys are revoked when the member is removed: those it made, and those that these made.

    Raises:
        MemberNotFound: the tenant has no such member.
    """
    with scope_of(tenant_id):
        person = str(get_member(tenant_id=tenant_id, member_id=member_id).person_id)
        ((count,),) = query(_COUNT, [tenant_id, person, tenant_id, tenant_id])
    return int(count)
