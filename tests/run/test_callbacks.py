"""Callbacks: when they are called, what stops a run, what happens to errors; and the progress bar."""

from __future__ import annotations

import io
import logging
import time

import numpy as np
import pytest
from solvers.catalogue import problem

from projfree import LpBall, PrimalAveraging, ProgressBar, Run, Status, minimize

BALL = LpBall(1.5, 1.0)


class Closing:
    """A callback with a `close`, which may fail at a given iteration."""

    def __init__(self, fails_at=0, stops_at=0) -> None:
        self.calls, self.closed, self.fails_at, self.stops_at = [], 0, fails_at, stops_at

    def __call__(self, run):
        self.calls.append(run.iteration)
        if run.iteration == self.fails_at:
            raise RuntimeError("the callback's own fault")
        return run.iteration == self.stops_at

    def close(self):
        self.closed += 1


@pytest.mark.parametrize(("wrong", "named"), [(3, "3"), (None, "None"), ([print, "a"], "'a'")])
def test_what_is_no_callback_is_refused(wrong, named):
    with pytest.raises(TypeError, match=f"`callbacks` must be a function of the run, .* got {named}; leave it out"):
        minimize(problem("squares"), BALL, callbacks=wrong)


def test_called_after_every_iteration_with_the_run():
    seen = []
    result = minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=7, tol=0.0, callbacks=[seen.append])
    assert len(seen) == 7
    run = seen[0]
    assert isinstance(run, Run)
    assert run is seen[-1]
    assert (run.iteration, run.passes, run.value, run.bound) == (7, result.n_passes, result.value, result.bound)
    assert run.seconds == result.seconds
    assert run.gap == result.gap
    assert run.relative_gap == result.relative_gap
    np.testing.assert_array_equal(run.best.w, result.w)
    assert run.trace is result.trace


def test_any_may_stop_and_all_are_called():
    first, second = Closing(stops_at=3), Closing()
    result = minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[first, second])
    assert result.status is Status.CALLBACK
    assert result.n_iter == 3
    assert first.calls == second.calls == [1, 2, 3]
    assert first.closed == second.closed == 1


def test_errors_come_through_and_everything_is_closed():
    first, second = Closing(), Closing(fails_at=2)
    with pytest.raises(RuntimeError, match="the callback's own fault"):
        minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[first, second])
    assert first.closed == second.closed == 1


def test_the_time_of_callbacks_is_not_solver_time():
    result = minimize(
        problem("squares"), BALL, PrimalAveraging(), max_iter=3, tol=0.0, callbacks=[lambda r: time.sleep(0.1)]
    )
    assert result.seconds < 0.3


def test_callbacks_do_not_change_the_run():
    plain, watched = (
        minimize(problem("logistic"), BALL, PrimalAveraging(), max_iter=20, tol=0.0, callbacks=callbacks)
        for callbacks in ((), [Closing(), ProgressBar(Terminal())])
    )
    np.testing.assert_array_equal(plain.w, watched.w)
    assert (plain.value, plain.bound, plain.n_passes) == (watched.value, watched.bound, watched.n_passes)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("transient", [False, True])
def test_progress_bar(transient):
    stream = Terminal()
    bar = ProgressBar(stream, transient=transient)
    result = minimize(problem("squares"), BALL, PrimalAveraging(), callbacks=[bar], tol=1e-3)
    lines = stream.getvalue().split("\r")
    assert lines[1].startswith("PrimalAveraging [")
    assert "gap" in lines[1]
    if transient:
        assert not lines[-2].strip()
    else:
        assert f"certified gap {result.relative_gap:.1e}  iteration {result.n_iter}" in lines[-1]


def test_silence_where_there_is_no_terminal(capfd):
    stream = io.StringIO()
    minimize(problem("squares"), BALL, callbacks=[ProgressBar(stream), ProgressBar()])
    assert stream.getvalue() == ""
    assert capfd.readouterr() == ("", "")


def test_a_run_logs_and_prints_nothing(capfd, caplog):
    with caplog.at_level(logging.DEBUG):
        result = minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=4, tol=0.0)
    assert capfd.readouterr() == ("", "")
    (record,) = caplog.records
    assert record.name.startswith("projfree")
    assert record.levelno == logging.INFO
    assert record.getMessage() == f"PrimalAveraging: {result.status} after 4 iterations"
