"""Taking back tasks whose lease ran out: the sweep that finds what no claim has met."""

from django.db import DatabaseError

from tenants.store import call
from workflows.faults import recover_around_faults


def recover(*, limit: int = 1000) -> int:
    """Take back up to `limit` (1 to 1,000) tasks whose lease ran out; returns how many.

    A recovery that raises is repeated tenant by tenant, with that limit each, and who raises alone is marked.

    Raises:
        BatchOutOfBounds: the limit is out of its bounds.
    """
    try:
        ((count,),) = call("workflows_recover_tasks", limit)
    except DatabaseError:
        count = recover_around_faults(limit)
    return count or 0
