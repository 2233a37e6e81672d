"""Rounding allowances of supports, term by term, where the exact support is known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from projfree.algebra import OnPattern, Pattern
from projfree.numerics.spectra import gram_error, norm_bound, spectrum
from projfree.sets import Box, SchattenBall

EPS = float(np.finfo(np.float64).eps)


def exact_norm(s, q):
    """The l_q norm in extended precision."""
    s = np.abs(s)
    return s.max() if math.isinf(q) else np.sum(s ** np.longdouble(q)) ** (1 / np.longdouble(q))


extended = pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="this machine has no extended precision")


@extended
@pytest.mark.parametrize("k", [64, 256])
@pytest.mark.parametrize("p", [1.0, 1.2, 3.0, math.inf])
def test_singular_values_are_those_of_a_nearby_matrix(k, p):
    """Within a few roundings for each reflection, in the Frobenius norm; the support may move by as much and more.

    It moves most, by the root of k, from equal singular values towards one of them for p = 1, and from one value
    towards equal ones for p = inf.
    """
    one, equal = np.eye(k, dtype=np.longdouble)[0], np.full(k, 1.0, dtype=np.longdouble) / np.sqrt(np.longdouble(k))
    s = one if math.isinf(p) else equal
    away = one if p == 1.0 else equal
    q = math.inf if p == 1.0 else 1.0 if math.isinf(p) else p / (p - 1.0)
    near = EPS * 2 * k  # an eighth of what a decomposition of this size may be off by
    change = float(exact_norm(s + near * away, q) - exact_norm(s, q))
    g, plain = np.diag(s.astype(float)), SchattenBall(p, 2.0)
    assert plain.support_error(g, plain.support(g)) >= 2.0 * change


def nearly_dependent(shape):
    """Two columns or rows, so near that their Gram matrix is singular in floating point, and the nuclear norm."""
    t = 1e-8
    pattern, _, _ = Pattern.of(np.array([0, 0, 1]), np.array([0, 1, 0]), shape)
    # The square of the sum of two singular values is the sum of their squares and twice their product.
    values = [1.0, 1.0, t] if shape[0] > shape[1] else [1.0, t, 1.0]
    return OnPattern(pattern, np.array(values)), math.sqrt(2.0 + t * t + 2.0 * t)


@pytest.mark.parametrize("shape", [(140_000, 2), (2, 140_000)], ids=str)  # too large for a dense decomposition
def test_a_gram_matrix_hides_small_singular_values(shape):
    g, exact = nearly_dependent(shape)
    assert np.array_equal(g.gram(), np.ones((2, 2)))
    assert gram_error(g) >= 1e-16  # the square that was lost
    assert norm_bound(g, 1.0) >= exact
    found = spectrum(g, lambda s: s)
    assert found.whole
    assert np.sqrt(found.values**2 + found.error).sum() >= exact
    ball = SchattenBall(math.inf, 3.0)
    assert ball.support(g) >= 3.0 * exact
    assert ball.oracle(g)[1] >= 3.0 * exact


@extended
@pytest.mark.parametrize("shape", [(4000, 90), (90, 4000)], ids=str)
def test_the_error_of_a_gram_matrix_is_a_bound(shape):
    """Against sums of products in extended precision."""
    dense = np.random.default_rng(0).uniform(1.0, 2.0, shape)
    rows, cols = np.nonzero(dense)
    pattern, _, _ = Pattern.of(rows, cols, shape)
    g = OnPattern(pattern, dense[pattern.rows, pattern.indices])
    total, error = g.gram(), gram_error(g)
    wide = dense.astype(np.longdouble)
    exact = wide.T @ wide if shape[0] > shape[1] else wide @ wide.T
    off = float(np.linalg.norm((total - exact).astype(float)))
    assert 0.0 < off <= error


@pytest.mark.parametrize("lower", [-1.0, -2.0, 0.5])
def test_the_support_of_a_box_is_no_less_than_the_exact_one(lower):
    """Its terms may cancel, so that no error relative to the sum would do."""
    box, below = Box(lower, 1.0), 0
    for seed in range(30):
        g = np.random.default_rng(seed).standard_normal(50)
        terms = [max(Fraction(lower) * Fraction(c), Fraction(c)) for c in g.tolist()]
        exact, size = sum(terms), sum(map(abs, terms))
        assert exact <= Fraction(box.support(g)) <= exact + size / 10**13
        below += sum(max(lower * c, c) for c in g.tolist()) < exact
    assert below, "a plain sum is too small for some of them"
