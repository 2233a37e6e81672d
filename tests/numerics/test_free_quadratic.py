"""`minimise_with_free`: the gap over the product of a flat ball and ranges, where features resemble each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.numerics import free_quadratic
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.free_quadratic import minimise_with_free


def gap(H, b, ball, found, free, bound):
    """The Frank-Wolfe gap over the product."""
    g, m = H @ found.w - b, len(b) - free
    return ball.gap(g[:m], found.w[:m]) + float(np.sum(g[m:] * found.w[m:] + bound * np.abs(g[m:])))


def problem(seed, d, shape):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * d, d)) + 2.0 * rng.standard_normal((2 * d, 1))  # features that resemble each other
    return X.T @ X, 5.0 * rng.standard_normal((d, *shape)), rng


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("groups", [False, True])
@given(seed=st.integers(0, 10**6), free=st.integers(1, 8), bound=st.sampled_from([0.01, 0.1, 1.0, 100.0]))
@settings(max_examples=40, deadline=None)
def test_the_gap_vanishes_whether_ranges_end_or_not(shape, groups, seed, free, bound):
    m = 8
    H, b, rng = problem(seed, m + free, shape)
    labels = np.arange(m) // 2
    ball = FlatBall(0.3, np.ones(4), labels) if groups else FlatBall(0.3, np.ones((m, *shape)))
    start = np.zeros_like(b)
    start[m:] = rng.choice([-bound, 0.0, bound], size=start[m:].shape)  # some at the wrong end
    found = minimise_with_free(H, b, ball, start, 1.0, 0.0, free=free, bound=bound)
    assert ball.norm(found.w[:m]) <= 0.3 * (1.0 + 1e-12)
    assert np.abs(found.w[m:]).max() <= bound
    scale = float(np.abs(b).sum()) * max(bound, 0.3)
    assert gap(H, b, ball, found, free, bound) <= 1e-9 * scale


def test_too_many_columns_are_cut_at_the_ends(monkeypatch):
    monkeypatch.setattr(free_quadratic, "MOST_JOINT", 1)
    H, b, _ = problem(0, 10, (2,))
    ball = FlatBall(0.3, np.ones((8, 2)))
    found = minimise_with_free(H, b, ball, np.zeros_like(b), 1.0, 0.0, free=2, bound=0.01)
    assert np.abs(found.w[8:]).max() == 0.01


@pytest.mark.parametrize("groups", [False, True])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_features_that_free_ones_explain_have_no_curvature_of_their_own(groups, seed):
    """With fewer rows than free features, and scales far apart, what is left of the others is rounding."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((4, 12)) * 10.0 ** rng.integers(-4, 5, size=12), rng.standard_normal(4)
    ball = FlatBall(1e-2, np.ones(4), np.arange(8) // 2) if groups else FlatBall(1e-2, np.ones(8))
    H, b = X.T @ X, X.T @ y
    found = minimise_with_free(H, b, ball, np.zeros(12), 0.5 * ball.level(-b[:8]), 0.0, free=4, bound=0.1)
    assert ball.norm(found.w[:8]) <= 1e-2 * (1.0 + 1e-12)
    assert np.abs(found.w[8:]).max() <= 0.1
    assert 0.5 * found.w @ H @ found.w - b @ found.w <= 1e-9 * float(y @ y)  # not above the start


def test_an_entry_beyond_its_end_by_rounding_stays_there():
    ranges = free_quadratic._Ranges(np.eye(3), np.zeros(3), FlatBall(1.0, np.ones(1)), 2, 0.1)
    w, fixed = np.array([0.0, 0.1 * (1.0 + 1e-16) + 1e-17, 0.0]), np.zeros(2, dtype=bool)
    over = np.array([True, False])
    new = ranges._cut(w, w + np.array([0.5, 0.0, 0.05]), over, fixed)
    np.testing.assert_array_equal(fixed, [True, False])
    assert new[0] == 0.0
    assert new[1] == 0.1
