"""The hunt for norms that are no fractions: every set of the package, directions drawn at random.

The maximiser W of <G, W> over the set is computed, then pulled onto the sphere in 80 digits; the targets A W + R with
A^T R = G make it optimal up to rounding of the targets, which costs the square of 1e-16. So the exact value at the
pulled point stands for the minimum without a tolerance.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from agreement.exact import DIGITS, Array, Mean, decimals
from agreement.inside import pulled
from sets.examples import examples

from projfree import (
    AcceleratedProjectedGradient,
    Box,
    ConstraintSet,
    CorrectivePrimalAveraging,
    GroupBall,
    Objective,
    OracleSet,
    SchattenBall,
    Squared,
    Weighted,
    as_data,
    minimize,
)
from projfree.algebra import Minorant
from projfree.sets import SETS, Birkhoff, OwlBall, Positive, Shifted, WithUnpenalized

BALLS = [ball for kind in SETS if kind not in (Box, OracleSet) for ball in examples(kind)]


def drawn_direction(ball: ConstraintSet, rng: np.random.Generator) -> Array:
    """A direction of a shape that suits the set, sometimes with ties and zeros."""
    if isinstance(ball, Positive):
        return drawn_direction(ball.ball, rng)
    shape: tuple[int, ...] = (int(rng.integers(1, 9)),)
    if isinstance(ball, GroupBall | SchattenBall):
        shape = (*shape, int(rng.integers(1, 5)))
    if isinstance(ball, GroupBall) and ball.groups is not None:
        shape = (len(ball.groups), *shape[1:])
    if isinstance(ball, OwlBall):
        shape = (len(ball.weights),)
    if isinstance(ball, Birkhoff):
        shape = (shape[0], shape[0])
    if isinstance(ball, WithUnpenalized):
        shape = (shape[0] + 2,)
    if isinstance(ball, Shifted):
        shape = np.shape(ball.offset) or shape
    if isinstance(ball, Weighted):
        shape = (3, 3) if isinstance(ball.ball, GroupBall) else (3,)
    G = rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2)
    return np.round(2.0 * G) if rng.uniform() < 0.3 else G


def drawn(ball: ConstraintSet, rng: np.random.Generator) -> tuple[Objective, Decimal, Array]:
    """A least squares problem over ``ball``, its minimum, and the float nearest to its minimiser."""
    G = drawn_direction(ball, rng)
    inside = pulled(ball, ball.lmo(-G))
    W = inside.astype(np.float64)
    B = rng.standard_normal((int(rng.integers(1, 8)), len(G)))
    R = rng.standard_normal((len(B), *G.shape[1:]))
    A, R = np.vstack([B, np.eye(len(G))]), np.concatenate([R, G - B.T @ R])
    Y = A @ W + R
    return Objective(Squared(), as_data(A, Y)), Mean(Squared(), A, Y)(inside), W


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_tangents_at_and_around_the_minimiser(ball: ConstraintSet) -> None:
    rng = np.random.default_rng(13)
    for case in range(40):
        f, least, W = drawn(ball, rng)
        average = Minorant.zero(f.shape)
        for t, ulps in enumerate((0.0, 1.0, 16.0), start=1):
            m = f.evaluate(f.point(W * (1.0 + ulps * 2.0**-53 * rng.uniform(-1, 1, size=W.shape)))).slope
            average = (1.0 - 2.0 / (t + 1)) * average + 2.0 / (t + 1) * m
            assert Decimal(m.lower(ball)) <= least, case
            assert Decimal(average.lower(ball)) <= least, case
            assert least - Decimal(m.lower(ball)) <= Decimal("1e-9") * least, case


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_supports_of_linear_functions(ball: ConstraintSet) -> None:
    """With nothing else to round, the allowance of the support alone must cover its error."""
    rng = np.random.default_rng(23)
    for case in range(40):
        g = drawn_direction(ball, rng) * 10.0 ** rng.uniform(-150, 150)
        at = pulled(ball, ball.lmo(g))
        with localcontext(DIGITS):
            least = np.sum(decimals(g) * at)
        bound = Minorant(0.0, g).lower(ball)
        assert Decimal(bound) <= least, case
        assert least - Decimal(bound) <= Decimal(1e-12 * float(np.linalg.norm(g)) * ball.reach(g.shape)), case


@pytest.mark.slow
@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_runs_to_the_floor(ball: ConstraintSet) -> None:
    rng = np.random.default_rng(17)
    for case in range(4):
        f, least, _ = drawn(ball, rng)
        for solver in (AcceleratedProjectedGradient(), CorrectivePrimalAveraging()):
            if ball.structure(f.shape).projection != "none" or isinstance(solver, CorrectivePrimalAveraging):
                result = minimize(f, ball, solver, tol=0.0, max_iter=100)
                assert result.bound is not None
                assert Decimal(result.bound) <= least, case
                assert result.gap >= 0.0
