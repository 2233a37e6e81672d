"""Quadratics over l_p balls: the gap closes to rounding, whatever the matrix, the norm and the radius."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numerics.quadratics import deficient, draw, gap, is_exact, value

from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.lp_quadratic import minimise_quadratic

EXPONENTS = (1.0, 1.02, 1.1, 1.5, 2.0, 3.0, np.inf)
SHARP = (1.0, 1.001, 1.02, 1.1, 1.5, 1.9, 2.0, 2.5, 5.0, 50.0, np.inf)


def solved(H, b, p, radius, **settings):
    """The minimiser, after a check that it is one."""
    w = minimise_quadratic(H, b, p, radius, **settings)
    assert w.shape == b.shape
    assert is_exact(H, b, p, radius, w)
    return w


@given(
    st.integers(0, 10**6),
    st.integers(1, 25),
    st.sampled_from(SHARP),
    st.floats(0.0, 8.0),
    st.floats(np.log(0.02), np.log(5.0)).filter(lambda log_rho: abs(log_rho) > 1e-6),
    st.sampled_from([(), (1,), (3,)]),
)
def test_the_gap_closes(seed, d, p, digits, log_rho, outputs):
    H, b, radius = draw(np.random.default_rng(seed), d, 10.0**digits, p, np.exp(log_rho), outputs)
    found = solved(H, b, p, radius)
    if log_rho < 0.0:  # else the minimiser without the ball is in it
        assert lp_norm(found, p) == pytest.approx(radius, rel=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 25), st.sampled_from(SHARP), st.floats(0.0, 6.0))
def test_a_minimiser_on_the_sphere_itself(seed, d, p, digits):
    """With the multiplier zero on the boundary nothing is well-conditioned; the value is right all the same."""
    H, b, radius = draw(np.random.default_rng(seed), d, 10.0**digits, p, 1.0)
    found = minimise_quadratic(H, b, p, radius)
    assert is_exact(H, b, p, radius, found) or gap(H, b, p, radius, found) <= 1e-10 * abs(value(H, b, found))


@given(st.integers(0, 10**6), st.integers(2, 25), st.sampled_from(SHARP), st.floats(-3.0, 3.0))
def test_fewer_rows_than_features(seed, d, p, log_radius):
    rng = np.random.default_rng(seed)
    H = deficient(rng, d, max(1, d // 2))
    solved(H, H @ rng.standard_normal(d), p, np.exp(log_radius))


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 3.0])
def test_a_minimiser_inside_though_the_shortest_lies_outside(p, factor):
    """With sparse (or flat) solutions of Hw = b the l_2-shortest is not the one of least l_p norm."""
    rng = np.random.default_rng(5)
    H = deficient(rng, 24, 8)
    w = np.zeros(24)
    w[:2] = 1.0
    if p > 2.0:
        w = np.sign(rng.standard_normal(24))
    radius = factor * lp_norm(w, p)
    found = solved(H, H @ w, p, radius)
    least = value(H, H @ w, w)
    assert value(H, H @ w, found) >= least - 1e-12 * abs(least)
    if factor > 1.0:
        assert value(H, H @ w, found) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("radius", [1e-8, 0.3, 2.0, 1e8])
def test_ties_duplicates_and_empty_columns(p, radius):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(12, 4)).astype(float)
    X = np.column_stack([X, X, -X[:, :2], np.zeros(12), np.ones(12)])
    H, y = X.T @ X / 12, rng.standard_normal(12)
    solved(H, X.T @ y / 12, p, radius)
    solved(np.eye(6), np.ones(6), p, radius)
    solved(np.ones((5, 5)), np.ones(5), p, radius)


@pytest.mark.parametrize("p", EXPONENTS)
def test_one_feature(p):
    for b in (-3.0, 1e-200, 0.5):
        found = minimise_quadratic(np.array([[2.0]]), np.array([b]), p, 1.0)
        assert found[0] == pytest.approx(np.clip(b / 2.0, -1.0, 1.0), rel=1e-14)


@pytest.mark.parametrize("p", EXPONENTS)
def test_linear_functions(p):
    """H = 0 gives the vertex of b, and so does a slope along a direction without curvature."""
    b = np.array([3.0, -1.0, 0.5])
    lowest = value(np.zeros((3, 3)), b, solved(np.zeros((3, 3)), b, p, 2.0))
    assert lowest == pytest.approx(-2.0 * lp_norm(b, conjugate(p)), rel=1e-12)
    solved(np.diag([1.0, 0.0, 2.0]), b, p, 2.0)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_every_scale(p, scale):
    H, b, radius = draw(np.random.default_rng(3), 8, 100.0, p, 0.5)
    w = solved(H, b, p, radius)
    np.testing.assert_allclose(solved(H * scale, b * scale, p, radius), w, rtol=1e-9, atol=1e-9 * radius)
    np.testing.assert_allclose(solved(H, b * scale, p, radius * scale) / scale, w, rtol=1e-9, atol=1e-9 * radius)


@pytest.mark.parametrize("p", EXPONENTS)
def test_columns_share_the_ball(p):
    """Entry by entry the norm of a matrix is that of a long vector, whose matrix has blocks."""
    rng = np.random.default_rng(7)
    H, b, radius = draw(rng, 6, 1e3, p, 0.4, (3,))
    w = solved(H, b, p, radius)
    long = solved(np.kron(H, np.eye(3)), b.ravel(), p, radius)
    np.testing.assert_allclose(w, long.reshape(6, 3), atol=1e-7 * radius)


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_multiplier_falls_as_the_radius_grows(p):
    H, b, radius = draw(np.random.default_rng(4), 15, 1e4, p, 1.0)
    points = [solved(H, b, p, rho * radius) for rho in (0.01, 0.1, 0.5, 0.9, 1.1)]
    multipliers = [lp_norm(H @ w - b, conjugate(p)) for w in points]
    assert multipliers == sorted(multipliers, reverse=True)
    assert multipliers[-1] <= 1e-9 * multipliers[0]


@given(
    st.sampled_from([1.0, 1.001, 1.1, 2.0, 3.0, 30.0, 1e3, 1e6, np.inf]),
    st.sampled_from([1e-30, 1e-3, 0.1, 1.0, 1e6, 7e22, 1e30]),
    st.sampled_from([1e-8, 1.0, 1e3, 1e8]),
    st.booleans(),
    st.sampled_from([None, 1e-3, 1.0]),
    st.integers(0, 10**6),
)
def test_every_size_has_an_answer(p, radius, scale, far, near, seed):
    """Feasible and finite, with a gap that is no worse than that of zero but for rounding."""
    rng = np.random.default_rng(seed)
    X = scale + rng.standard_normal((9, 4)) if far else scale * rng.standard_normal((9, 4))
    H, b, start = X.T @ X / 9, X.T @ rng.standard_normal((9, 2)) / 9, rng.standard_normal((4, 2))
    found = minimise_quadratic(H, b, p, radius, None if near is None else start * (near * radius / np.abs(start).sum()))
    assert np.isfinite(found).all()
    assert lp_norm(found, p) <= radius * (1.0 + 1e-9)
    assert gap(H, b, p, radius, found) <= radius * lp_norm(b, conjugate(p)) or is_exact(H, b, p, radius, found)
