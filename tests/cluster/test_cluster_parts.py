"""The parts of a cluster that need no processes: settings, options, names, crash delays, outages."""

from argparse import ArgumentTypeError

import pytest
from django.db import OperationalError
from structlog.testing import capture_logs

from ductor.cluster.outage import MAX_PAUSE_SECONDS, Outage, one_line
from ductor.cluster.plan import worker_name
from ductor.cluster.sentinel import CrashLoop
from ductor.cluster_settings import q_cluster
from ductor.management.commands.qcluster import pool_size, queue_names, seconds


def test_no_default_of_django_q2_that_loses_or_repeats_work_is_left() -> None:
    settings = q_cluster()
    assert settings["broker_class"] == "ductor.broker.Broker"
    assert settings["scheduler"] is False
    assert (settings["max_attempts"], settings["ack_failures"], settings["save_limit"]) == (1, True, 10_000)
    assert 0 < settings["timeout"] < settings["retry"]
    assert settings["guard_cycle"] == 0.5


@pytest.mark.parametrize("text", ["0", "-1", "257", "two", "1.5", "²", " 1 2"])
def test_a_wrong_number_of_workers_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DUCTOR_WORKERS", text)
    with pytest.raises(ValueError, match="DUCTOR_WORKERS must be a whole number from 1 to 256"):
        q_cluster()


def test_the_environment_sets_the_pool_and_when_a_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCTOR_WORKERS", " 7 ")
    monkeypatch.setenv("DUCTOR_RECYCLE_TASKS", "1000")
    assert (q_cluster()["workers"], q_cluster()["recycle"]) == (7, 1000)


@pytest.mark.parametrize("text", ["", "0", "257", "-1", "1.0", "x", "٣"])
def test_bad_pool_sizes(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        pool_size(text)


@pytest.mark.parametrize("text", ["", "-1", "1e3", "nan", "inf", "86401", "1.2345", "٣"])
def test_bad_spans(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        seconds(text)


def test_queue_names_are_taken_once_each_and_in_order() -> None:
    assert queue_names("default, external:gpu,default") == ("default", "external:gpu")


@pytest.mark.parametrize("text", ["", "system", "default,", "Upper", "a b", "a;drop", "x" * 65])
def test_bad_queue_names(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        queue_names(text)


def test_worker_names_never_repeat() -> None:
    assert len({worker_name() for _ in range(1000)}) == 1000


def test_a_few_crashes_are_answered_at_once_and_a_crash_loop_more_and_more_slowly() -> None:
    crashes = CrashLoop()
    assert [crashes.next_delay(turns=7) for _ in range(10)] == [0, 0, 0, 0.5, 1, 2, 4, 5, 5, 5]


def test_crashes_between_which_turns_are_finished_delay_nobody() -> None:
    crashes = CrashLoop()
    assert {crashes.next_delay(turns=number) for number in range(1, 1000)} == {0}


def test_one_finished_turn_forgives_all_crashes() -> None:
    crashes = CrashLoop()
    for _ in range(30):
        crashes.next_delay(turns=1)
    assert [crashes.next_delay(turns=2) for _ in range(4)] == [0, 0, 0, 0.5]


def test_an_outage_pauses_longer_each_time_up_to_a_bound_and_starts_afresh_when_it_is_over() -> None:
    outage = Outage()
    pauses = [outage.note(OperationalError("gone")) for _ in range(20)]
    assert 0.1 <= pauses[0] <= 0.2
    assert max(pauses) <= MAX_PAUSE_SECONDS
    assert min(pauses[-5:]) >= MAX_PAUSE_SECONDS / 2
    outage.over()
    assert outage.note(OperationalError("gone")) <= 0.2


def test_an_outage_is_one_line_until_its_text_changes() -> None:
    outage = Outage()
    with capture_logs() as lines:
        for text in ["gone", "gone", "gone\nDETAIL: a row's content", "starting up"]:
            outage.note(OperationalError(text))
        outage.over()
    assert lines == [
        {"event": "turn_failed", "why": "OperationalError: gone", "log_level": "warning"},
        {"event": "turn_failed", "why": "OperationalError: starting up", "log_level": "warning"},
        {"event": "turns_run_again", "failures": 4, "log_level": "warning"},
    ]


def test_a_failure_without_text_is_still_a_line() -> None:
    assert one_line(OperationalError()) == "OperationalError: "
