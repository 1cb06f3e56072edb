"""The measuring process: prints what it does, line by line, and at the end one JSON object."""

import json
import sys
from collections.abc import Callable
from typing import Any

import django


def main(arguments: list[str]) -> None:
    """Measure everything, or what the arguments name (`--http`, `--start`); `--quick` takes less time for it."""
    django.setup()
    from ductor.bench import ground
    from ductor.bench.server import BenchFailed

    quick = "--quick" in arguments
    parts = [part for name, part in PARTS.items() if f"--{name}" in arguments] or [_kernel, *PARTS.values()]
    figures: dict[str, float] = {}
    try:
        with ground.connect("owner") as owner:
            for part in parts:
                figures |= part(owner, quick)
    except BenchFailed as failure:
        print(failure, flush=True)
        raise SystemExit(1) from None
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}), flush=True)


def _kernel(owner: Any, quick: bool) -> dict[str, float]:
    from ductor.bench import order, queue, sql

    figures: dict[str, float] = {}
    _say("the SQL limit")
    figures["sql_limit_per_s"] = sql.limit_per_s(owner, 4 if quick else 15)
    _say("the product's own verbs in SQL")
    figures["sql_own_per_s"] = sql.own_per_s(owner, 4 if quick else 15)
    _say("enqueueing")
    figures["enqueue_bulk_per_s"] = queue.enqueue_bulk_per_s(owner, 40_000 if quick else 200_000)
    figures["enqueue_single_per_s"] = queue.enqueue_single_per_s(owner, 500 if quick else 3_000)
    _say("no-op tasks through a cluster of two workers")
    figures["noop_per_s"] = queue.noop_per_s(owner)
    _say("claims with 10 and with 10,000 tenants")
    figures |= order.claim_latencies(owner, 5_000 if quick else 15_000)
    _say("fairness")
    figures["jain"] = order.jain(owner, 4_000 if quick else 20_000)
    figures["noop_of_limit"] = figures["noop_per_s"] / figures["sql_limit_per_s"]
    figures["claim_p99_ratio"] = figures["claim_p99_ms_10000"] / figures["claim_p99_ms_10"]
    return figures


def _http(owner: Any, quick: bool) -> dict[str, float]:
    from ductor.bench import http

    _say("single starts over HTTP")
    return http.figures(owner, 5 if quick else 20)


def _start(owner: Any, quick: bool) -> dict[str, float]:
    from ductor.bench import latency

    _say("how soon an idle cluster starts a task")
    return latency.figures(owner, 100 if quick else 300)


PARTS: dict[str, Callable[[Any, bool], dict[str, float]]] = {"http": _http, "start": _start}


def _say(what: str) -> None:
    print(f"measuring {what}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
