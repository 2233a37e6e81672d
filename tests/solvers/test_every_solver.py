"""What every solver owes on every problem: feasible points, valid bounds, and an answer."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from solvers.catalogue import BENT, CONVEX, PROBLEMS, SAMPLED, SOLVERS, SPECIAL, pairs, problem, solver

from projfree import LpBall, iterate, minimize
from projfree.solvers import SOLVERS as CLASSES

BALL = LpBall(1.5, 1.0)
MAIN = ("PA", "PA, corrective", "PA, growing", "FW, open loop", "FW, exact", "PG", "FISTA")
MONOTONE = ("PA, corrective", "FW, short", "FW, exact", "FW, backtracking", "PG", "PG, backtracking")


@pytest.fixture(scope="module")
def optimum():
    """The value of each convex problem, by a baseline that shares no step rule with the solvers of the package."""
    found = {}

    def of(name):
        if name not in found:
            f = problem(name).reported
            x = f.point(np.zeros(f.shape))
            L = f.smoothness()
            y, theta = x, 1.0
            for _ in range(120):
                new = f.point(BALL.project(y.w - f.evaluate(y).slope.gradient / L))
                theta, old = (1 + np.sqrt(1 + 4 * theta**2)) / 2, theta
                y, x = f.point(new.w + (old - 1) / theta * (new.w - x.w)), new
            found[name] = f(x)
        return found[name]

    return of


def stays_inside(run):
    """A callback that looks at every iterate."""
    assert BALL.contains(run.state.x.w)
    assert run.state.gamma >= 0.0


def test_the_catalogue_is_complete():
    assert {type(s) for s in (SOLVERS | SPECIAL | SAMPLED).values()} == set(CLASSES)


@pytest.mark.parametrize(("name", "case"), dict.fromkeys(pairs(MAIN, CONVEX) + pairs(problems=CONVEX[:3])))
def test_convex(name, case, optimum):
    f = problem(case)
    result = minimize(f, BALL, solver(name), max_iter=12, tol=1e-5, callbacks=[stays_inside])
    best = optimum(case)
    scale = abs(best) + 1e-6
    assert result.bound <= best + 1e-12 * scale
    assert result.value >= best - 1e-6 * scale
    assert result.gap == result.value - result.bound
    assert BALL.contains(result.w)
    assert result.w.shape == f.shape
    assert result.value == pytest.approx(f.reported(f.reported.point(result.w)), rel=1e-10)
    slow = any(word in name for word in ("square root", "last gradient", "single", "minibatch", "with L"))
    assert result.relative_gap <= (1.0 if slow else 0.2)


@pytest.mark.parametrize(("name", "case"), pairs(problems=BENT))
def test_not_convex(name, case):
    f = problem(case)
    result = minimize(f, BALL, solver(name), max_iter=12, tol=1e-5, callbacks=[stays_inside])
    assert result.bound is None
    assert BALL.contains(result.w)
    start = f(f.point(np.zeros(f.shape)))
    assert result.value < start
    x = f.point(result.w, result.intercept)
    m = f.evaluate(x).slope
    assert f(x) == pytest.approx(result.value, rel=1e-8)
    assert result.gap == pytest.approx(np.vdot(m.gradient, result.w) + BALL.support(m.gradient), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("name", "case"), pairs(MONOTONE, [p for p in PROBLEMS if p != "perturbed"]))
def test_monotone(name, case):
    """Rules that look, and projected gradient with 1/L, never go up."""
    f = problem(case)
    states = islice(iterate(f, BALL, solver(name)), 8)
    values = [f(f.point(np.zeros(f.shape))), *(f(state.x) for state in states)]
    for before, after in pairwise(values):
        assert after <= before + 1e-12 * abs(before)
    assert values[-1] < values[0]


@pytest.mark.parametrize("name", SOLVERS | SAMPLED)
def test_settings_read_like_their_constructor(name):
    import projfree

    assert eval(repr(solver(name)), vars(projfree)) == solver(name)
