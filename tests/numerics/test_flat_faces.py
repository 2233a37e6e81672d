"""Faces of norms of groups: Newton's method ends there, and finds the minimum to rounding in a few turns."""

from __future__ import annotations

import numpy as np
import pytest

from projfree.numerics import flat_quadratic
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_groups import Groups
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.symmetric import Formed


@pytest.fixture
def turns(monkeypatch):
    """Turns of descent; another method than faces is a failure."""
    found, descend = [], Groups.descend
    monkeypatch.setattr(Groups, "descend", lambda self: found.append(1) or descend(self))
    monkeypatch.setattr(flat_quadratic, "without_faces", lambda *a: pytest.fail("a face was given up"))
    return found


@pytest.mark.parametrize("p", [1.2, 1.5, 3.0, 8.0, np.inf])
@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_regular_faces_need_few_turns(p, outputs, seed, turns):
    rng = np.random.default_rng(seed)
    m = 40
    A, W = rng.standard_normal((100, m)) * rng.uniform(0.5, 2.0, m), np.zeros((m, outputs))
    W[:12] = rng.standard_normal((12, outputs))
    y = A @ W + 0.3 * rng.standard_normal((100, outputs))
    groups = np.arange(m) // 4 if outputs == 1 else np.arange(m)
    W, y = (W[:, 0], y[:, 0]) if outputs == 1 else (W, y)
    ball = FlatBall(1.0, rng.uniform(0.5, 2.0, groups.max() + 1), groups, exponent=p)
    ball = FlatBall(0.6 * ball.norm(W), ball.costs, groups, exponent=p)
    H, b = A.T @ A / 100, A.T @ y / 100
    found = minimise_flat(Formed(H), b, ball, np.zeros(b.shape), 0.5 * ball.level(b))
    assert found.gap <= 32.0 * found.floor
    assert ball.norm(found.w) == pytest.approx(ball.radius, rel=1e-12)
    assert (
        0 < ball.among(np.flatnonzero(groups == 0)).costs.size < np.count_nonzero(ball.sizes(found.w)) < len(ball.costs)
    )
    assert len(turns) <= 25


def test_the_largest_entries_of_a_group_stay_equal():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 12))
    H, b = A.T @ A / 50, A.T @ (A @ np.repeat([2.0, 0.0, 1.0], 4)) / 50
    ball = FlatBall(1.5, np.ones(3), np.repeat(np.arange(3), 4), exponent=np.inf)
    w = minimise_flat(Formed(H), b, ball, np.zeros(12), ball.level(b)).w
    sizes = np.abs(w).reshape(3, 4)
    tied = sizes == sizes.max(axis=1, keepdims=True)
    assert tied[0].sum() > 1
    assert sizes.max(axis=1).sum() == pytest.approx(1.5, rel=1e-12)


@pytest.mark.parametrize("p", [1.02, 1.05])
def test_groups_of_many_features_are_no_harder(p, turns):
    """How far a group falls in a Newton step does not depend on how many features share its size."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(6), 60)
    A = rng.standard_normal((720, 360))
    w = rng.standard_normal(360) * np.repeat([1.0, 1.0, 0.5, 0.0, 0.0, 0.0], 60)
    H, b = A.T @ A / 720, A.T @ (A @ w) / 720
    ball = FlatBall(1.0, np.ones(6), groups, exponent=p)
    ball = FlatBall(0.5 * ball.norm(w), ball.costs, groups, exponent=p)
    found = minimise_flat(Formed(H), b, ball, np.zeros(360), 0.5 * ball.level(b))
    assert found.gap <= found.floor
    assert len(turns) <= 10


@pytest.mark.parametrize("tight", [True, False], ids=["simplex", "positive"])
@pytest.mark.parametrize("seed", [*range(20), 32, 77, 94])
def test_scales_far_apart_without_negative_entries(tight, seed):
    """Descent and Newton steps do not always get there where curvatures differ by many orders: corners do."""
    rng = np.random.default_rng(seed)
    X, y = np.sign(rng.standard_normal((12, 7))) * 10.0 ** rng.integers(-2, 3, size=7), rng.standard_normal(12)
    X[:, 5:] = X[:, :1] * np.array([1.0, 1e-3])  # which are alike but for their scales
    ball = FlatBall(1.0, 10.0 ** rng.uniform(-1.0, 1.0, 7), signed=False, tight=tight)
    b = X.T @ y
    found = minimise_flat(Formed(X.T @ X), b, ball, np.zeros_like(b), 0.5 * ball.level(-b))
    assert (found.w >= 0.0).all()
    assert ball.norm(found.w) <= 1.0 + 1e-12
    residual = X @ found.w - y
    assert ball.gap(X.T @ residual, found.w) <= 1e-8 * float(residual @ residual)
