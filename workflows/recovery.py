"""Taking back tasks whose lease ran out: the sweep that finds what no claim has met."""

from tenants.store import call


def recover(*, limit: int = 1000) -> int:
    """Take back up to `limit` (1 to 1,000) tasks whose lease ran out; returns how many.

    Raises:
        BatchOutOfBounds: the limit is out of its bounds.
    """
    ((count,),) = call("workflows_recover_tasks", limit)
    return int(count)
