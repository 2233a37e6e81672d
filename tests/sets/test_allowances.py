"""Allowances and moduli against what they are made of: each term is needed by some gradient."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from projfree.sets import GroupBall, LpBall, WithUnpenalized

#: A sum in eight interleaved parts loses every small term: each is half a unit in the last place of its part.
LOST = np.concatenate([np.ones(8), np.full(120, 2.0**-53)])


class Exact(LpBall):
    """A ball whose support has no error at all."""

    def support_error(self, g, support):
        return 0.0


CASES = {
    "the sum of the ball": (LpBall(math.inf, 1.0), LOST, np.zeros(1)),
    "the sum of the free entries": (Exact(math.inf, 1.0), np.zeros(1), LOST),
    "the last addition": (Exact(math.inf, 1.0), np.ones(1), np.array([1.5 * 2.0**-53])),
}


@pytest.mark.parametrize("case", CASES)
def test_allowance_of_free_entries_term_by_term(case):
    ball, inside, free = CASES[case]
    product = WithUnpenalized(ball, tuple(range(len(inside), len(inside) + len(free))), 1.0)
    g = np.concatenate([inside, free])
    exact = sum(map(Fraction, g.tolist()))
    for support in (product.support(-g), product.oracle(g)[1]):
        assert support != exact, "the case has no rounding, and tests nothing"
        assert abs(Fraction(support) - exact) <= Fraction(product.support_error(g, support))


@pytest.mark.parametrize("groups", [(0, 1, 1, 1, 1), (0, 0, 0, 1, 2, 2), (0, 1, 2), (0, 0, 0, 0)])
@pytest.mark.parametrize(("p", "q"), [(1.5, 1.5), (1.2, 2.0), (2.0, 1.3), (1.1, 1.8)])
def test_modulus_of_unequal_groups(p, q, groups):
    r"""The ball of radius :math:`\alpha |x - y|^2 / 8` that strong convexity asks for lies in that of the own norm.

    That is what the modulus is proven by, and the largest group makes it worst.
    """
    ball, shape = GroupBall(p, q, 1.5, groups), (len(groups),)
    modulus, own = ball.strong_convexity(shape), (min(p, q) - 1.0) / 1.5
    assert 0.0 < modulus <= own
    sizes = np.bincount(groups)
    directions = [(np.array(groups) == k).astype(float) for k in range(len(sizes))]
    # The direction of the largest norm: within groups all equal, across them by Hoelder's inequality.
    power = q / (2.0 - q) if q < 2.0 else 0.0
    shares = sizes ** ((1.0 / p - 0.5) * power) / np.sqrt(sizes)
    directions.append(shares[list(groups)])
    worst = max(ball.norm(z) / float(np.linalg.norm(z)) for z in directions)
    assert modulus * worst <= own * (1.0 + 1e-12)
    if len(set(sizes.tolist())) == 1:
        assert modulus * worst == pytest.approx(own, rel=1e-12)
