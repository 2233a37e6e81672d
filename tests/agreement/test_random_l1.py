"""Random problems over l_1 balls of every kind: no bound of `WorkingSet` is refuted, and all but a few converge.

One whole number determines a problem. It fixes the loss and the set, so that all pairs come up equally often; shape,
condition of the columns, weights, intercept, storage and radius are drawn.
"""

from __future__ import annotations

from decimal import localcontext
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from agreement.data import Table, _targets
from agreement.exact import DIGITS, Array, Mean, decimals
from agreement.judge import judge, lowest
from agreement.problems import Problem
from agreement.radius import FRACTIONS, unconstrained
from agreement.referee import referee
from agreement.test_random_convex import polished

from projfree import (
    ConstraintSet,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    Poisson,
    Positive,
    Quantile,
    Result,
    Simplex,
    Softmax,
    Squared,
    SquaredHinge,
    Status,
    Weighted,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.sets.base import frank_wolfe_gap

LOSSES = (Squared(), Logistic(), Huber(0.7), Poisson(), SquaredHinge(), Quantile(0.3, 0.05), Softmax())
SETS = ("l_1", "weighted", "positive", "simplex", "groups", "weighted groups")
CELLS = list(product(LOSSES, SETS))
CONDITIONS = ("plain", "duplicated", "zero", "scaled", "collinear", "one row", "wide", "tall")
STORAGE = ("dense", "sparse", "standardised")
TOL = 1e-6


def features(condition: str, rng: np.random.Generator) -> Array:
    """A table in which half of the entries are zero."""
    n, d = int(rng.integers(4, 30)), int(rng.integers(1, 25))
    n, d = {"one row": (1, d), "wide": (int(rng.integers(2, 8)), 60), "tall": (80, 1 + d // 6)}.get(condition, (n, d))
    X = rng.standard_normal((n, d)) * (rng.uniform(size=(n, d)) < rng.choice([0.5, 1.0]))
    if condition == "duplicated":
        return X[:, rng.integers(max(1, d // 3), size=d)] * rng.choice([-1.0, 1.0], size=d)
    if condition == "zero":
        return X * (rng.uniform(size=d) < 0.5)
    if condition == "scaled":
        return X * 10.0 ** rng.uniform(-4, 4, size=d)
    return X if condition != "collinear" else X[:, :1] + 10.0 ** rng.uniform(-8, -2) * X


def weights(n: int, rng: np.random.Generator) -> Array | None:
    kind = rng.integers(3)
    return None if kind == 0 else rng.uniform(0.1, 3.0, n) if kind == 1 else 10.0 ** rng.uniform(-8, 8, n)


def draw_ball(kind: str, f: Objective, rng: np.random.Generator) -> ConstraintSet:
    """A set of the given kind, with a radius below, at or above the norm of an unconstrained minimiser."""
    w, size = unconstrained(f), float(rng.choice(FRACTIONS))
    costs, labels = 10.0 ** rng.uniform(-1, 1, size=f.shape), np.arange(f.shape[0]) // int(rng.integers(1, 5))
    groups, norm = GroupBall(2, 1, 1.0, groups=tuple(labels.tolist())), float(np.abs(w).sum())
    if kind in ("positive", "simplex"):
        norm = float(np.maximum(w, 0.0).sum())
    elif "groups" in kind:
        norm = groups.norm(w)
    elif kind == "weighted":
        norm = float(np.abs(costs * w).sum())
    radius = float(np.clip(size * norm, 1e-6, 1e6)) if norm > 0.0 else 1.0
    if kind == "weighted groups":
        costs = costs.reshape(len(w), -1)[labels, 0].reshape(len(w), *[1] * (w.ndim - 1)) * np.ones_like(w)
        return Weighted(groups.resized(radius), costs)
    return {
        "l_1": LpBall(1, radius),
        "weighted": Weighted(LpBall(1, radius), costs),
        "positive": Positive(LpBall(1, radius)),
        "simplex": Simplex(radius),
        "groups": groups.resized(radius),
    }[kind]


def draw(seed: int) -> Problem:
    """The problem of a number; its table holds the columns as they are standardised."""
    (loss, kind), rng = CELLS[seed % len(CELLS)], np.random.default_rng((7, seed))
    condition, storage = str(rng.choice(CONDITIONS)), str(rng.choice(STORAGE))
    X = features(condition, rng)
    outputs = (int(rng.integers(2, 4)),) if rng.uniform() < 0.2 and not isinstance(loss, Softmax) else ()
    u = X @ rng.standard_normal((X.shape[1], *outputs))
    signal = 2.0 * u / max(float(np.abs(u).max()), 1e-300) + 10.0 ** rng.uniform(-6, 0.5) * rng.standard_normal(u.shape)
    y, weight = _targets(loss, signal, len(X), rng), weights(len(X), rng)
    centre, scale = rng.uniform(-1, 1, X.shape[1]), 10.0 ** rng.uniform(-1, 1, X.shape[1])
    moved, exact = X, decimals(X)
    scaling = {}
    if storage == "standardised":
        moved, scaling = (X - centre) / scale, {"centre": centre, "scale": scale}
        with localcontext(DIGITS):
            exact = (exact - decimals(centre)) / decimals(scale)
    table = Table(f"{condition} {storage}", moved, y, weight)
    intercept = bool(rng.integers(2)) and table.mixed(loss)
    data = as_data(X if storage == "dense" else sp.csr_array(X), y, weight, **scaling)
    f = Objective(loss, data, fit_intercept=intercept)
    return Problem(
        seed, "mean", f, draw_ball(kind, f, rng), table, Mean(loss, exact, y, weight, intercept), loss, intercept
    )


def check(problem: Problem) -> Result:
    """The result, after its bound, and that of another method, were held against the lowest value that is known."""
    result = minimize(problem.f, problem.ball, WorkingSet(), tol=TOL, max_iter=100, seed=problem.seed)
    other = polished(problem, result, 100)
    answer = referee(problem)
    least = lowest(problem, [result.w, other.w, *([] if answer is None else [answer])])
    assert problem.ball.contains(result.w)
    assert result.bound <= least
    assert other.bound <= least
    if "standardised" not in problem.table.condition:  # whose columns no file holds
        judge(problem, result, least, TOL)
    return result


def converged(problem: Problem, result: Result) -> bool:
    """Whether the tolerance was reached, or the smoothing of the loss hides what is left, or the minimum may be zero.

    A run may also end at the limit of precision where the gap itself, without its rounding allowance, is small enough.
    """
    f = problem.f.reported
    size = abs(f(f.point(np.zeros(f.shape))))
    if result.status is Status.PRECISION:
        found = f.evaluate(f.point(result.w, result.intercept))
        return frank_wolfe_gap(problem.ball, found.slope.gradient, result.w) <= TOL * abs(result.value)
    return result.status.converged or result.status is Status.SMOOTHED or abs(result.value) <= 1e-3 * size


@pytest.mark.parametrize("seed", [*range(60), *(pytest.param(i, marks=pytest.mark.slow) for i in range(60, 600))])
def test_bounds_hold_and_runs_converge(seed: int) -> None:
    problem = draw(seed)
    assert converged(problem, check(problem))
