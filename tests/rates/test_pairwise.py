"""Over polytopes pairwise steps converge linearly where Frank-Wolfe steps do not, and corrections end."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from projfree import FrankWolfe, LpBall, PairwiseFrankWolfe, QuadraticForm, Simplex, iterate, minimize

STEPS = 400


def least_squares(seed):
    """Strongly convex, with a minimum on a face of several vertices and inside of that face."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 20))
    w = np.where(np.arange(20) < 8, rng.uniform(0.5, 1.0, 20), 0.0)
    y = X @ w + 0.5 * rng.standard_normal(120)
    return QuadraticForm(X.T @ X / 120, X.T @ y / 120, 0.5 * float(y @ y) / 120), 0.8 * float(w.sum())


def errors(f, ball, solver, best):
    states = islice(iterate(f, ball, solver), STEPS)
    return np.array([max(f(f.point(state.x.w)) - best, 1e-18) for state in states])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [lambda r: LpBall(1, r), Simplex], ids=["l_1", "simplex"])
@pytest.mark.parametrize("lazy", [True, False])
def test_linear_where_frank_wolfe_is_not(seed, kind, lazy):
    f, radius = least_squares(seed)
    ball = kind(radius)
    best = minimize(f, ball, PairwiseFrankWolfe(), tol=1e-13).value
    ours = errors(f, ball, PairwiseFrankWolfe(corrections=0, lazy=lazy), best)
    theirs = errors(f, ball, FrankWolfe(), best)
    first = float(ours[0])
    assert ours[-1] <= 1e-9 * first
    assert theirs[-1] >= 1e-6 * first
    # A straight line in log error: each half of the way to 1e-9 takes about as many steps.
    half, end = (int(np.argmax(ours <= level * first)) for level in (10**-4.5, 1e-9))
    assert end <= 4 * max(half, 10)
    # Theirs falls like a power of t: a straight line in log t, with a slope near -1.
    t = np.arange(50, STEPS)
    assert -1.8 <= np.polyfit(np.log(t), np.log(theirs[t]), 1)[0] <= -0.7


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [lambda r: LpBall(1, r), Simplex], ids=["l_1", "simplex"])
def test_corrections_end(seed, kind):
    """Once the vertices of the face are found a quadratic is minimised exactly: a handful of steps to rounding."""
    f, radius = least_squares(seed)
    result = minimize(f, kind(radius), PairwiseFrankWolfe(), tol=1e-10)
    assert result.status.converged
    assert result.n_iter <= 10
