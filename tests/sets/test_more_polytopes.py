"""Norms, supports and vertices of the k-support and ordered weighted l_1 balls and of the Birkhoff polytope."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree.sets import Birkhoff, KSupportBall, LpBall, OwlBall
from projfree.sets.birkhoff import _dual
from projfree.testing.sets import gradients


@given(gradients((6,), extreme=False))
def test_k_support_lies_between_l_1_and_l_2(w):
    assert KSupportBall(1, 1.0).norm(w) == pytest.approx(LpBall(1, 1.0).norm(w), rel=1e-13)
    assert KSupportBall(6, 1.0).norm(w) == pytest.approx(LpBall(2, 1.0).norm(w), rel=1e-13)
    norms = [KSupportBall(k, 1.0).norm(w) for k in range(1, 9)]
    assert all(b <= a * (1 + 1e-13) for a, b in pairwise(norms))
    duals = [KSupportBall(k, 1.0).dual_norm(w) for k in range(1, 9)]
    assert all(b >= a * (1 - 1e-13) for a, b in pairwise(duals))


@given(gradients((8,), extreme=False), st.integers(1, 9), st.sampled_from((0.01, 0.7, 3.0)))
def test_the_nearest_point_of_the_k_support_ball(w, k, radius):
    """What is left behind has its largest product with the answer itself, for every k; at the ends it is known."""
    C = KSupportBall(k, radius)
    nearest = C.project(w)
    left = w - nearest
    assert C.norm(nearest) <= radius * (1 + 1e-14)
    assert C.support(left) <= float(left @ nearest) + 1e-14 * (1 + radius) * radius
    if not 1 < k < 8:
        np.testing.assert_allclose(nearest, LpBall(min(k, 2), radius).project(w), rtol=0, atol=1e-13)


@given(gradients((5,), extreme=False))
def test_owl_is_l_1_and_l_inf_at_its_ends(w):
    first = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    for weights, p in ((np.ones(5), 1.0), (first, math.inf)):
        assert OwlBall(weights, 1.0).norm(w) == pytest.approx(LpBall(p, 1.0).norm(w), rel=1e-13)
        assert OwlBall(weights, 1.0).dual_norm(w) == pytest.approx(LpBall(p, 1.0).dual_norm(w), rel=1e-13)


def test_owl_sorts():
    """The largest entry meets the largest weight: the norm is the largest over all orders."""
    weights, w = np.array([3.0, 1.0, 0.5, 0.0]), np.array([-1.0, 2.0, 0.3, -4.0])
    orders = [np.abs(w)[list(order)] @ weights for order in permutations(range(4))]
    assert OwlBall(weights, 1.0).norm(w) == pytest.approx(max(orders), rel=1e-15)


@given(gradients((4, 4), extreme=False))
def test_birkhoff_tries_all_permutations(g):
    C = Birkhoff()
    best = min(float(g[range(4), list(order)].sum()) for order in permutations(range(4)))
    assert float(np.vdot(g, C.lmo(g))) == pytest.approx(best, abs=1e-13)
    assert -C.support(-g) == pytest.approx(best, abs=1e-13)
    assert C.support(-g) >= -best


@given(gradients((4, 4), extreme=False), st.permutations(range(4)))
def test_the_support_is_an_upper_bound_for_a_wrong_assignment_too(g, order):
    """Prices bound every assignment, whatever they were made from."""
    best = min(float(g[range(4), list(p)].sum()) for p in permutations(range(4)))
    assert _dual(g, np.array(order)) >= -best - 1e-15


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KSupportBall(0, 1.0), "`KSupportBall(k=...)`"),
        (lambda: KSupportBall(2, -1.0), "`KSupportBall(radius=...)` must be positive and finite, got -1.0."),
        (lambda: OwlBall([1.0, 2.0], 1.0), "`OwlBall(weights=...)` must not increase, with a positive first one"),
        (lambda: OwlBall([0.0, 0.0], 1.0), "`OwlBall(weights=...)` must not increase, with a positive first one"),
        (lambda: OwlBall([[1.0]], 1.0), "`OwlBall(weights=...)` must be a vector, got shape (1, 1)."),
        (lambda: OwlBall([1.0, 0.5], 1.0).lmo(np.ones(3)), "`OwlBall(weights=...)` has 2 weights, which do not fit"),
        (lambda: Birkhoff().lmo(np.ones(3)), "`Birkhoff()` needs square matrices, got shape (3,)"),
        (lambda: Birkhoff().lmo(np.ones((3, 2))), "`Birkhoff()` needs square matrices, got shape (3, 2)"),
    ],
)
def test_errors(make, message):
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert str(error.value).startswith(message)


def test_weights_do_not_change():
    weights = np.array([2.0, 1.0])
    C = OwlBall(weights, 1.0)
    weights[0] = 9.0
    assert C.norm(np.array([1.0, 0.0])) == 2.0
