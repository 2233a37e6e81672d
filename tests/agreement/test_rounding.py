"""The hunt: bounds pushed to within rounding of minima that are known as fractions must never rise above them.

Nothing here has a tolerance. A float is a fraction, so are the minima, and they are compared as such. That the hunt
bites is tested too: bounds come within 1e-9 of the minimum, and without their allowance many would lie above it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from agreement.corners import Corner, corners
from agreement.exact import Array
from agreement.planted import KINDS, Plant, plant

from projfree import (
    AcceleratedProjectedGradient,
    CorrectivePrimalAveraging,
    ExactLineSearch,
    FrankWolfe,
    Minibatch,
    Perturbed,
    PrimalAveraging,
    ProjectedGradient,
    ShortStep,
    minimize,
)
from projfree.algebra import Minorant
from projfree.solvers import Solver

CORNERS = corners()
#: Kinds whose minimum is neither zero nor out of the range of normal numbers.
REGULAR = tuple(kind for kind in KINDS if kind not in ("zero", "minute", "vanishing"))
SOLVERS: tuple[Solver, ...] = (
    AcceleratedProjectedGradient(),
    CorrectivePrimalAveraging(),
    FrankWolfe(ExactLineSearch()),
    ProjectedGradient(),
    PrimalAveraging(search=ExactLineSearch()),
    FrankWolfe(ShortStep()),
    PrimalAveraging(),
    PrimalAveraging(sampling=Minibatch(3)),
)


def nearby(w: Array, rng: np.random.Generator, ulps: float) -> Array:
    """``w`` with its digits shaken, zeros included."""
    noise = rng.uniform(-ulps, ulps, size=w.shape) * 2.0**-53
    return np.asarray(w * (1.0 + noise) + noise * np.abs(w).max() * (rng.uniform(size=w.shape) < 0.5))


def refuted(p: Plant, m: Minorant) -> bool:
    return Fraction(m.lower(p.ball)) > p.least


def corner_id(i: int) -> str:
    ball = CORNERS[i].ball
    return f"{i}-{type(ball).__name__}-{getattr(ball, 'p', '')}"


@pytest.mark.parametrize("kind", KINDS)
def test_tangents_at_and_around_the_minimiser(kind: str) -> None:
    rng = np.random.default_rng(7)
    for i, corner in enumerate(CORNERS):
        p = plant(corner, kind, i)
        average = Minorant.zero(p.f.shape)
        for t, ulps in enumerate((0.0, 1.0, 1.0, 2.0, 8.0, 64.0, 1e4, 1e8), start=1):
            m = p.f.evaluate(p.f.point(nearby(p.w, rng, ulps))).slope
            average = (1.0 - 2.0 / (t + 1)) * average + 2.0 / (t + 1) * m
            assert not refuted(p, m), (i, corner.ball, ulps)
            assert not refuted(p, average), (i, corner.ball, ulps, "average")


@pytest.mark.parametrize("kind", REGULAR)
def test_the_hunt_bites(kind: str) -> None:
    above = 0
    for i, corner in enumerate(CORNERS):
        p = plant(corner, kind, i)
        bound, allowance = p.f.evaluate(p.f.point(p.w)).slope.minimum(p.ball)
        assert p.least - Fraction(bound) <= p.least * Fraction(1, 10**9), (i, corner.ball)
        above += Fraction(bound) + Fraction(allowance) > p.least
    assert above >= len(CORNERS) // 10, "the tangents are not close enough to test the allowance"


@pytest.mark.parametrize("theta", [1.0, 1e6, 1e-9])
def test_a_perturbation_is_taken_off_again(theta: float) -> None:
    for i, corner in enumerate(CORNERS):
        p = plant(corner, "squares", i)
        h = Perturbed(p.f, theta, np.random.default_rng(i).standard_normal(p.f.shape))
        found = h.evaluate(h.point(p.w))
        assert not refuted(p, found.reported.slope), (i, corner.ball)
        assert not refuted(p, found.slope.shifted(h.xi, -h.theta)), (i, corner.ball)


def hunt(corner: Corner, kind: str, seed: int, solver: Solver, iterations: int) -> None:
    p = plant(corner, kind, seed)
    projects = p.ball.structure(p.f.shape).projection != "none"
    if isinstance(solver, ProjectedGradient | AcceleratedProjectedGradient) and not projects:
        solver = CorrectivePrimalAveraging()
    if p.f.structure.n is None and solver == SOLVERS[-1]:
        solver = PrimalAveraging()
    result = minimize(p.f, p.ball, solver, tol=0.0, max_iter=iterations, seed=seed)
    assert result.bound is not None
    assert Fraction(result.bound) <= p.least
    assert result.gap >= 0.0
    assert p.ball.contains(result.w)
    bounds = result.trace["bound"]
    assert np.all(bounds[1:] >= bounds[:-1])
    assert bounds[-1] <= result.bound


@pytest.mark.parametrize("i", range(len(CORNERS)), ids=corner_id)
def test_runs_to_the_floor(i: int) -> None:
    hunt(CORNERS[i], KINDS[i % len(KINDS)], i, SOLVERS[i % len(SOLVERS)], iterations=60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS.__getitem__)
@pytest.mark.parametrize("solver", range(len(SOLVERS)), ids=lambda j: f"{j}-{type(SOLVERS[j]).__name__}")
def test_runs_to_the_floor_with_every_solver(kind: int, solver: int) -> None:
    for i in range((kind + solver) % 4, len(CORNERS), 4):
        hunt(CORNERS[i], KINDS[kind], 100 + i, SOLVERS[solver], iterations=150)
