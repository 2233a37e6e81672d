"""Implicit features: the larger matrix against dense formulas, and its certificate against a dense solution."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries

from projfree.algebra import LowRank, OnPattern, Pattern
from projfree.completion.als_updates import Sides, regressed
from projfree.completion.stacked import StackedPattern
from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV
from projfree.estimators.completion.convex_problem import ConvexProblem, SweepSettings
from projfree.losses import Squared
from projfree.numerics import spectra
from projfree.sets import schatten

SHAPE = (9, 7)


def made(loss=Squared(), p=1.0, weight=0.7, weighted=False, seed=0, kinds=(True, True, True)):  # noqa: B008 - a loss is frozen
    rng = np.random.default_rng(seed)
    rows, cols, y = entries(*SHAPE, 30, seed=seed)
    y = np.where(y > 3.0, 1.0, -1.0) if loss.labels else y
    sizes = rng.random(30) + 0.2 if weighted else None
    base = 0.0 if loss.labels else float(y.mean())
    settings = SweepSettings(loss, p=p, power=0.25, ridge=2.0, kinds=kinds, base=base, implicit=weight)
    return ConvexProblem.of(rows, cols, y, sizes, SHAPE, settings), (rows, cols, y, sizes)


def point(problem, seed=0, rank=3):
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((2 * side, rank)) for side in SHAPE)
    return problem.f.point(LowRank.of(left, 0.3 * right))


@pytest.mark.parametrize("p", [1.0, 1.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_half_sweep_solves_rows_with_few_entries_exactly(p, weighted):
    """The Gram matrix that all rows share is part of each regression, whatever the ridge of the components."""
    problem, (rows, cols, y, sizes) = made(p=p, weighted=weighted)
    f, e = problem.f, problem.f.entries
    now = Sides.of(f, f.point(point(problem).w, np.linspace(-1.0, 1.0, 1 + sum(SHAPE))))
    ridge, scale = np.array([0.3, 0.5, 0.9]), np.linspace(0.5, 2.0, SHAPE[0])
    found = regressed(f, now, 0, ridge, scale)
    c, gram = f.scale * e.data.n, now.beside.T @ now.beside
    for i in range(SHAPE[0]):
        at = rows == i
        T = np.column_stack([np.ones(at.sum()), now.right[cols[at]]])
        s = sizes[at] / sizes.sum() * len(y) if weighted else np.ones(at.sum())
        A = T.T @ (s[:, None] * T) + np.diag(np.append(e.ridge, ridge * scale[i]))
        A[1:, 1:] += c * gram
        b = T.T @ (s * (y[at] - e.base - now.shift - now.cols[cols[at]]))
        b[1:] += c * now.beside[cols[at]].sum(axis=0)
        expected = np.linalg.solve(A, b) if at.any() else np.zeros(4)
        np.testing.assert_allclose(np.append(found.rows[i], found.left[i]), expected, atol=1e-9)
        below = c * np.linalg.solve(c * now.right.T @ now.right + np.diag(ridge), now.right[cols[at]].sum(axis=0))
        np.testing.assert_allclose(found.below[i], below, atol=1e-9)


def taste(seed=0, m=300, n=150):
    """Users of two groups who rate what their group likes, and whose ratings depend on the group."""
    rng = np.random.default_rng(seed)
    group, kind = rng.integers(0, 2, m), rng.integers(0, 2, n)
    likes = group[:, None] == kind[None, :]
    rows, cols = np.nonzero(rng.random((m, n)) < np.where(likes, 0.12, 0.02))
    quality = rng.standard_normal((2, n))
    return rows, cols, 3.0 + quality[group[rows], cols] + 0.3 * rng.standard_normal(len(rows))


def test_what_was_rated_helps_where_it_says_something():
    rows, cols, y = taste()
    order = np.random.default_rng(1).permutation(len(y))
    test, train = (tuple(column[part] for column in (rows, cols, y)) for part in (order[:600], order[600:]))
    chosen = MatrixCompletion(rank=10, certify=False).fit(train)
    without = MatrixCompletion(rank=10, certify=False, implicit=0.0).fit(train)
    assert chosen.implicit_ > 0.0
    assert chosen.rmse(test) < without.rmse(test)


@pytest.mark.parametrize(("seed", "stars"), [(0, False), (1, True), (2, True)])
def test_what_was_rated_is_left_out_where_it_says_nothing(stars, seed):
    """Entries missing at random: the default predicts as well as a model of the ratings alone."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    places = np.argwhere(rng.random(Z.shape) < 0.5)
    z = Z[places[:, 0], places[:, 1]]
    y = np.clip(np.round(3.0 + z), 1.0, 5.0) if stars else (z > 0.0) * 1.0
    train = rng.random(len(y)) < 0.8

    def error(**settings):
        model = MatrixCompletion(certify=False, **settings).fit(places[train], y[train])
        return float(np.sqrt(np.mean((model.predict(places[~train]) - y[~train]) ** 2)))

    assert error() <= 1.03 * error(implicit=0.0)


