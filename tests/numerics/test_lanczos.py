"""Krylov spaces: orthonormal, monotone, exact once they hold the answer, and in one array that grows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numerics.quadratics import draw, gap, rounding, value

from projfree.numerics.lanczos import HEAD, KrylovBasis, Lanczos, tridiagonal_minimiser
from projfree.numerics.lp_quadratic import minimise_quadratic


def grown(H, b, radius, dimensions):
    """The spaces met on the way, and the minimisers over them."""
    space, met, penalty = Lanczos.begun(b), [], 0.0
    while space.size < dimensions and not space.closed:
        space = space.extended(H @ space.Q[-1])
        found = space.minimise(radius, penalty)
        penalty = found.penalty
        met.append((space, found))
    return met


@pytest.mark.parametrize("rho", [0.05, 0.5, 0.95, 2.0])
def test_spaces_and_minimisers(rho):
    H, b, radius = draw(np.random.default_rng(1), 20, 1e3, 2.0, rho)
    met = grown(H, b, radius, 20)
    for space, found in met:
        k = space.size
        Q, x = space.Q[:k], space.point(found.h)
        np.testing.assert_allclose(space.Q @ space.Q.T, np.eye(len(space.Q)), atol=1e-12)
        T = np.diag(space.alpha) + np.diag(space.beta[:-1], 1) + np.diag(space.beta[:-1], -1)
        np.testing.assert_allclose(T, Q @ H @ Q.T, atol=1e-12)
        assert found.gap(radius) == pytest.approx(gap(H, b, 2.0, radius, x), abs=1e-12)
        assert np.linalg.norm(x) <= radius * (1.0 + 1e-12)
        left = H @ x + found.penalty * x - b
        assert found.rest == pytest.approx(np.linalg.norm(left), abs=1e-12)
    values = [value(H, b, space.point(found.h)) for space, found in met]
    assert np.all(np.diff(values) <= 1e-13 * np.abs(values[-1]))
    assert values[-1] == pytest.approx(value(H, b, minimise_quadratic(H, b, 2.0, radius).w), rel=1e-10)


def test_long_recurrences_still_get_there():
    """Beyond the vectors that new ones are made orthogonal to, rounding delays convergence, and no more."""
    H, b, radius = draw(np.random.default_rng(3), 120, 1e4, 2.0, 0.9)
    met = grown(H, b, radius, 5 * HEAD)
    assert len(met) > 2 * HEAD
    space, found = met[-1]
    x = space.point(found.h)
    x *= min(1.0, radius / np.linalg.norm(x))
    assert value(H, b, x) == pytest.approx(value(H, b, minimise_quadratic(H, b, 2.0, radius).w), rel=1e-9)
    assert found.gap(radius) == pytest.approx(gap(H, b, 2.0, radius, x), abs=1e-8 * abs(value(H, b, x)))


def test_the_space_closes_where_b_has_few_directions():
    """With three distinct eigenvalues three dimensions hold the answer."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    H = (Q * np.repeat([3.0, 1.0, 0.0], 10)) @ Q.T
    b = rng.standard_normal(30)
    met = grown(H, b, 0.7, 10)
    assert len(met) <= 4
    x = met[-1][0].point(met[-1][1].h)
    assert gap(H, b, 2.0, 0.7, x) <= 200.0 * rounding(H, b, 2.0, 0.7, x)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 12),
    rank=st.integers(0, 12),
    scale=st.sampled_from([1e-120, 1.0, 1e120]),
    length=st.sampled_from([1e-120, 1e-3, 1.0, 1e3, 1e120]),
)
def test_the_small_problem(seed, k, rank, scale, length):
    """Against a minimiser from the spectrum; singular matrices have infinite steps at the multiplier zero."""
    rng = np.random.default_rng(seed)
    A = np.triu(np.tril(rng.standard_normal((k, k)), 0), -1)[: max(1, min(rank, k))]
    T = A.T @ A
    alpha, beta = np.diag(T) * scale, np.diag(T, 1) * scale
    h, penalty = tridiagonal_minimiser(alpha, beta, length * scale, 1.0)
    slope = np.eye(k)[0] * length
    assert np.linalg.norm(h) <= 1.0 + 1e-9
    assert penalty >= 0.0
    size = max(float(np.abs(T).max()), length)
    g = T @ h - slope
    assert float(g @ h) + np.linalg.norm(g) <= 1e-7 * size


def test_rows_are_added_in_place_and_never_under_others():
    store, Q = KrylovBasis.appended(None, np.zeros((0, 3)), np.ones(3))
    store, two = KrylovBasis.appended(store, Q, np.full(3, 2.0))
    assert two.base is Q.base, "no copy"
    other, branch = KrylovBasis.appended(store, Q, np.full(3, 5.0))
    assert other is not store
    np.testing.assert_array_equal(two, [[1.0] * 3, [2.0] * 3])
    np.testing.assert_array_equal(branch, [[1.0] * 3, [5.0] * 3])
    rows, copies = Q, 0
    for k in range(200):
        before = store
        store, rows = KrylovBasis.appended(store if k else None, rows, np.full(3, float(k)))
        copies += store is not before
    assert copies <= 6
    np.testing.assert_array_equal(rows[1:, 0], np.arange(200.0))


def test_nothing_to_do():
    space = Lanczos.begun(np.zeros(4))
    assert space.closed
    assert space.size == 0
