"""Request rates (S22): told on every answer, one's own alone, and a Retry-After that comes true."""

import random
import re
import time
from collections.abc import Iterator
from math import ceil
from typing import Any

import pytest

from ductor import rates
from ductor.cluster_settings import api_rate
from ductor.rates import WINDOW_SECONDS, Rates
from tenants.identity import new_id
from tests.api.callers import TASKS, Caller, assert_problem, build_caller, handler, written


class Hand:
    """A clock under the test's hand, in the middle of a window."""

    def __init__(self, at: float = 1_800_000_010.0) -> None:
        self.now = at

    def time(self) -> float:
        return self.now

    monotonic = time


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    found = Hand()
    monkeypatch.setattr(time, "time", found.time)
    return found


@pytest.fixture
def three_a_minute(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the surface count to three."""
    monkeypatch.setattr(rates, "Rates", lambda amount: Rates(3))
    handler.cache_clear()
    yield
    handler.cache_clear()


def standing(answer: Any) -> tuple[int, int]:
    """What is left, and for how many seconds."""
    found = re.fullmatch(r'"api";r=(\d+);t=(\d+)', answer["RateLimit"])
    assert found is not None, answer["RateLimit"]
    return int(found[1]), int(found[2])


def test_every_answer_of_the_api_says_where_the_tenant_stands(three_a_minute: None) -> None:
    caller = build_caller()
    answers = [caller.get(), caller.get(f"{TASKS}?surprise=1"), caller.get(f"{TASKS}/{new_id()}")]
    assert [answer.status_code for answer in answers] == [200, 400, 404]
    assert {answer["RateLimit-Policy"] for answer in answers} == {'"api";q=3;w=60'}
    assert [standing(answer)[0] for answer in answers] == [2, 1, 0]
    assert all(1 <= standing(answer)[1] <= WINDOW_SECONDS for answer in answers)


def test_one_too_many_is_refused_with_a_time_and_reaches_nothing(three_a_minute: None) -> None:
    caller = build_caller()
    for _ in range(3):
        caller.get()
    before = written()
    answer = caller.start()
    document = assert_problem(answer, 429, "rate_limited")
    assert (document["policy"], document["limit"], document["window"]) == ("api", 3, 60)
    assert int(answer["Retry-After"]) == document["retry_after"] >= standing(answer)[1] >= 1
    assert standing(answer)[0] == 0
    assert written() == before


def test_one_tenant_s_use_shows_in_no_other_s_answers(three_a_minute: None) -> None:
    busy, quiet = build_caller(), build_caller()
    for _ in range(6):
        busy.get()
    assert busy.get().status_code == 429
    answer = quiet.get()
    assert (answer.status_code, standing(answer)[0]) == (200, 2)


def test_who_has_no_valid_key_is_told_nothing(three_a_minute: None) -> None:
    answer = Caller(build_caller().tenant, "abcdefgh." + "x" * 40).get()
    assert answer.status_code == 401
    assert "RateLimit" not in answer.headers


@pytest.mark.parametrize("seed", range(20))
def test_what_retry_after_says_comes_true(hand: Hand, seed: int) -> None:
    """Whatever came before: after exactly so many seconds one request passes, and without waiting none does."""
    chance = random.Random(seed)
    counted, tenant = Rates(chance.choice([1, 2, 3, 7, 50])), new_id()
    refusals = 0
    for _ in range(400):
        outlook = counted.hit(tenant)
        if not outlook.passed:
            refusals += 1
            assert outlook.remaining == 0
            assert not counted.hit(tenant).passed
            hand.now += ceil(outlook.seconds)
            assert counted.hit(tenant).passed, (seed, outlook)
        [pause] = chance.choices([0.0, 0.01, 0.5, 3.0, 61.0], [20, 20, 5, 2, 1])
        hand.now += pause
    assert refusals > 0


def test_no_window_of_sixty_seconds_takes_twice_the_rate(hand: Hand) -> None:
    counted, tenant, passed = Rates(20), new_id(), []
    for _ in range(3000):
        hand.now += 0.1
        if counted.hit(tenant).passed:
            passed.append(hand.now)
    assert max(sum(at <= moment < at + WINDOW_SECONDS for moment in passed) for at in passed) < 40
    assert len(passed) >= 20 * 4


def test_counts_of_tenants_that_are_gone_are_forgotten(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", hand.time)
    counted = Rates(20)
    for _ in range(100):
        counted.hit(new_id())
    hand.now += 3 * WINDOW_SECONDS
    counted.hit(new_id())
    assert len(counted._storage.storage) == 1


@pytest.mark.parametrize(("processes", "share"), [("1", 60_000), ("7", 8571), ("64", 937)])
def test_the_rate_is_shared_by_the_server_s_processes(
    monkeypatch: pytest.MonkeyPatch, processes: str, share: int
) -> None:
    monkeypatch.setenv("DUCTOR_SERVER_PROCESSES", processes)
    assert api_rate() == share
    monkeypatch.setenv("DUCTOR_API_RATE", "3")
    assert api_rate() == max(1, 3 // int(processes))
