"""Forty at once for five places (B48): five tasks, thirty-five typed refusals that say when to come back, no fault."""

import threading
from typing import Any

from django.db import connections

from tests.api.callers import assert_problem, build_caller
from tests.builders import assert_counters_true, rows


def test_forty_racers_for_five_places() -> None:
    caller = build_caller(max_outstanding=5)
    barrier = threading.Barrier(40)
    answers: list[Any] = []

    def race(number: int) -> None:
        try:
            barrier.wait(timeout=20)
            answers.append(caller.start(input={"order": number}))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(answer.status_code for answer in answers) == [201] * 5 + [429] * 35
    for answer in answers:
        if answer.status_code == 429:
            document = assert_problem(answer, 429, "quota_exceeded")
            assert int(answer["Retry-After"]) == document["retry_after"] >= 1
    assert rows("select count(*) from workflows_task where tenant_id = %s", caller.tenant.id) == [(5,)]
    assert_counters_true()
