"""The shared memory of a cluster: flags, timers and the board, across a fork and across a kill."""

import os
import signal
import time
from multiprocessing.context import ForkProcess

import pytest

from ductor.cluster.shared import Board, Flag, Phase, Timer


def test_a_flag_raised_in_a_child_is_seen_in_the_parent() -> None:
    flag = Flag()
    child = ForkProcess(target=flag.set)
    child.start()
    child.join()
    assert flag.is_set()


def test_waiting_for_a_flag_ends_at_the_time_limit_and_when_it_is_raised() -> None:
    flag = Flag()
    began = time.monotonic()
    assert flag.wait(0.05) is False
    assert 0.05 <= time.monotonic() - began < 1
    flag.set()
    assert flag.wait(60) is True


def test_a_child_killed_while_it_writes_leaves_flag_and_timer_usable() -> None:
    flag, timer = Flag(), Timer()

    def write_for_ever() -> None:
        while True:
            timer.value = 5

    child = ForkProcess(target=write_for_ever)
    child.start()
    while timer.value == Timer.IDLE:
        time.sleep(0.001)
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    timer.value = Timer.RECYCLED
    flag.set()
    assert (timer.value, flag.is_set()) == (Timer.RECYCLED, True)


def test_a_timer_speaks_the_protocol_of_django_q2() -> None:
    timer = Timer()
    assert timer.value == -1
    timer.value = 30
    assert 29 < timer.value <= 30
    timer.value = 0.01
    time.sleep(0.02)
    assert timer.value == 0
    timer.value = -2
    assert timer.value == -2


@pytest.mark.parametrize("seconds", [0.01, 0.2, 0.3, 0.5, 0.7])
def test_a_timer_always_comes_to_zero_and_stays_there(seconds: float) -> None:
    timer = Timer()
    timer.value = seconds
    time.sleep(seconds + 0.01)
    assert [timer.value, timer.value] == [Timer.KILL, Timer.KILL]


def test_the_board_shows_who_sits_where() -> None:
    board = Board(2)
    assert (board.pids, board.phases) == ([], [Phase.VACANT, Phase.VACANT])
    board.open(1)
    board.seat(1, 4711)
    assert (board.pids, board.phases) == ([4711], [Phase.VACANT, Phase.STARTING])
    board.enter(1, Phase.IDLE)
    assert board.all_are(Phase.IDLE) is False
    assert board.all_are(Phase.IDLE, Phase.VACANT) is True
    board.vacate(1)
    assert (board.pids, board.phases) == ([], [Phase.VACANT, Phase.VACANT])


def test_finished_turns_are_counted_over_all_seats() -> None:
    board = Board(2)
    for seat in (0, 1, 1):
        board.turn_done(seat)
    board.vacate(1)
    assert board.turns == 3
