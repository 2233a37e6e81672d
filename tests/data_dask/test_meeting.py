"""Fits side by side: one round for what all of them ask, whatever becomes of single ones."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from projfree.data.base import RowsLostError
from projfree.data.dask.jobs import Several, Work
from projfree.data.dask.meeting import Meeting
from projfree.data.dask.rounds import Rounds


class Number(Work):
    """A job whose answer is known."""

    def __init__(self, value):
        self.value = value

    def on(self, rows, threads):
        return self.value


class Spoken(Rounds):
    """Rounds over one partition that is not there; ``fail`` may raise something in its place."""

    def __init__(self, fail=lambda count: None):
        self.fail, self.rounds, self.threads = fail, [], set()

    def at_once(self, job):
        self.rounds.append(len(job.works) if isinstance(job, Several) else 1)
        self.threads.add(threading.current_thread())
        self.fail(len(self.rounds))
        return job.on(None, 1)


def asking(rounds, name, times):
    return lambda: [rounds.run(Number((name, k))) for k in range(times)]


def test_all_ask_in_one_round_that_the_holder_runs():
    rounds = Spoken()
    found = Meeting(rounds).hold([asking(rounds, name, 5) for name in range(4)])
    assert found == [[(name, k) for k in range(5)] for name in range(4)]
    assert sum(rounds.rounds) == 20
    assert rounds.threads == {threading.current_thread()}
    assert rounds.run(Number(3)) == 3  # and afterwards as ever


def test_those_who_leave_early_hold_up_nobody():
    rounds = Spoken()
    found = Meeting(rounds).hold([asking(rounds, name, name) for name in range(5)])
    assert [len(one) for one in found] == [0, 1, 2, 3, 4]


def test_one_may_wait_for_what_another_one_asks():
    rounds, lock, known = Spoken(), threading.Lock(), []

    def once():
        with lock:  # held during a round
            if not known:
                known.append(rounds.run(Number(7)))
        return known[0]

    assert Meeting(rounds).hold([once, once, once]) == [7, 7, 7]
    assert rounds.rounds == [1]


def test_other_rows_are_asked_as_ever():
    rounds, others = Spoken(), Spoken()
    assert Meeting(rounds).hold([asking(others, "a", 2)]) == [[("a", 0), ("a", 1)]]
    assert (rounds.rounds, others.rounds) == ([], [1, 1])


def test_an_error_of_one_ends_all():
    rounds = Spoken()

    def wrong():
        rounds.run(Number(0))
        raise ValueError("wrong in this fold")

    with pytest.raises(ValueError, match="wrong in this fold"):
        Meeting(rounds).hold([asking(rounds, "a", 10**9), wrong, asking(rounds, "b", 10**9)])


def test_lost_rows_are_for_those_who_asked():
    """Runs have a status for it, and go on to their end."""

    def fail(count):
        if count == 2:
            raise RowsLostError("gone")

    rounds = Spoken(fail)

    def patient():
        rounds.run(Number(0))
        try:
            rounds.run(Number(1))
        except RowsLostError:
            return rounds.run(Number(2))

    assert Meeting(rounds).hold([patient]) == [2]


def test_an_interrupt_ends_all_threads():
    def fail(count):
        if count == 3:
            raise KeyboardInterrupt

    rounds, before = Spoken(fail), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        Meeting(rounds).hold([asking(rounds, name, 10**9) for name in range(3)])
    assert threading.active_count() == before


def test_settings_of_this_thread_hold_in_all():
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        Meeting(Spoken()).hold([lambda: np.float64(1e300) * np.float64(1e300)])
