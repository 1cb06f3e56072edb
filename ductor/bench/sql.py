"""The SQL limit, and the product's own verbs driven in the same way: two clients, no Python per task."""

import threading
import time
from pathlib import Path
from typing import Any

import psycopg

from ductor.bench import ground

CLIENTS = 2
BATCH = 50

# A turn of the product's own verbs as limit.sql has one: claim, commit, finish.
OWN_TURN = """
create procedure bench_turn(p_worker text, p_queue text, p_want int) language plpgsql as $$
declare v jsonb; begin
  select jsonb_agg(jsonb_build_object('tenant_id', tenant_id, 'task_id', task_id, 'token', token, 'kind', 'completed',
    'output', '{"ok": true}'::jsonb, 'used_us', 5000)) into v
  from workflows_claim_tasks(p_worker, p_queue, p_want, 50, 60);
  commit;
  if v is not null then perform workflows_finish_tasks(p_worker, v, true); end if; end $$;
grant execute on procedure bench_turn to ductor_worker;
"""


def limit_per_s(owner: "psycopg.Connection[Any]", seconds: float) -> float:
    """Tasks a second of the fixed reference script, with 100 tenants."""
    owner.execute((Path(__file__).parent / "limit.sql").read_text())
    owner.execute("select lim.seed(100, %s)", [int(400 * seconds)])
    owner.execute("reset search_path")
    owner.execute("vacuum analyze lim.task")
    elapsed = _drive("owner", f"call lim.turn(%s, {BATCH}, {BATCH // 10}, 10)", seconds)
    ((done,),) = owner.execute("select count(*) from lim.task where status = 3").fetchall()
    owner.execute("drop schema lim cascade")
    return float(done / elapsed)


def own_per_s(owner: "psycopg.Connection[Any]", seconds: float) -> float:
    """Tasks a second of the product's claim and finish, with 100 tenants and row security, audit columns and all."""
    ground.fill(ground.make_tenants(owner, "sql", 100), int(200 * seconds), "bench-sql")
    owner.execute(OWN_TURN)
    owner.execute("vacuum analyze workflows_task")
    elapsed = _drive("worker", f"call bench_turn(%s, 'bench-sql', {BATCH})", seconds)
    ((done,),) = owner.execute(
        "select count(*) from workflows_task where queue = 'bench-sql' and state = 'completed'"
    ).fetchall()
    owner.execute("drop procedure bench_turn")
    return float(done / elapsed)


def _drive(role: str, statement: str, seconds: float) -> float:
    stop = time.monotonic() + seconds
    failures: list[BaseException] = []

    def client(name: str) -> None:
        try:
            with ground.connect(role) as connection:
                while time.monotonic() < stop:
                    connection.execute(statement, [name])
        except psycopg.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=(f"bench-{number}",)) for number in range(CLIENTS)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.monotonic() - begun
