"""Idle workers and the wake-up: registered here, a worker gets a NOTIFY when a turn of its queues becomes ready."""

from collections.abc import Sequence

from tenants.store import query

CHANNEL = "ductor_wake"


def listen_idle(*, worker: str, queues: Sequence[str], seconds: float = 60.0) -> None:
    """Register a worker as idle for at most `seconds`; claim once more after it, then sleep."""
    query(
        "insert into tenants_listener (worker, queues, expires_at)"
        " values (%s, %s, ductor_now() + make_interval(secs => %s))"
        " on conflict (worker) do update set queues = excluded.queues, expires_at = excluded.expires_at",
        [worker, list(queues), seconds],
    )


def clear_idle(*, worker: str) -> None:
    """Take a worker's registration back; also removes those that ran out."""
    query("delete from tenants_listener where worker = %s or expires_at < ductor_now() - interval '1 hour'", [worker])
