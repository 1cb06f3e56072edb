"""django-q2's rows of what has ended: written by workers under the task's own tenant, as JSON.

A row is the record that a call was made: whoever makes it, or turns a failure into a success, calls the hook in the
same transaction; everybody else who ran the same call by mischance changes nothing.
"""

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django_q.conf import Conf
from django_q.models import Task
from django_q.signing import SignedPackage

from ductor.broker import AsyncTaskRefused
from ductor.contrib.q2 import functions
from ductor.contrib.q2.fields import decode, encode
from ductor.contrib.q2.packages import Link
from tenants.scope import scope_of
from tenants.store import query
from workflows.errors import UnknownWorkflow

log = structlog.get_logger("ductor.q2")

_PRUNE_ONE_IN = 32
_PRUNE_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How one call went: its JSON result, or the text of its failure."""

    success: bool
    result: Any
    started: datetime
    stopped: datetime


def saved(*, tenant_id: UUID, ids: list[str]) -> dict[str, tuple[bool, Any]]:
    """Return the rows that are there, by id: success and result."""
    with scope_of(tenant_id):
        found = query(
            "select id, success, result from django_q_task where tenant_id = %s and id = any(%s)", [tenant_id, ids]
        )
    return {id: (success, decode(result)) for id, success, result in found}


def save(*, tenant_id: UUID, link: Link, ended: Ended, iter_count: int | None = None, keep: bool = False) -> None:
    """Write the row of one call, once; then its hook, and an iter's collected row after its last call.

    A success that the caller did not want saved has no row, and so no hook, as with django-q2; `keep` writes it still.

    Raises:
        Unavailable, django.db.Error: nothing was written.
    """
    if ended.success and not (link["save"] or link["cached"] or keep or iter_count):
        return
    with scope_of(tenant_id):
        if iter_count is not None:
            _lock_group(tenant_id, link["group"])
            if saved(tenant_id=tenant_id, ids=[link["group"]]):
                return
        if not _write(tenant_id, link, ended):
            return
        if iter_count is not None:
            _collect(tenant_id, link, iter_count)
        elif link["hook"] and not link["cached"]:
            _call_hook(link, ended)
        if ended.success and random.randrange(_PRUNE_ONE_IN) == 0:  # noqa: S311  when, not what
            prune(tenant_id=tenant_id, most=Conf.SAVE_LIMIT)


def _write(tenant_id: UUID, link: Link, ended: Ended) -> bool:
    """Write a row; False where the call has succeeded before."""
    columns = {
        "tenant_id": tenant_id,
        "id": link["id"],
        "name": link["name"],
        "func": link["func"],
        "hook": link["hook"],
        "args": encode(link["args"]),
        "kwargs": encode(link["kwargs"]),
        "result": encode(ended.result),
        '"group"': link["group"],
        "cluster": link["cluster"],
        "started": ended.started,
        "stopped": ended.stopped,
        "success": ended.success,
    }
    # The columns are the literals above; values are bound.
    statement = (
        f"insert into django_q_task as t ({', '.join(columns)}, attempt_count)"  # noqa: S608
        f" values ({', '.join(['%s'] * len(columns))}, 1) on conflict (tenant_id, id) do update set"
        " stopped = excluded.stopped, result = excluded.result, success = excluded.success,"
        " attempt_count = t.attempt_count + 1 where not t.success returning 1"
    )
    return bool(query(statement, list(columns.values())))


def _lock_group(tenant_id: UUID, group: str) -> None:
    """Of the calls of an iter that end at once, each must see the ones before."""
    query("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"ductor.q2.iter:{tenant_id}:{group}"])


def _collect(tenant_id: UUID, link: Link, iter_count: int) -> None:
    """After an iter's last call: one row with all results, in the order of the arguments, in place of the calls'."""
    group = link["group"]
    where = 'from django_q_task where tenant_id = %s and "group" = %s'
    ((count,),) = query(f"select count(*) {where}", [tenant_id, group])
    if count < iter_count:
        return
    rows = query(f"select args, result, success, started, stopped {where} order by id", [tenant_id, group])
    query(f"delete {where}", [tenant_id, group])
    args, results = [[decode(row[column]) for row in rows] for column in (0, 1)]
    ended = Ended(
        success=all(row[2] for row in rows),
        result=results,
        started=min(row[3] for row in rows),
        stopped=max(row[4] for row in rows),
    )
    _write(tenant_id, link | {"id": group, "group": None, "args": args, "kwargs": {}}, ended)


def _call_hook(link: Link, ended: Ended) -> None:
    """Call a hook with the row as django-q2's model; what it does commits with the row, what it raises is logged."""
    about = {"hook": link["hook"], "q2_task": link["id"]}
    try:
        hook = functions.find(link["hook"])
    except UnknownWorkflow:
        log.error("q2_hook_unknown", **about)
        return
    fields = {name: link[name] for name in ("id", "name", "func", "hook", "args", "kwargs", "group", "cluster")}
    instance = Task(
        **fields,
        started=ended.started,
        stopped=ended.stopped,
        result=ended.result,
        success=ended.success,
        attempt_count=1,
    )
    try:
        with transaction.atomic():
            hook(instance)
            # A limit that its starts run into is the hook's failure and not the end of the row.
            query("set constraints all immediate")
    except Exception as error:  # noqa: BLE001  a hook is a handler: it may raise anything, and the row stays
        log.error("q2_hook_failed", **about, error_class=type(error).__name__)