def test_the_gap_of_the_larger_problem_can_be_closed(tmp_path):
    rows, cols, y = entries(30, 20, 300, seed=3)
    model = MatrixCompletion(radius=20.0, rank=20, implicit=0.5, max_sweeps=100).fit((rows, cols, y))
    assert model.implicit_ == 0.5
    assert model.factors_.below.shape == (30, 20)
    assert 0.0 <= model.relative_gap_ < 0.05
    goal = 0.7 * model.relative_gap_
    model.certify_to(goal)
    assert model.relative_gap_ <= goal
    model.save(tmp_path / "model")
    again = MatrixCompletion.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict((rows, cols)), model.predict((rows, cols)))
    again.partial_fit(([0, 99], [0, 3], [1.0, 2.0]))
    assert again.implicit_ == 0.5
    assert again.factors_.below.shape[0] == 31


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
@pytest.mark.parametrize("q", [np.inf, 6.0])
def test_bounds_on_the_norm_of_a_stack_are_above_it(shape, q, monkeypatch):
    """By its Gram matrix, and by its Frobenius norm, which is coarser."""
    for owner in (spectra, schatten):
        monkeypatch.setattr(owner, "DENSE_ENTRIES", 0)
        monkeypatch.setattr(owner, "EVERY_SIDE", 0)
    rng = np.random.default_rng(0)
    rows, cols, _ = entries(*shape, 300, seed=0)
    pattern, *_ = Pattern.of(rows, cols, shape)
    stack = StackedPattern(*(OnPattern(pattern, rng.standard_normal(300)) for _ in "ACD"))
    low = LowRank.of(*(rng.standard_normal((2 * side, 3)) for side in shape))
    for g in (stack, stack + low):
        dense = g.toarray()
        np.testing.assert_allclose(g.gram(), dense @ dense.T if shape[0] < shape[1] else dense.T @ dense, atol=1e-10)
        exact = np.linalg.norm(np.linalg.svd(dense, compute_uv=False), q)
        p = 1.0 if np.isinf(q) else q / (q - 1.0)
        found = [schatten.structured_support(g, p, 1.0, sharp) for sharp in (True, False)]
        assert min(found) >= exact * (1 - 1e-12)
        assert found[0] <= exact * 1.01
        assert found[0] <= found[1] * (1 + 1e-3)


def test_a_search_chooses_one_weight_for_all_exponents():
    ratings = taste()
    search = MatrixCompletionCV(p=(1.0, 1.1), radii=20, cv=2, rank=6, certify=False).fit(ratings)
    assert search.implicit_ > 0.0
    assert search.factors_.below.shape[0] == len(search.user_ids_)
    given = MatrixCompletionCV(p=1.0, radii=[5.0], cv=2, rank=6, certify=False).fit(ratings)
    assert given.implicit_ == 0.0
