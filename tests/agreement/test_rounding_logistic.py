"""The hunt for logistic losses: optima planted through the sample weights, values known to 70 digits.

At a maximiser W of <G, W> over the set, row i pulls with the force s_i sigma(-m_i); the weights of some rows are chosen
so that the forces add up to G. Rounding the weights moves the minimiser by 1e-16, and the minimum below the value at W
by the square of that: the value at W stands for the minimum without a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from agreement.corners import Corner, corners
from agreement.exact import Array, Mean, MeanOfEntries
from agreement.planted import resized
from scipy.special import expit

from projfree import (
    AcceleratedProjectedGradient,
    ConstraintSet,
    CorrectivePrimalAveraging,
    Entries,
    Logistic,
    Objective,
    as_data,
    minimize,
)
from projfree.algebra import Minorant

CORNERS = corners()


@dataclass(frozen=True, eq=False)
class Planted:
    """A problem, its minimum and its minimiser."""

    f: Objective
    ball: ConstraintSet
    least: Decimal
    w: Array


def planted(corner: Corner, intercept: bool, seed: int, shift: float = 0.0) -> Planted:
    """Dense rows for a vector, observed entries for a matrix; ``shift`` moves a feature, and the intercept with it."""
    # A power of two brings the margins to where the loss is curved.
    scale = 0.5 ** int(np.ceil(np.log2(np.abs(corner.W).max())))
    G, W, ball = corner.G / float(np.abs(corner.G).max()), corner.W * scale, resized(corner.ball, scale)
    return _entries(G, W, ball) if G.ndim == 2 else _dense(G, W, ball, intercept, shift, np.random.default_rng(seed))


def _dense(G: Array, W: Array, ball: ConstraintSet, intercept: bool, shift: float, rng: np.random.Generator) -> Planted:
    B, b = rng.standard_normal((int(rng.integers(2, 7)), len(G))), 0.75 * intercept
    forces = rng.uniform(0.05, 1.0, size=len(B)) * rng.choice([-1.0, 1.0], size=len(B))
    X, forces = np.vstack([B, np.eye(len(G))]), np.concatenate([forces, G - B.T @ forces])
    if intercept:  # a row of zeros makes the forces cancel
        X, forces = np.vstack([X, 0.0 * X[:1]]), np.append(forces, -forces.sum())
    y, s = _weighed(forces, X @ W + b)
    if shift:
        j = int(np.abs(W).argmax())
        X[:, j] += shift
        b -= shift * float(W[j])
    f = Objective(Logistic(), as_data(X, y, s), fit_intercept=intercept)
    return Planted(f, ball, Mean(Logistic(), X, y, s, intercept)(W, b), W)


def _entries(G: Array, W: Array, ball: ConstraintSet) -> Planted:
    # Every entry twice, with both labels: their forces differ by that of G.
    rows, cols = (np.tile(i.ravel(), 2) for i in np.indices(G.shape))
    y, s = _weighed(np.concatenate([np.maximum(G, 0.0) + 0.5, np.minimum(G, 0.0) - 0.5]).ravel(), W[rows, cols])
    f = Objective(Logistic(), as_data(Entries(rows, cols, G.shape), y, s))
    return Planted(f, ball, MeanOfEntries(Logistic(), rows, cols, y, s)(W), W)


def _weighed(forces: Array, u: Array) -> tuple[Array, Array]:
    """Labels and weights that make each row pull with its force."""
    y = np.where(forces > 0, 1.0, -1.0)
    return y, np.abs(forces) / expit(-y * u)


def cases() -> list[tuple[int, bool]]:
    return [(i, b) for i, c in enumerate(CORNERS) for b in (False, True) if not (b and c.G.ndim == 2)]


def test_the_plants_are_optimal_and_the_hunt_bites() -> None:
    above = 0
    for i, intercept in cases():
        p = planted(CORNERS[i], intercept, i)
        bound, allowance = p.f.evaluate(p.f.point(p.w)).slope.minimum(p.ball)
        assert p.least - Decimal(bound) <= Decimal("1e-9") * p.least, (i, CORNERS[i].ball)
        above += Decimal(bound) + Decimal(allowance) > p.least
    assert above >= len(cases()) // 10, "the tangents are not close enough to test the allowance"


@pytest.mark.parametrize("ulps", [0.0, 1.0, 4.0, 64.0, 1e6])
def test_tangents_at_and_around_the_minimiser(ulps: float) -> None:
    rng = np.random.default_rng(11)
    for i, intercept in cases():
        p = planted(CORNERS[i], intercept, i)
        average = Minorant.zero(p.f.shape)
        for t in range(1, 5):
            z = p.w * (1.0 + ulps * 2.0**-53 * rng.uniform(-1, 1, size=p.w.shape))
            m = p.f.evaluate(p.f.point(z)).slope
            average = (1.0 - 2.0 / (t + 1)) * average + 2.0 / (t + 1) * m
            assert Decimal(m.lower(p.ball)) <= p.least, (i, intercept, CORNERS[i].ball)
            assert Decimal(average.lower(p.ball)) <= p.least, (i, intercept, CORNERS[i].ball, "average")


@pytest.mark.parametrize("shift", [2.0**10, 2.0**20, 2.0**30])
def test_intercepts_of_shifted_features_have_few_digits(shift: float) -> None:
    """The derivative in the intercept is then far from zero, and charged to the bound."""
    rng = np.random.default_rng(19)
    for i, intercept in cases():
        if intercept:
            p = planted(CORNERS[i], True, i, shift)
            for ulps in (0.0, 1.0, 1.0, 4.0):
                z = p.w * (1.0 + ulps * 2.0**-53 * rng.uniform(-1, 1, size=p.w.shape))
                bound = p.f.evaluate(p.f.point(z)).slope.lower(p.ball)
                assert Decimal(bound) <= p.least, (i, CORNERS[i].ball)


@pytest.mark.slow
@pytest.mark.parametrize(("i", "intercept"), cases())
def test_runs_to_the_floor(i: int, intercept: bool) -> None:
    p = planted(CORNERS[i], intercept, 50 + i)
    for solver in (AcceleratedProjectedGradient(), CorrectivePrimalAveraging()):
        if p.ball.structure(p.f.shape).projection != "none" or isinstance(solver, CorrectivePrimalAveraging):
            result = minimize(p.f, p.ball, solver, tol=0.0, max_iter=200)
            assert result.bound is not None
            assert Decimal(result.bound) <= p.least
            assert result.gap >= 0.0
            assert p.ball.contains(result.w)
