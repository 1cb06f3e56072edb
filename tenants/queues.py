"""Queues: declared names, each with its clock. Made by the owner's process, since a clock is a sequence."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from tenants.errors import IdentityInvalid, QueueTaken
from tenants.identity import SYSTEM_QUEUE
from tenants.principals import Principal
from tenants.store import query

# The clock's name `tenants_clock_<queue>` has to fit into PostgreSQL's 63 bytes.
_QUEUE = re.compile(r"[a-z][a-z0-9_.:-]{0,47}", re.ASCII)


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue: its name and when it was made."""

    name: str
    created_at: datetime


def parse_queue(name: str) -> str:
    """Return `name` if it can name a queue.

    Raises:
        IdentityInvalid: it can't.
    """
    if not isinstance(name, str) or not _QUEUE.fullmatch(name):
        raise IdentityInvalid(
            f"A queue's name is 1 to 48 of a-z, 0-9, '_', '.', ':' and '-', beginning with a letter; got {name!r}.",
            seen=str(name)[:64],
        )
    return name


def create_queue(*, name: str, principal: Principal) -> QueueView:
    """Make a queue and its clock.

    Raises:
        IdentityInvalid: the name can't name a queue.
        QueueTaken: there is one of this name.
    """
    from tenants.audit import record_system

    parse_queue(name)
    with transaction.atomic(), connection.cursor() as cursor:
        if not _insert(cursor, name):
            raise QueueTaken(f"There is a queue {name!r} already.", queue=name)
        record_system(principal=principal, act="queue.create", target_kind="queue", target_id=name)
    return next(queue for queue in list_queues() if queue.name == name)


def list_queues() -> list[QueueView]:
    """Return every queue, by name."""
    return [QueueView(*row) for row in query("select name, created_at from tenants_queue order by name")]


def ensure_queues(cursor: Any, names: Iterable[str]) -> None:
    """Make the queues that are declared in the settings, and the system's own, where they are missing."""
    for name in (SYSTEM_QUEUE, *names):
        _insert(cursor, parse_queue(name))


def _insert(cursor: Any, name: str) -> bool:
    cursor.execute(
        "insert into tenants_queue (name, created_at) values (%s, ductor_now()) on conflict do nothing", [name]
    )
    made = bool(cursor.rowcount)
    cursor.execute(f'create sequence if not exists "tenants_clock_{name}" minvalue 0 start 1')
    cursor.execute(f'grant usage, select, update on sequence "tenants_clock_{name}" to ductor_engine')
    return made
