"""The closed form on the corner {m >= 0, sum m <= 1}: feasible, and no grid point is lower."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from projfree.objectives.hull import minimise_on_corner

FINE = np.linspace(0.0, 1.0, 41)
GRID = {
    1: FINE[:, None],
    2: np.array([(a, b) for a in FINE for b in FINE if a + b <= 1.0 + 1e-12]),
}
numbers = st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-5.0, 5.0)


def values(g, H, m):
    return m @ g + 0.5 * np.einsum("ni,ij,nj->n", m, H, m)


def check(g, H):
    m = minimise_on_corner(g, H)
    assert np.all(m >= 0.0)
    assert m.sum() <= 1.0 + 1e-15
    slack = 1e-12 * (1.0 + np.abs(g).sum() + np.abs(H).sum())
    assert values(g, H, m[None])[0] <= values(g, H, GRID[len(g)]).min() + slack
    return m


@given(numbers, numbers)
def test_segment_whatever_the_curvature(slope, curvature):
    check(np.array([slope]), np.array([[curvature]]))


@given(st.lists(numbers, min_size=2, max_size=2), st.lists(numbers, min_size=6, max_size=6))
def test_triangle_of_convex_quadratics(g, entries):
    half = np.array(entries).reshape(3, 2)
    check(np.array(g), half.T @ half)


@given(st.lists(numbers, min_size=2, max_size=2), st.lists(numbers, min_size=3, max_size=3))
def test_triangle_stays_feasible_without_convexity(g, entries):
    a, b, c = entries
    m = minimise_on_corner(np.array(g), np.array([[a, b], [b, c]]))
    assert np.all(m >= 0.0)
    assert m.sum() <= 1.0 + 1e-15
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    H = np.array([[a, b], [b, c]])
    assert values(np.array(g), H, m[None])[0] <= values(np.array(g), H, corners).min() + 1e-12
