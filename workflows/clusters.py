"""Which clusters serve this platform, as they say themselves: each writes a row of its own every few seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tenants.queries import check_page
from tenants.store import query

# Three beats missed: the cluster is down, cut off from the database, or its host stands still.
SILENT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster; `busy` of its `workers` are at work, `silent_seconds` have passed since its last heartbeat."""

    id: UUID
    host: str
    pid: int
    queues: tuple[str, ...]
    status: str
    workers: int
    busy: int
    started_at: datetime
    beat_at: datetime
    silent_seconds: float

    @property
    def is_silent(self) -> bool:
        """Say whether the cluster has missed three heartbeats."""
        return self.silent_seconds > SILENT_SECONDS


# Rows of clusters that were killed outright go with the next one's heartbeat, after a day in which they can be seen.
_BEAT = """
with gone as (delete from workflows_cluster where beat_at < ductor_now() - interval '1 day')
insert into workflows_cluster (id, host, pid, queues, status, workers, busy, started_at, beat_at)
values (%s, %s, %s, %s, %s, %s, %s, ductor_now(), ductor_now())
on conflict (id) do update set status = excluded.status, busy = excluded.busy, beat_at = excluded.beat_at
"""
_LIST = """
select id, host, pid, queues, status, workers, busy, started_at, beat_at,
  extract(epoch from ductor_now() - beat_at)::double precision
from workflows_cluster order by beat_at desc, id limit %s
"""


def beat(*, cluster_id: UUID, host: str, pid: int, queues: Sequence[str], status: str, workers: int, busy: int) -> None:
    """Write a cluster's heartbeat; the first one makes its row.

    Raises:
        Unavailable: the database can't be reached.
    """
    query(_BEAT, [cluster_id, host[:200], pid, list(queues), status[:32], workers, busy])


def leave(*, cluster_id: UUID) -> None:
    """Remove the row of a cluster that has stopped in good order.

    Raises:
        Unavailable: the database can't be reached.
    """
    query("delete from workflows_cluster where id = %s", [cluster_id])


def list_clusters(*, limit: int = 100) -> list[ClusterView]:
    """Return up to `limit` (1 to 1,000) clusters, the latest heartbeat first.

    Raises:
        LimitInvalid: the limit is out of its bounds.
    """
    check_page(limit)
    return [
        ClusterView(key, host, pid, tuple(queues), *rest) for key, host, pid, queues, *rest in query(_LIST, [limit])
    ]
