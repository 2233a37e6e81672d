"""Ctrl-C at any moment returns the best point so far, and never a bound that does not hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from solvers.catalogue import CONVEX, SAMPLED, SOLVERS, pairs, problem, solver

import projfree
from projfree import (
    CorrectivePrimalAveraging,
    FrankWolfe,
    LpBall,
    PrimalAveraging,
    QuadraticForm,
    Status,
    minimize,
    path,
)
from projfree.data import DenseData
from projfree.data.rows import Step

BALL = LpBall(1.5, 1.0)
PACKAGE = str(Path(projfree.__file__).parent)


def interrupt_at(iteration):
    def callback(run):
        if run.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("name", SOLVERS | SAMPLED)
def test_in_a_callback(name):
    f = problem("logistic, intercept")
    result = minimize(f, BALL, solver(name), tol=0.0, callbacks=[interrupt_at(4)])
    assert result.status is Status.INTERRUPTED
    assert str(result.status) == "interrupted by the user"
    assert result.n_iter == 4
    assert BALL.contains(result.w)
    assert result.bound <= result.value
    assert result.value == pytest.approx(f(f.point(result.w)), rel=1e-12)


@dataclass(frozen=True)
class Torn(Step):
    """Another step, interrupted after its first block."""

    step: Step

    def block(self, rows, *images):
        self.step.block(rows, *images)
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "case"), pairs(("PA", "PA, corrective", "FW, exact", "FISTA", "PA, growing"), CONVEX[:5])
)
def test_in_the_middle_of_a_read(name, case, monkeypatch):
    """At every read of the first steps in turn: an interrupted pass leaves no half of an image behind."""
    best = minimize(problem(case), BALL, tol=1e-5).value
    run = DenseData.run
    for moment in range(1, 6):
        f, calls = problem(case), [0]

        def read(self, work, calls=calls, moment=moment):
            calls[0] += 1
            return run(self, replace(work, step=Torn(work.step)) if calls[0] == moment else work)

        monkeypatch.setattr(DenseData, "run", read)
        result = minimize(f, BALL, solver(name), tol=0.0, max_iter=50)
        monkeypatch.setattr(DenseData, "run", run)
        assert result.status is Status.INTERRUPTED
        assert result.bound <= best * (1 + 1e-12)
        assert result.value == pytest.approx(f(f.point(result.w)), rel=1e-11)


class Finger:
    """Presses Ctrl-C at the n-th line of the package that runs in a step, or in what is learned from it."""

    def __init__(self, moment: int) -> None:
        self.moment, self.lines, self.inside = moment, 0, False

    def __call__(self, frame, event, arg):
        part = frame.f_code.co_name in ("step", "learn_step")
        if event == "call":
            self.inside = self.inside or part
            return self if self.inside and frame.f_code.co_filename.startswith(PACKAGE) else None
        if event == "return" and part:
            self.inside = False
        if event == "line" and self.inside:
            self.lines += 1
            if self.lines == self.moment:
                raise KeyboardInterrupt
        return self

    def press(self, run):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return run()
        finally:
            sys.settrace(before)


@pytest.mark.parametrize("chosen", [PrimalAveraging(), CorrectivePrimalAveraging(), FrankWolfe()], ids=repr)
def test_at_any_line_of_the_first_step(chosen):
    """The optimum is negative, so that zero, which stands in for nothing anywhere, would be a false bound."""
    f = QuadraticForm(np.diag([2.0, 1.0]), np.array([3.0, 4.0]))
    ball = LpBall(2, 1.0)
    best, moment, status = minimize(f, ball, tol=1e-9).value, 1, Status.INTERRUPTED
    while status is Status.INTERRUPTED:
        finger = Finger(moment)
        result = finger.press(lambda: minimize(f, ball, chosen, max_iter=1, tol=0.0))
        status = result.status
        assert ball.contains(result.w)
        assert result.bound <= best + 1e-12
        assert result.value == pytest.approx(f(f.point(result.w)), rel=1e-12)
        moment += 5
    assert moment > 100, "the step has many lines, and each fifth was interrupted"


SCRIPT = """
import sys, time
import numpy as np
from projfree import BlackBox, LpBall, PrimalAveraging, minimize
calls = [0]
def fun(w):
    calls[0] += 1
    if calls[0] == 5:
        print("sleeping", flush=True)
        time.sleep(60)
    return float(np.sum((w - 1) ** 2)), 2 * (w - 1)
result = minimize(BlackBox(fun, 3, convex=True), LpBall(2, 1.0), PrimalAveraging(), tol=0.0)
assert result.value == np.sum((result.w - 1) ** 2)
assert result.bound <= 3 * (1 - 3**-0.5) ** 2 <= result.value * (1 + 1e-12)
print(result.status.name, result.n_iter, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_real_signal_in_the_middle_of_a_step():
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # jobs in the background ignore it
    )
    assert child.stdout.readline() == "sleeping\n", child.stderr.read()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (out, err) == ("INTERRUPTED 4\n", ""), "the value at the centre is that of the start"


def test_one_run_among_many_ends_them_all():
    f = problem("logistic, intercept")
    with pytest.raises(KeyboardInterrupt):
        path(f, BALL, [0.5, 1.0, 2.0], solver=PrimalAveraging(), tol=0.0, callbacks=[interrupt_at(6)])
