"""`QuadraticForm`: values, tangents that hold to the last digit, convexity, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree import QuadraticForm
from projfree.algebra import Point, mix

seeds = st.integers(0, 2**32 - 1)


def exact(f: QuadraticForm, w) -> Fraction:
    """The value of the stored numbers, without rounding."""
    H, b, w = ([[Fraction(x) for x in row] for row in np.atleast_2d(a).tolist()] for a in (f.H, f.b, w))
    product = [sum(h * x for h, x in zip(row, w[0], strict=True)) for row in H]
    return sum((p / 2 - c) * x for p, c, x in zip(product, b[0], w[0], strict=True)) + Fraction(f.c)


def random_form(rng, d=4, rank=3, scale=1.0):
    half = rng.standard_normal((d, rank))
    return QuadraticForm(scale * half @ half.T, scale * rng.standard_normal(d), c=scale * float(rng.standard_normal()))


@given(seeds)
def test_value_and_gradient(seed):
    rng = np.random.default_rng(seed)
    f = random_form(rng)
    x = f.point(rng.standard_normal(4))
    assert f(x) == pytest.approx(float(exact(f, x.w)), rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(f.evaluate(x).slope.gradient, f.H @ x.w - f.b, atol=1e-13)


@given(seeds, st.sampled_from([1.0, 1e-6, 1e6]))
def test_tangents_lie_below_without_doubt(seed, size):
    """Exactly: at any point the tangent, lowered by its stated errors, is at most the value of the stored numbers."""
    rng = np.random.default_rng(seed)
    f = random_form(rng)
    z, w = size * rng.standard_normal((2, 4))
    m = f.evaluate(f.point(z)).slope
    norm = float(np.linalg.norm(w)) * (1 + 1e-15)
    products = (Fraction(g) * Fraction(x) for g, x in zip(m.gradient.tolist(), w.tolist(), strict=True))
    allowed = m.constant_error + m.gradient_error * norm + m.curvature_error * norm**2
    assert Fraction(m.constant) + sum(products) - Fraction(allowed) <= exact(f, w)
    assert allowed <= 1e-13 * (1 + size**2) * (1 + np.abs(f.H).sum() + np.abs(f.b).sum() + abs(f.c))


def test_matrix_parameters():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((3, 3))
    f = QuadraticForm(half @ half.T, rng.standard_normal((3, 2)), c=1.0)
    columns = [QuadraticForm(f.H, f.b[:, j]) for j in range(2)]
    W = rng.standard_normal((3, 2))
    assert f.shape == (3, 2)
    expected = sum(g(g.point(W[:, j])) for j, g in enumerate(columns)) + 1.0
    assert f(f.point(W)) == pytest.approx(expected)


@given(seeds)
def test_smoothness_is_an_upper_bound(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 10**6, 4)
    f = QuadraticForm(np.outer(a, a), np.zeros(4))  # its eigenvalue is a whole number
    assert Fraction(f.smoothness()) >= sum(int(x) ** 2 for x in a)
    assert f.smoothness() <= float(np.sum(a.astype(float) ** 2)) * (1 + 1e-13)


def test_convexity_is_decided_by_eigenvalues():
    assert QuadraticForm(np.diag([1.0, 0.0]), np.zeros(2)).convex
    assert QuadraticForm(np.diag([1.0, -1e-18]), np.zeros(2)).convex, "negative by less than rounding"
    assert not QuadraticForm(np.diag([1.0, -1e-12]), np.zeros(2)).convex
    assert QuadraticForm(np.zeros((2, 2)), np.zeros(2)).convex
    slightly, x = QuadraticForm(np.diag([1.0, -1e-18]), np.zeros(2)), Point(np.ones(2))
    assert slightly.evaluate(x).slope.curvature_error > 0


def test_products_are_counted_and_remembered():
    f = random_form(np.random.default_rng(0))
    x, v = f.point(np.ones(4)), f.point(np.arange(4.0))
    assert f.passes == 0
    f(x)
    f.evaluate(x)
    assert f.passes == 1
    f.hull((x, v)).minimise(np.zeros(1))
    assert f.passes == 2
    assert f.evaluate(mix((0.5, x), (0.5, v)), (x,)).also[0].value == f(x)
    assert f.passes == 3


REFUSED = {
    "shapes": (np.eye(3), np.ones(2), ValueError, r"`H` must be square with as many rows as `b`, got \(3, 3\) and"),
    "not square": (np.ones((2, 3)), np.ones(2), ValueError, r"`H` must be square .* got \(2, 3\) and \(2,\)"),
    "cube": (np.eye(2), np.ones((2, 1, 1)), ValueError, r"got \(2, 2\) and \(2, 1, 1\)"),
    "lopsided": (np.array([[1.0, 0.1], [0.0, 1.0]]), np.ones(2), ValueError, "`H` must be symmetric"),
    "nan": (np.array([[np.nan]]), np.ones(1), ValueError, r"`H` must be finite, got nan at index \(0, 0\)"),
    "nan target": (np.eye(1), np.array([np.inf]), ValueError, "`b` must be finite, got inf at index 0"),
    "object": (np.eye(1).astype(object), np.ones(1), TypeError, "`H` must hold real numbers, got dtype object"),
}


@pytest.mark.parametrize(("H", "b", "error", "sentence"), REFUSED.values(), ids=REFUSED)
def test_refusals(H, b, error, sentence):
    with pytest.raises(error, match=sentence):
        QuadraticForm(H, b)
