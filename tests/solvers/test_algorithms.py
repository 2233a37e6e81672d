"""Each algorithm against a few lines of NumPy that follow its formulas."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from solvers.catalogue import X, Y, problem, solver

from projfree import (
    LpBall,
    PrimalAveraging,
    QuadraticForm,
    Simplex,
    iterate,
)
from projfree.algebra import Minorant

BALL = LpBall(1.5, 1.0)
STEPS = 15
L = problem("squares").smoothness()


def gradient(w):
    return 2 * X.T @ (X @ w - Y) / len(Y)


def frank_wolfe():
    w = np.zeros(4)
    for t in range(1, STEPS + 1):
        g = 2 / (t + 1)
        w = (1 - g) * w + g * BALL.lmo(gradient(w))
        yield w


def primal_averaging(average=True, ell=2):
    w = v = np.zeros(4)
    p = np.zeros(4)
    for t in range(1, STEPS + 1):
        g = ell / (t + ell - 1)
        z = (1 - g) * w + g * v
        p = (1 - g) * p + g * gradient(z) if average else gradient(z)
        v = BALL.lmo(p)
        w = (1 - g) * w + g * v
        yield w


def projected_gradient():
    w = np.zeros(4)
    for _ in range(STEPS):
        w = BALL.project(w - gradient(w) / L)
        yield w


def inverse_root():
    w = np.zeros(4)
    for t in range(1, STEPS + 1):
        w = BALL.project(w - gradient(w) / (L * np.sqrt(t)))
        yield w


def fista():
    w = y = np.zeros(4)
    theta = 1.0
    for _ in range(STEPS):
        new = BALL.project(y - gradient(y) / L)
        uphill = (y - new) @ (new - w) > 0
        following = (1 + np.sqrt(1 + 4 * theta**2)) / 2
        y = new if uphill else new + (theta - 1) / following * (new - w)
        w, theta = new, 1.0 if uphill else following
        yield w


def short_steps():
    w = np.zeros(4)
    for _ in range(STEPS):
        v = BALL.lmo(gradient(w))
        gap, bend = gradient(w) @ (w - v), 2 * np.mean((X @ (v - w)) ** 2)
        w = w + min(1.0, gap / bend) * (v - w)
        yield w


FORMULAS = {
    "FW, open loop": frank_wolfe,
    "FW, short": short_steps,
    "FW, exact": short_steps,  # for squares the bound on the curvature is the curvature
    "PA": primal_averaging,
    "PA, ell 4": lambda: primal_averaging(ell=4),
    "PA, last gradient": lambda: primal_averaging(average=False),
    "PG": projected_gradient,
    "PG, square root": inverse_root,
    "FISTA": fista,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_iterates(name):
    found = [state.x.w for state in islice(iterate(problem("squares"), BALL, solver(name)), STEPS)]
    # Steps that divide two vanishing numbers lose digits as they converge.
    np.testing.assert_allclose(found, list(FORMULAS[name]()), atol=1e-7 if FORMULAS[name] is short_steps else 1e-11)


def test_the_average_is_a_minorant_with_the_weights_of_the_schedule():
    f, tangents = problem("squares"), []
    for t, state in enumerate(islice(iterate(f, BALL, PrimalAveraging()), 10), 1):
        tangents.append(state.evaluation.slope)
        assert state.gamma == 2 / (t + 1)
    shares = [2 * k / (10 * 11) for k in range(1, 11)]
    expected = sum((share * m for share, m in zip(shares, tangents, strict=True)), Minorant.zero((4,)))
    np.testing.assert_allclose(state.m.gradient, expected.gradient, rtol=1e-12)
    assert state.m.constant == pytest.approx(expected.constant, rel=1e-12)
    support = BALL.support(-state.m.gradient)
    assert state.m.lower(BALL, state.oracle_result.support) <= state.m.constant - support


def test_a_zero_average_keeps_the_last_vertex():
    """f is constant, so every gradient is zero: the oracle has nothing to say and nothing moves."""
    f, start = QuadraticForm(np.zeros((2, 2)), np.zeros(2)), np.array([0.25, 0.75])
    for state in islice(iterate(f, Simplex(), PrimalAveraging(), start=start), 4):
        np.testing.assert_array_equal(state.x.w, start)
