"""Exact quadratics: no point of the referee is lower, and random ones, ill-conditioned to 1e8, close their gap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numerics.quadratics import deficient, draw, gap, is_exact, value, with_condition

from projfree import LpBall, QuadraticForm, minimize
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.solvers import Direct

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import cvxpy as cp

EXPONENTS = (1.0, 1.02, 1.1, 1.5, 2.0, 3.0, np.inf)
KINDS = ("plain", "deficient", "tied", "constant", "one")


def small(rng, kind):
    """A quadratic of at most twelve features."""
    d = 1 if kind == "one" else int(rng.integers(2, 13))
    if kind == "deficient":
        H = deficient(rng, d, max(1, d // 2))
    elif kind in ("tied", "constant"):
        X = rng.integers(0, 2, size=(3 * d, d)).astype(float)
        X[:, d // 2 :] = X[:, : d - d // 2] if kind == "tied" else 1.0
        H = X.T @ X / len(X)
    else:
        H = with_condition(rng, d, 10.0 ** rng.uniform(0, 3))
    b = H @ rng.standard_normal(d) if rng.random() < 0.7 else rng.standard_normal(d)
    return H, b


def referee(H, b, p, radius):
    """A point of the ball that another method takes for the minimiser; None where it gives up."""
    w = cp.Variable(len(b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            objective = 0.5 * cp.quad_form(w, cp.psd_wrap(H)) - b @ w
            cp.Problem(cp.Minimize(objective), [cp.norm(w, p) <= radius]).solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return None
    if w.value is None or not np.isfinite(w.value).all():
        return None
    return np.asarray(w.value) * min(1.0, radius / max(lp_norm(w.value, p), 1e-300))


def judged(seed, kind, p):
    """One problem: the answer and its certificate against the referee's point."""
    rng = np.random.default_rng(seed)
    H, b = small(rng, kind)
    radius = float(np.exp(rng.uniform(-3.0, 2.0))) * (1e3 if rng.random() < 0.1 else 1.0)
    found = minimise_quadratic(H, b, p, radius)
    mine, scale = value(H, b, found), abs(b).sum() * radius
    assert is_exact(H, b, p, radius, found), (seed, kind, p)
    other = referee(H, b, p, radius)
    if other is not None:
        assert mine <= value(H, b, other) + 1e-12 * scale
        # The bound that the gap proves is one on every point of the ball, the referee's included.
        assert mine - gap(H, b, p, radius, found) <= value(H, b, other) + 1e-12 * scale
        assert value(H, b, other) - mine <= 1e-4 * scale, "the referee is not far off"
    return other is not None


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_point_of_the_referee_is_lower(kind, p):
    assert sum(judged(seed, kind, p) for seed in range(4)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_point_of_the_referee_is_lower_in_hundreds(kind, p):
    assert sum(judged(seed, kind, p) for seed in range(4, 24)) >= 10


def certified(index):
    """The relative certified gap of one random quadratic, and whether the rest is rounding, said so."""
    rng = np.random.default_rng(1000 + index)
    d, digits, p = int(rng.integers(2, 301)), rng.uniform(0.0, 8.0), rng.uniform(1.02, 2.0)
    H, b, radius = draw(rng, d, 10.0**digits, p, np.exp(rng.uniform(np.log(0.05), np.log(3.0))))
    found = minimise_quadratic(H, b, p, radius)
    return gap(H, b, p, radius, found) / abs(value(H, b, found)), is_exact(H, b, p, radius, found)


@pytest.mark.parametrize("index", range(20))
def test_random_quadratics(index):
    relative, exact = certified(index)
    assert relative <= 1e-10 or exact


@pytest.mark.slow
def test_two_hundred_random_quadratics():
    outcomes = [certified(index) for index in range(200)]
    assert all(relative <= 1e-10 or exact for relative, exact in outcomes)
    assert np.mean([relative <= 1e-10 for relative, _ in outcomes]) >= 0.95


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_runs_stay_below(kind, p):
    """A run's bound holds its rounding allowance, and is below every value of the ball."""
    rng = np.random.default_rng(99)
    H, b = small(rng, kind)
    result = minimize(QuadraticForm(H, b), LpBall(p, 0.5), Direct(), tol=1e-12, max_iter=5)
    assert result.bound <= result.value
    other = referee(H, b, p, 0.5)
    if other is not None:
        assert result.bound <= value(H, b, other)
    assert result.relative_gap <= 1e-9
