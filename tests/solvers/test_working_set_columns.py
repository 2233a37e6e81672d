"""`WorkingSet` and the columns of a table: products, Hessians and moments of some features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from solvers.few_features import ACCELERATED, BALLS, DENSE, LOSSES, WEIGHT, D, N, Y, objective

from projfree import LpBall, Objective, Perturbed, QuadraticForm, Squared, WorkingSet, as_data, minimize
from projfree.numerics import group_l1_qp
from projfree.objectives.hessian import RowHessian

RNG = np.random.default_rng(4)


@pytest.fixture
def unformed(monkeypatch):
    """Products of features are never formed where their columns are at hand."""
    monkeypatch.setattr(group_l1_qp, "MOST_FORMED", 0)


@pytest.mark.usefixtures("unformed")
@pytest.mark.parametrize("ball", ["l_1", "weighted", "positive", "simplex"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_columns_whose_products_are_not_formed_give_the_same(ball, loss, intercept, scale, monkeypatch):
    kind, y = LOSSES[loss]
    f = Objective(kind, as_data(sp.csr_array(DENSE), y, WEIGHT, scale=scale), fit_intercept=intercept)
    assert f.hessian(f.point(np.zeros(f.shape)), np.arange(3)).columns() is not None
    expected = minimize(f.open(), BALLS[ball], ACCELERATED, tol=1e-6, max_iter=3000)
    monkeypatch.setattr(RowHessian, "matrix", property(lambda _: pytest.fail("formed")))
    result = minimize(f, BALLS[ball], WorkingSet(30), tol=1e-9, max_iter=100)
    assert result.status.converged, result
    assert result.bound <= expected.value
    assert expected.bound <= result.value


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("storage", ["sorted", "unsorted", "scaled", "dense"])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_products_with_columns_are_those_of_the_hessian(centred, storage, outputs):
    X = sp.csr_array(DENSE)
    if storage == "unsorted":
        turned = np.lexsort((-X.indices, np.repeat(np.arange(N), np.diff(X.indptr))))
        X = sp.csr_array((X.data[turned], X.indices[turned], X.indptr), shape=X.shape)
        assert not X.has_sorted_indices
    y = Y if not outputs else np.column_stack([Y, -Y])
    f = Objective(Squared(), as_data(DENSE if storage == "dense" else X, y, WEIGHT, scale=storage == "scaled"), centred)
    x, features = f.point(np.zeros(f.shape)), np.array([2, 3, 11, 90, 149])
    hessian = f.hessian(x, features)
    found, H = hessian.columns(), hessian.matrix
    for columns in (found, found.formed()):
        k = columns.mean.shape[1]
        for o in range(k):
            unit = np.stack([np.eye(5)] * k, axis=2) * (np.arange(k) == o)
            products = np.stack([columns.times(np.ascontiguousarray(one))[:, o] for one in unit])
            np.testing.assert_allclose(products, H, atol=1e-13)
            np.testing.assert_allclose(columns.diagonal[:, o], H.diagonal(), atol=1e-13)


def test_a_column_of_zeros_and_two_alike_are_no_obstacle(monkeypatch):
    monkeypatch.setattr(group_l1_qp, "MOST_FORMED", 0)
    X = DENSE.copy()
    X[:, 0], X[:, 2] = 0.0, X[:, 1]
    f = Objective(Squared(), as_data(sp.csr_array(X), Y))
    result = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    assert result.status.converged
    assert result.w[0] == 0.0


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: Perturbed(f, 0.1, np.ones(f.shape))], ids=["plain", "tilted"])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_all_columns_of_a_form_share_its_part(wrap, outputs):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((8, 8))
    f = wrap(QuadraticForm(A @ A.T, rng.standard_normal((8, *outputs))))
    x, features = f.point(np.zeros(f.shape)), np.array([5, 1, 6])
    np.testing.assert_array_equal(f.hessian(x, features).matrix, (A @ A.T)[np.ix_(features, features)])


def test_the_hessian_of_a_perturbed_function_is_not_formed_as_a_whole(monkeypatch):
    f = Perturbed(objective("squared"), 0.1, np.ones(D))
    monkeypatch.setattr(Perturbed, "hessian", lambda h, x, features: h.f.hessian(x, features))
    assert np.isfinite(minimize(f, LpBall(1, 3.0), WorkingSet(4), max_iter=5).value)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.asfortranarray])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_hessian_of_some_features_is_part_of_that_of_all(loss, intercept, storage):
    f = objective(loss, storage(DENSE + 0.5 * (np.arange(D) == 11)), intercept=intercept, weight=WEIGHT)
    x, features = f.point(0.1 * np.sin(np.arange(D))), np.array([11, 4, 80])
    whole = f.hessian(x).matrix[np.ix_(features, features)]
    np.testing.assert_allclose(f.hessian(x, features).matrix, whole, atol=1e-12)
