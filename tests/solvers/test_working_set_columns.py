"""`WorkingSet` and the columns of a table: products, Hessians and moments of some features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from solvers.few_features import ACCELERATED, BALLS, DENSE, LOSSES, WEIGHT, D, N, Y, objective

from projfree import LpBall, Objective, Perturbed, QuadraticForm, Squared, Status, WorkingSet, as_data, minimize
from projfree.data import column_products
from projfree.data.chosen_columns import Columns
from projfree.numerics import symmetric
from projfree.solvers import working_set

RNG = np.random.default_rng(4)


@pytest.fixture
def unformed(monkeypatch):
    """Products of features are never formed where their columns are at hand."""
    monkeypatch.setattr(working_set, "MOST_FORMED", 0)


@pytest.mark.usefixtures("unformed")
@pytest.mark.parametrize("ball", ["l_1", "weighted", "positive", "simplex"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_columns_whose_products_are_not_formed_give_the_same(ball, loss, intercept, scale, monkeypatch):
    kind, y = LOSSES[loss]
    f = Objective(kind, as_data(sp.csr_array(DENSE), y, WEIGHT, scale=scale), fit_intercept=intercept)
    assert f.has_columns
    expected = minimize(f.open(), BALLS[ball], ACCELERATED, tol=1e-6, max_iter=3000)
    monkeypatch.setattr(Objective, "hessian_among", lambda *_: pytest.fail("formed"))
    result = minimize(f, BALLS[ball], WorkingSet(30), tol=1e-9, max_iter=100)
    assert result.status.converged, result
    assert result.bound <= expected.value
    assert expected.bound <= result.value


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("storage", ["sorted", "unsorted", "scaled"])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_products_with_columns_are_those_of_the_hessian(centred, storage, outputs, monkeypatch):
    X = sp.csr_array(DENSE)
    if storage == "unsorted":
        turned = np.lexsort((-X.indices, np.repeat(np.arange(N), np.diff(X.indptr))))
        X = sp.csr_array((X.data[turned], X.indices[turned], X.indptr), shape=X.shape)
        assert not X.has_sorted_indices
    y = Y if not outputs else np.column_stack([Y, -Y])
    f = Objective(Squared(), as_data(X, y, WEIGHT, scale=storage == "scaled"), fit_intercept=centred)
    x, features = f.point(np.zeros(f.shape)), np.array([2, 3, 11, 90, 149])
    found, H = f.column_products(x, features), f.hessian_among(x, features)
    np.testing.assert_allclose(found.times(np.eye(5)), H, atol=1e-13)
    np.testing.assert_allclose(found.diagonal, H.diagonal(), atol=1e-13)
    on, sides = np.array([0, 2, 3]), RNG.standard_normal((3, 2))
    exact = np.linalg.solve(H[np.ix_(on, on)], sides)
    monkeypatch.setattr(column_products, "ACCURACY", 1e-9)
    np.testing.assert_allclose(found.solve(on, sides), exact, atol=1e-6 * np.abs(exact).max())
    for rounds in (1, 5):
        start, slope = RNG.standard_normal((1, 5)), RNG.standard_normal((1, 5))
        costs, parts = RNG.uniform(0.1, 0.5, (1, 5)), []
        for each in (found, symmetric.Formed(H)):
            w, g = start.copy(), slope.copy()
            each.descend(g, w, 0.2, costs, True, rounds)
            np.testing.assert_allclose(g, slope + (w - start) @ H, atol=1e-12)
            parts.append(w)
        np.testing.assert_allclose(parts[0], parts[1], atol=1e-12)


def test_a_column_of_zeros_and_two_alike_are_no_obstacle(monkeypatch):
    monkeypatch.setattr(working_set, "MOST_FORMED", 0)
    X = DENSE.copy()
    X[:, 0], X[:, 2] = 0.0, X[:, 1]
    f = Objective(Squared(), as_data(sp.csr_array(X), Y))
    result = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    assert result.status.converged
    assert result.w[0] == 0.0


def test_sets_beyond_the_formed_ones_are_taken_in(monkeypatch):
    for name, most in (("MOST_FORMED", 10), ("MOST_FEATURES", 12)):
        monkeypatch.setattr(working_set, name, most)
    sparse, dense = objective("squared", sp.csr_array(DENSE)), objective("squared")
    result = minimize(sparse, LpBall(1, 9.5), WorkingSet(6), tol=1e-8)
    assert result.status.converged
    assert np.count_nonzero(result.w) > 12
    assert minimize(dense, LpBall(1, 9.5), WorkingSet(6), tol=1e-8).status is Status.TOO_LARGE


@pytest.mark.parametrize("order", ["sorted", "unsorted", "repeated"])
@pytest.mark.parametrize("places", [None, np.array([2, 0])])
def test_moments_of_some_columns_are_those_of_the_table(order, places):
    X = sp.csr_array(DENSE)
    if order != "sorted":
        rows, cols = X.nonzero()
        values = X.data if order == "unsorted" else np.concatenate([0.25 * X.data, 0.75 * X.data])
        turn = 1 if order == "unsorted" else 2
        shuffled = RNG.permutation(turn * X.nnz)
        rows, cols = np.tile(rows, turn)[shuffled], np.tile(cols, turn)[shuffled]
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N))])
        by_row = np.argsort(rows, kind="stable")
        X = sp.csr_array((values[shuffled][by_row], cols[by_row], ends), shape=X.shape)
    features, h = np.array([7, 3, 90, 11]), RNG.random(N)
    f = Objective(Squared(), as_data(X, Y, h))
    rows = f.hessian_among(f.point(np.zeros(D)), features, places)
    full = 2.0 * (DENSE[:, features].T * (h / h.sum())) @ DENSE[:, features]
    np.testing.assert_allclose(rows, full if places is None else full[places], atol=1e-13)
    clean = as_data(X, Y).X
    columns = Columns.of(clean, features)
    w = np.zeros(D)
    w[features] = [1.0, -2.0, 0.5, 3.0]
    np.testing.assert_allclose(columns.image(w), DENSE @ w, atol=1e-13)


def test_columns_at_hand_serve_only_points_that_they_cover():
    f = objective("squared", sp.csr_array(DENSE))
    f.hessian_among(f.point(np.zeros(D)), np.array([3, 7]))
    inside, outside = np.zeros(D), RNG.standard_normal(D)
    inside[[3, 7]] = [1.0, -2.0]
    for w in (inside, outside):
        assert f.value(f.point(w)) == pytest.approx(np.mean((DENSE @ w - Y) ** 2), rel=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: Perturbed(f, 0.1, np.ones(f.shape))], ids=["plain", "tilted"])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_all_columns_of_a_form_share_its_part(wrap, outputs):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((8, 8))
    f = wrap(QuadraticForm(A @ A.T, rng.standard_normal((8, *outputs))))
    features, places = np.array([5, 1, 6]), np.array([2, 0])
    x = f.point(np.zeros(f.shape))
    np.testing.assert_array_equal(f.hessian_among(x, features), (A @ A.T)[np.ix_(features, features)])
    np.testing.assert_array_equal(f.hessian_among(x, features, places), (A @ A.T)[np.ix_([6, 5], features)])


def test_the_hessian_of_a_perturbed_function_is_not_formed_as_a_whole(monkeypatch):
    f = Perturbed(objective("squared"), 0.1, np.ones(D))
    monkeypatch.setattr(Perturbed, "hessian", lambda self, *_: pytest.fail("all features"))
    assert np.isfinite(minimize(f, LpBall(1, 3.0), WorkingSet(4), max_iter=5).value)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.asfortranarray])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_hessian_of_some_features_is_part_of_that_of_all(loss, intercept, storage):
    f = objective(loss, storage(DENSE + 0.5 * (np.arange(D) == 11)), intercept=intercept, weight=WEIGHT)
    x, features = f.point(0.1 * np.sin(np.arange(D))), np.array([11, 4, 80])
    whole = f.hessian(x).matrix[np.ix_(features, features)]
    np.testing.assert_allclose(f.hessian_among(x, features), whole, atol=1e-12)
    np.testing.assert_allclose(f.hessian_among(x, features, np.array([2, 0])), whole[[2, 0]], atol=1e-12)


def test_images_by_chosen_columns_have_the_bits_of_those_by_all() -> None:
    """Else a run would depend on which columns an earlier one chose."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(400, 300, density=0.3, random_state=rng, data_rvs=rng.standard_normal))
    features = rng.permutation(300)[:120]
    w = np.zeros(300)
    w[features] = rng.standard_normal(120)
    np.testing.assert_array_equal(Columns.of(X, features).image(w), X @ w)
