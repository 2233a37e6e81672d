"""Quadratics over l_p balls of many radii."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numerics.quadratics import gap, value

from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.lp_quadratic import minimise_quadratic


def solve_path(H, b, p, radii):
    """The minimisers for increasing radii, each begun at the last."""
    points = []
    for radius in radii:
        points.append(minimise_quadratic(H, b, p, float(radius), points[-1] if points and points[-1].any() else None))
    return points


def problem(seed, d, rows, outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d)) * np.exp(rng.uniform(-2, 2, size=d))
    y = rng.standard_normal(rows if outputs is None else (rows, outputs))
    return X.T @ X / rows, X.T @ y / rows


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 12),
    st.integers(1, 30),
    st.sampled_from([1.0, 1.3, 2.0, 3.0, np.inf]),
    st.sampled_from([None, 2]),
)
def test_every_point_minimises_over_its_ball(seed, d, rows, p, outputs):
    H, b = problem(seed, d, rows, outputs)
    radii = np.geomspace(1e-3, 100.0, 9) * lp_norm(b, 2.0)
    path = solve_path(H, b, p, radii)
    size = lp_norm(b, conjugate(p))
    for w, r in zip(path, radii, strict=True):
        assert lp_norm(w, p) <= r * (1 + 1e-12)
        assert gap(H, b, p, r, w) <= 1e-8 * size * r
        alone = minimise_quadratic(H, b, p, float(r))
        assert value(H, b, w) <= value(H, b, alone) + gap(H, b, p, r, alone) + 1e-9 * size * r


def test_a_matrix_without_full_rank():
    H, b = np.diag([1.0, 0.0]), np.array([1.0, 1.0])  # the second direction falls without end
    for p in (1.0, 2.0):
        path = solve_path(H, b, p, np.array([0.5, 3.0]))
        assert all(gap(H, b, p, r, w) <= 1e-9 for w, r in zip(path, (0.5, 3.0), strict=True))
        np.testing.assert_allclose([lp_norm(w, p) for w in path], [0.5, 3.0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(69, 64), (101, 33), (16, 33)])
def test_repeated_features(shape: tuple[int, int], seed: int) -> None:
    rng, (n, d) = np.random.default_rng(seed), shape
    X = rng.standard_normal((n, d))
    X[:, 1], X[:, 2] = X[:, 0], -X[:, 0]
    y = X @ (rng.standard_normal(d) * (rng.random(d) < 0.5)) + rng.standard_normal(n)
    H, b = X.T @ X / n, X.T @ y / n
    radii = np.array([0.05, 0.3, 0.7, 0.99, 1.5]) * np.abs(np.linalg.lstsq(X, y, rcond=None)[0]).sum()
    for w, r in zip(solve_path(H, b, 1.0, radii), radii, strict=True):
        assert np.abs(w).sum() <= r * (1.0 + 1e-9)
        assert gap(H, b, 1.0, r, w) <= 1e-10 * np.abs(b).max() * r
