"""What the fair order costs by number of tenants, and how fair it is."""

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from ductor.bench import ground
from workflows import claims
from workflows.claims import Outcome

FEW, MANY = 10, 10_000
LIMIT = 20
ROUNDS = 3


def claim_latencies(owner: "psycopg.Connection[Any]", claims_each: int) -> dict[str, float]:
    """p50 and p99 of a claim of 20 in milliseconds with 10 and with 10,000 tenants, interleaved, median of three."""
    ground.fill(ground.make_tenants(owner, "few", FEW), 1000, "bench-few")
    ground.fill(ground.make_tenants(owner, "many", MANY), 2, "bench-many")
    owner.execute("vacuum analyze workflows_task, tenants_turn, tenants_load")
    rounds: dict[str, list[list[float]]] = {"bench-few": [], "bench-many": []}
    for _ in range(ROUNDS):
        samples: dict[str, list[float]] = {"bench-few": [], "bench-many": []}
        for _ in range(claims_each // ROUNDS + 1):
            for queue, found in samples.items():
                found.append(_claim_once(queue))
        for queue, found in samples.items():
            rounds[queue].append(found)
    figures = {}
    for queue, count in (("bench-few", FEW), ("bench-many", MANY)):
        for name, share in (("p50", 50), ("p99", 99)):
            each = [statistics.quantiles(found, n=100)[share - 1] for found in rounds[queue]]
            figures[f"claim_{name}_ms_{count}"] = statistics.median(each) * 1000
    return figures


def _claim_once(queue: str) -> float:
    begun = time.perf_counter()
    taken = claims.take(worker="bench", queue=queue, limit=LIMIT)
    elapsed = time.perf_counter() - begun
    # Back into the queue, so that the backlog stays what it is and the turns rotate.
    claims.finish(outcomes=[Outcome(task.claim, "retry", used_seconds=0.005) for task in taken.tasks])
    return elapsed


def jain(owner: "psycopg.Connection[Any]", served: int) -> float:
    """Jain's fairness index (Jain, Chiu, Hawe 1984) of tasks served to 20 equal tenants, all with work waiting."""
    tenants = ground.make_tenants(owner, "jain", 20)
    ground.fill(tenants, served // 10, "bench-jain")
    shares: Counter[Any] = Counter(dict.fromkeys(tenants, 0))
    while sum(shares.values()) < served:
        taken = claims.take(worker="bench", queue="bench-jain", limit=50).tasks
        claims.finish(outcomes=[Outcome(task.claim, "completed", used_seconds=0.005) for task in taken])
        shares.update(task.claim.tenant_id for task in taken)
    return jain_index(list(shares.values()))


def jain_index(shares: Sequence[float]) -> float:
    """Return Jain's index of shares: 1 where all are equal, 1/n where one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
