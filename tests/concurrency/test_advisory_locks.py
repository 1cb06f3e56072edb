"""R29: advisory locks are held by a transaction, are keyed by 64 bits, and have a namespace each."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import transaction

from tenants.queries import TenantView
from tests.architecture.sources import PACKAGES, ROOT, name_of, python_files
from tests.builders import PRINCIPAL, build_queue, build_tenant, claim, rows
from tests.database import touch
from tests.races import Aside
from workflows.admission import NewTask, enqueue
from workflows.registrations import ensure_definition
from workflows.waking import listen_idle

LOCK = re.compile(r"pg_(?:try_)?advisory\w*\([^\n]*")
LAWFUL = re.compile(r"pg_(?:try_)?advisory_xact_lock(?:_shared)?\(hashtextextended\((?:'(ductor\.[a-z-]+:?)'|%s)")
NAMESPACES = {
    "ductor.definition:": "workflows/registrations.py",
    "ductor.init-db": "ductor/init_db.py",
    "ductor.wake:": "tenants/sql/wake_v01.sql workflows/sql/next_due_v01.sql",
}
HELD = """
select l.objsubid, l.mode from pg_locks l where l.locktype = 'advisory' and l.granted
  and (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(%s, 0)
"""


def test_every_advisory_lock_ends_with_its_transaction_has_64_bits_and_a_namespace() -> None:
    files = [*python_files(*PACKAGES), *sorted(path for top in PACKAGES for path in (ROOT / top).rglob("*.sql"))]
    seen: dict[str, set[str]] = {}
    for path in files:
        text = path.read_text()
        for call in LOCK.findall(text):
            assert LAWFUL.match(call), f"{name_of(path)}: {call}"
            for namespace in re.findall(r"[\"'](ductor\.[a-z-]+(?::|(?=[\"'])))", text):
                seen.setdefault(namespace, set()).add(name_of(path))
    assert {namespace: " ".join(sorted(paths)) for namespace, paths in seen.items()} == NAMESPACES
    assert [(a, b) for a in NAMESPACES for b in NAMESPACES if a != b and a.startswith(b)] == []


def colliding(left: str, right: str) -> tuple[str, str]:
    """Return two names that 32 bits can't tell apart behind these prefixes, and 64 bits can."""
    ((one, two),) = rows(
        "with k as (select p.prefix, n, hashtext(p.prefix || n || ':1') as h"
        " from unnest(array[%s, %s]) p(prefix), generate_series(1, 200000) n)"
        " select (min(n) filter (where prefix = %s))::text, (min(n) filter (where prefix = %s))::text"
        " from k group by h having count(distinct prefix) = 2 limit 1",
        left,
        right,
        left,
        right,
    )
    assert rows("select hashtextextended(%s, 0) = hashtextextended(%s, 0)", f"{left}{one}:1", f"{right}{two}:1") == [
        (False,)
    ]
    return one, two


@contextmanager
def held_open(act: Callable[[], object]) -> Iterator[None]:
    """Keep the transaction of `act` open, on a connection of its own, around the block."""
    done, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            act()
            done.set()
            assert go_on.wait(20)

    aside = Aside(hold)
    assert done.wait(10)
    try:
        yield
    finally:
        go_on.set()
        aside.result()


def store(tenant: TenantView, name: str) -> bool:
    return ensure_definition(
        tenant_id=tenant.id,
        name=name,
        version=1,
        checksum="0" * 64,
        graph={"format": 1, "nodes": []},
        input_schema=None,
    )


def test_r29_definitions_of_two_tenants_whose_keys_collide_in_32_bits_do_not_wait() -> None:
    acme, globex = build_tenant(), build_tenant()
    mine, other = colliding(f"ductor.definition:{acme.id}:w", f"ductor.definition:{globex.id}:w")
    key = f"ductor.definition:{acme.id}:w{mine}:1"
    with held_open(lambda: store(acme, f"w{mine}")):
        assert rows(HELD, key) == [(1, "ExclusiveLock")]
        assert not store(acme, f"w{mine}"), "the lock that is held is this one"
        assert store(globex, f"w{other}")
    assert rows(HELD, key) == []
    assert store(acme, f"w{mine}")


def test_r29_wake_ups_of_two_queues_whose_keys_collide_in_32_bits_are_told_apart() -> None:
    """A wake-up under way in one queue keeps no worker of the other from sleeping."""
    ((busy, idle),) = rows(
        "with k as (select 'r29-' || n as q, hashtext('ductor.wake:r29-' || n) as h from generate_series(1, 300000) n)"
        " select min(q), max(q) from k group by h having count(*) > 1 order by 1 limit 1"
    )
    tenant = build_tenant()
    build_queue(busy)
    build_queue(idle)
    touch()
    task = NewTask("w", 1, None, queue=busy)
    with held_open(lambda: enqueue(tenant_id=tenant.id, tasks=[task], principal=PRINCIPAL, immediate=True)):
        assert rows(HELD, f"ductor.wake:{busy}") == [(1, "ShareLock")]
        listen_idle(worker="sleeper", queues=[busy, idle])
        assert next_due(idle) is None
        assert next_due(busy) is not None
    assert rows(HELD, f"ductor.wake:{busy}") == []
    assert len(claim(queue=busy)) == 1


def next_due(queue: str) -> object:
    ((due,),) = rows("select workflows_next_due(%s)", queue)
    return due
