"""Quadratics over sets with few features: solved to rounding, on every kind of set and face."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.symmetric import Formed

#: Exponents of the norms of groups, by the end of a kind.
EXPONENTS = {"": 2.0, " of largest": np.inf, " of p = 1.3": 1.3, " of p = 4": 4.0}
GROUPED = tuple(kind + end for end in EXPONENTS for kind in ("groups", "rows"))
KINDS = ("plain", "weighted", "positive", "simplex", "columns", *GROUPED)


def problem(kind, seed, m, n, share):
    """H, b, a set of that kind with a share of the norm of the unconstrained minimiser, and a start."""
    rng = np.random.default_rng(seed)
    exponent = EXPONENTS[kind[kind.index(" of") :]] if " of" in kind else 2.0
    kind = kind.split()[0]
    k = 3 if kind in ("columns", "rows") else 1
    groups = np.sort(rng.integers(0, 1 + m // 3, m)) if kind == "groups" else np.arange(m)
    groups = np.unique(groups, return_inverse=True)[1]
    A = rng.standard_normal((n, m)) * 10.0 ** rng.uniform(-1.0, 1.0, m)
    y = rng.standard_normal((n, k)) if k > 1 else rng.standard_normal(n)
    H, b, free = A.T @ A / n, A.T @ y / n, np.linalg.lstsq(A, y, rcond=None)[0]
    costs = rng.uniform(0.3, 3.0, free.shape) if kind == "weighted" else np.ones(free.shape)
    if kind in ("groups", "rows"):
        ball = FlatBall(1.0, np.ones(groups.max() + 1), groups, exponent=exponent)
    else:
        ball = FlatBall(1.0, costs, None, kind not in ("positive", "simplex"), kind == "simplex")
    radius = share * max(float(np.sum(np.abs(free))), 1e-3)
    ball = replace(ball, radius=radius)
    start = np.full(free.shape, radius / m) if kind == "simplex" else np.zeros(free.shape)
    return H, b, ball, start


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 10**6), m=st.integers(1, 30), n=st.integers(1, 60), share=st.sampled_from([0.01, 0.1, 0.5, 2.0])
)
@settings(max_examples=40, deadline=None)
def test_the_gap_is_rounding(kind, seed, m, n, share):
    H, b, ball, start = problem(kind, seed, m, n, share)
    found = minimise_flat(Formed(H), b, ball, start, 0.5 * ball.level(H @ start - b))
    size = ball.radius * float(np.max(np.abs(b), initial=1e-300)) * 3.0
    if ball.exponent == 2.0 or n > m:
        assert found.gap <= 1e-9 * size
    else:  # without curvature in some directions such faces are not solved for, and projected gradients end the search
        assert found.gap <= max(1e-2 * ball.gap(H @ start - b, start), 1e-9 * size)
    # The gap is what it is called: computed here from the definition.
    g = H @ found.w - b
    sizes = ball.duals(g) if ball.signed else -g
    reached = ball.radius * float(np.max(sizes / ball.costs))
    gap = np.vdot(g, found.w) + (reached if ball.tight else max(reached, 0.0))
    assert found.gap == pytest.approx(gap, abs=1e-12 * size)
    norm = float(np.sum(ball.costs * ball.sizes(found.w)))
    assert norm <= ball.radius * (1.0 + 1e-12)
    if ball.tight:
        assert norm == pytest.approx(ball.radius, rel=1e-12)
    if not ball.signed:
        assert found.w.min() >= 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_guess_at_the_multiplier_and_a_wrong_start_change_nothing(kind):
    H, b, ball, start = problem(kind, 5, 12, 40, 0.2)
    best = minimise_flat(Formed(H), b, ball, start, 0.1)
    wrong = ball.project(np.random.default_rng(1).standard_normal(start.shape) * ball.radius)
    for level in (1e-12, 1e6, 0.0):
        found = minimise_flat(Formed(H), b, ball, wrong, level)
        np.testing.assert_allclose(found.w, best.w, atol=1e-7 * ball.radius)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_projections_satisfy_their_inequality(kind, seed):
    *_, ball, start = problem(kind, seed, 9, 20, 0.3)
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(start.shape) * ball.radius
    near = ball.project(w)
    for _ in range(20):
        other = ball.project(rng.standard_normal(start.shape) * ball.radius)
        assert np.vdot(w - near, other - near) <= 1e-12 * ball.radius**2


def test_a_matrix_of_zeros_and_columns_of_zeros():
    ball = FlatBall(1.0, np.ones(3))
    assert not minimise_flat(Formed(np.zeros((3, 3))), np.zeros(3), ball, np.zeros(3), 0.0).w.any()
    H = np.diag([2.0, 0.0, 1.0])
    found = minimise_flat(Formed(H), np.array([4.0, 0.0, 0.5]), ball, np.zeros(3), 1.0)
    np.testing.assert_allclose(found.w, [1.0, 0.0, 0.0], atol=1e-12)


def test_an_inner_minimum_has_no_multiplier():
    H, b = np.eye(2), np.array([0.3, -0.2])
    found = minimise_flat(Formed(H), b, FlatBall(1.0, np.ones(2)), np.zeros(2), 0.1)
    np.testing.assert_allclose(found.w, b, atol=1e-12)
    assert found.level <= 1e-12


@pytest.mark.parametrize("seed", [8, 18, 20])
@pytest.mark.parametrize("share", [0.7, 0.95])
@pytest.mark.parametrize("weighted", [False, True])
def test_about_as_many_entries_as_the_matrix_has_rank(seed, share, weighted):
    """Nearly singular faces, from which descent alone and active sets do not find a way."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(60, 200))
    A = rng.standard_normal((m - 3, m)) * (np.geomspace(1.0, 1e-3, m) if seed % 5 == 3 else 1.0)
    y = A @ (rng.standard_normal(m) * (rng.random(m) < 0.3)) + rng.standard_normal(m - 3)
    H, b, free = A.T @ A / m, A.T @ y / m, np.linalg.lstsq(A, y, rcond=None)[0]
    costs = rng.uniform(0.5, 2.0, m) if weighted else np.ones(m)
    ball = FlatBall(share * float(costs @ np.abs(free)), costs)
    found = minimise_flat(Formed(H), b, ball, np.zeros(m), 0.5 * ball.level(b))
    assert found.gap <= 32.0 * found.floor


def test_large_sets_without_a_regular_face_take_a_bounded_number_of_steps(monkeypatch):
    from projfree.numerics import without_faces

    H, b, ball, start = problem("plain", 3, 40, 20, 0.4)
    monkeypatch.setattr(without_faces, "MOST_WALKED", 10)
    monkeypatch.setattr(without_faces, "MOST_ACTIVE", 10)
    asked = []
    descend = without_faces.project_descent
    monkeypatch.setattr(without_faces, "project_descent", lambda *a: asked.append(a[-1]) or descend(*a))
    monkeypatch.setattr(without_faces, "WORK", 50.0 * H.size)
    (near,) = without_faces.without_faces(H, b, ball, start)
    assert asked == [50]
    assert ball.norm(near) <= ball.radius * (1.0 + 1e-12)
    assert ball.gap(H @ near - b, near) < 0.5 * ball.gap(H @ start - b, start)