def prune(*, tenant_id: UUID, most: int) -> int:
    """Remove the oldest successes beyond `most`, up to 1,000 at once; returns how many. 0 keeps all."""
    if most <= 0:
        return 0
    with scope_of(tenant_id):
        removed = query(
            "delete from django_q_task where tenant_id = %s and success and id in ("
            " select id from django_q_task where tenant_id = %s and success order by stopped desc offset %s limit %s)"
            " returning 1",
            [tenant_id, tenant_id, most, _PRUNE_MOST],
        )
    return len(removed)


class StoredResults:
    """What django-q2 uses as its cache of results, answered from the rows: no process reads another's cache.

    Keys are django-q2's: `<name>:<task id>`, `<name>:<group>:keys` and `<name>:<group>:args`.
    """

    def __init__(self, list_key: str) -> None:
        self.prefix = f"{list_key}:"

    def get(self, key: str, default: Any = None) -> Any:
        """Return a task as django-q2 packs it, the keys of a group, or the default."""
        name = key.removeprefix(self.prefix)
        if name.endswith(":args"):
            return default
        if name.endswith(":keys"):
            ids = Task.objects.filter(group=name.removesuffix(":keys")).order_by("id").values_list("id", flat=True)
            return [self.prefix + id for id in ids] or default
        row = Task.objects.filter(id=name).first()
        if row is None:
            return default
        wanted = ("id", "name", "func", "hook", "args", "kwargs", "group", "cluster", "started", "stopped", "success")
        return SignedPackage.dumps({field: getattr(row, field) for field in (*wanted, "result")})

    def set(self, key: str, value: Any, timeout: float | None = None) -> None:
        """Take an iter's arguments, which stand in its calls' rows anyway.

        Raises:
            AsyncTaskRefused: anything else; results are written by workers.
        """
        if not key.endswith(":args"):
            raise AsyncTaskRefused("Results are written by workers, not through django-q2's cache.")

    def delete(self, key: str) -> bool:
        """Remove a task's row; True if there was one."""
        removed, _ = Task.objects.filter(id=key.removeprefix(self.prefix)).delete()
        return bool(removed)

    def delete_many(self, keys: list[str] | None) -> None:
        """Remove the rows of tasks."""
        Task.objects.filter(id__in=[key.removeprefix(self.prefix) for key in keys or ()]).delete()
