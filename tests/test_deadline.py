"""Deadlines: inner loops end with a valid answer, and a run that ended early does not claim to be done.

No test looks at the clock of the machine: a clock of their own moves by one second whenever it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import projfree.deadline
from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    BlackBox,
    ConstrainedNewton,
    Direct,
    GroupBall,
    Logistic,
    LpBall,
    Objective,
    QuadraticForm,
    SchattenBall,
    Status,
    as_data,
    minimize,
)
from projfree.deadline import deadline, expired
from projfree.numerics.lp_norm import lp_norm, row_norms
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.numerics.projections import project_groups
from projfree.sets import WithUnpenalized
from projfree.solvers.base import Solver, State


class Clock:
    """Seconds are readings."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(projfree.deadline, "time", made)
    return made


def test_the_earlier_deadline_counts_and_ends_with_its_block(clock):
    with deadline(2.5):
        with deadline(100.0):
            assert not expired()
            assert expired()
        with deadline(0.0):
            assert expired()
        assert expired()
    assert not expired()
    with deadline(100.0):
        with pytest.raises(KeyError), deadline(0.0):
            raise KeyError
        assert not expired()
    assert not expired()


def hard(outputs: tuple[int, ...] = ()):
    """A quadratic of condition 1e8 whose minimiser lies outside of small balls."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 30)) * np.geomspace(1e-4, 1.0, 30)
    return X.T @ X / 90, X.T @ rng.standard_normal((90, *outputs)) / 90


@pytest.mark.parametrize("p", [1.0, 1.01, 1.5, 3.0, 1e3, np.inf])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_quadratics_over_lp_balls(p, outputs):
    H, b = hard(outputs)
    free = minimise_quadratic(H, b, p, 0.3)
    with deadline(1e9):
        assert np.array_equal(minimise_quadratic(H, b, p, 0.3), free)
    with deadline(0.0):
        found = minimise_quadratic(H, b, p, 0.3)
    assert lp_norm(found, p) <= 0.3 * (1.0 + 1e-13)
    before, after = (0.5 * np.vdot(w, H @ w) - np.vdot(b, w) for w in (found, free))
    assert after < before


@pytest.mark.parametrize(("p", "q"), [(1.5, 3.0), (3.0, 1.0), (2.0, 1.5)])
def test_projections_stay_feasible(p, q):
    w = np.random.default_rng(1).standard_normal((6, 4))
    with deadline(0.0):
        x = project_groups(w, p, q, 0.7)
    assert lp_norm(row_norms(x, p), q) <= 0.7 * (1.0 + 1e-9)


def test_a_long_newton_step_ends_at_the_limit(clock):
    """Its models over this set take thousands of projected gradients."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(200), rng.standard_normal((200, 8)) * np.geomspace(1e-3, 30.0, 8)])
    Y = np.where(X[:, 1:] @ rng.standard_normal((8, 5)) + rng.standard_normal((200, 5)) > 0, 1.0, -1.0)
    f, ball = Objective(Logistic(), as_data(X, Y)), WithUnpenalized(GroupBall(2, 1, radius=200.0), [0], 1e4)
    result = minimize(f, ball, ConstrainedNewton(), time_limit=300.0)
    assert result.status is Status.TIME_LIMIT
    assert clock.now <= 300.0 + 200.0  # what a last step asks for, of which each kind of loop has one turn
    assert ball.contains(result.w)
    assert result.bound <= result.value
    assert result.certificate.verify(objective=f).ok


@pytest.mark.parametrize(
    "ball", [LpBall(1.5, radius=0.3), GroupBall(2, 1, radius=0.3), LpBall(1, radius=0.3)], ids=repr
)
def test_who_ended_early_is_not_done(clock, ball):
    f = QuadraticForm(*hard((3,)))
    assert minimize(f, ball, Direct(), tol=1e-9).status.converged
    begun = clock.now
    result = minimize(f, ball, Direct(), tol=1e-9, time_limit=3.0)
    assert result.status is Status.TIME_LIMIT
    assert result.n_iter == 1
    assert result.relative_gap > 1e-9
    assert clock.now <= begun + 40.0
    assert result.certificate.verify(objective=f).ok


@dataclass(frozen=True, repr=False)
class Resigned(Solver):
    """Says that it can do no more."""

    def init(self, f, ball, start, seed):
        return State(t=0, x=start, seed=seed)

    def step(self, f, ball, state):
        return replace(state, t=state.t + 1, done=True)


def test_done_counts_for_nothing_after_the_deadline(clock):
    f, ball, solver = QuadraticForm(*hard()), LpBall(1.5, radius=0.3), Resigned()
    assert minimize(f, ball, solver, tol=1e-9).status is not Status.TIME_LIMIT
    result = minimize(f, ball, solver, tol=1e-9, time_limit=1.5)
    assert result.status is Status.TIME_LIMIT
    assert not result.w.any()  # nobody else has begun


def test_backtracking_ends_at_the_limit(clock):
    calls = 0

    def steep(w):
        nonlocal calls
        calls += 1
        return 5e11 * float(w @ w) - float(w.sum()), 1e12 * w - 1.0

    ball, solver = LpBall(2, radius=1.0), AcceleratedProjectedGradient(BacktrackingGradient())
    minimize(BlackBox(steep, (2,), convex=True), ball, solver, max_iter=1)
    assert calls > 35
    calls = 0
    result = minimize(BlackBox(steep, (2,), convex=True), ball, solver, time_limit=2.0)
    assert result.status is Status.TIME_LIMIT
    assert calls <= 8
    assert ball.contains(result.w)


def test_spectral_runs_end_with_a_certificate(clock):
    rng = np.random.default_rng(4)
    f = QuadraticForm(np.diag(np.geomspace(1e-3, 1.0, 12)), rng.standard_normal((12, 9)))
    result = minimize(f, SchattenBall(1.5, radius=1.0), time_limit=4.0, tol=1e-14)
    assert result.bound <= result.value
    assert result.certificate.verify(objective=f).ok
