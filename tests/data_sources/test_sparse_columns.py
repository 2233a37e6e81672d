"""Tables of compressed columns are read as they are, and give what their rows give."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import GroupBall, Logistic, LpBall, Objective, Softmax, Squared, WorkingSet, as_data, minimize
from projfree.data import SparseData, sparse_columns
from projfree.data import sparse as by_rows
from projfree.data.sparse_columns import SparseColumns


def sparse(rng, n, d, density):
    """Rows with normal entries at some places."""
    return sp.csr_array(np.where(rng.random((n, d)) < density, rng.standard_normal((n, d)), 0.0))


def tables(n=300, d=40, *, weighted=False, seed=0):
    """The same table by columns and by rows, with targets and weights."""
    rng = np.random.default_rng(seed)
    X = sparse(rng, n, d, 0.1)
    y, s = np.sign(rng.standard_normal(n)), rng.uniform(0.1, 2.0, n) if weighted else None
    return as_data(sp.csc_array(X), y, s), as_data(X, y, s)


@pytest.fixture
def never_turned(monkeypatch):
    """Fails where the rows of a table of columns are made."""
    monkeypatch.setattr(sparse_columns, "by_rows", lambda X: pytest.fail("the rows were made"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_products_are_those_of_the_rows(outputs, weighted, never_turned):
    columns, rows = tables(weighted=weighted)
    assert type(columns) is SparseColumns
    assert type(rows) is SparseData
    rng = np.random.default_rng(1)
    w, r = rng.standard_normal((40, *outputs)), rng.standard_normal((300, *outputs))
    np.testing.assert_array_equal(columns.apply(w), rows.apply(w))
    np.testing.assert_allclose(columns.adjoint(r), rows.adjoint(r), rtol=0, atol=1e-13)
    np.testing.assert_allclose(columns.mean_row(), rows.mean_row(), rtol=0, atol=1e-15)
    assert columns.row_norm == pytest.approx(rows.row_norm, rel=1e-14)
    assert columns.mean_square == pytest.approx(rows.mean_square, rel=1e-14)
    assert columns.fingerprint() == rows.fingerprint()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_a_run_among_few_columns_never_makes_rows(loss, intercept, never_turned):
    columns, rows = tables(seed=3)
    own, other = (Objective(loss, data, fit_intercept=intercept) for data in (columns, rows))
    found = minimize(own, LpBall(1, 0.7), WorkingSet(smallest=5), tol=1e-9)
    due = minimize(other, LpBall(1, 0.7), WorkingSet(smallest=5), tol=1e-9)
    assert found.status.converged
    assert found.bound <= due.value
    assert due.bound <= found.value
    np.testing.assert_allclose(found.w, due.w, atol=1e-5)
    assert found.certificate.verify(objective=other).ok


def test_entries_that_cancel_leave_the_same_fingerprint():
    """Their sum is rounding, which rows and columns add up differently."""
    rng = np.random.default_rng(6)
    A, y = sparse(rng, 800, 50, 0.3).toarray(), np.ones(800)
    A[0, 0] -= A.sum()
    X = sp.csr_array(A)
    one, other = X.data.sum(), X.tocsc().data.sum()
    assert one != other
    assert as_data(X, y).fingerprint() == as_data(X.tocsc(), y).fingerprint()


def test_several_outputs_in_a_run():
    rng = np.random.default_rng(5)
    X, y = sparse(rng, 200, 30, 0.2).tocsc(), rng.integers(3, size=200)
    f, g = (Objective(Softmax(), as_data(form, y), fit_intercept=True) for form in (X, X.tocsr()))
    ball = GroupBall(2, 1, 2.0)
    one, other = (minimize(h, ball, tol=1e-7) for h in (f, g))
    assert max(one.bound, other.bound) <= min(one.value, other.value)


def test_threads_do_not_show(identical, monkeypatch):
    monkeypatch.setattr(by_rows, "THREADED_BYTES", 0)
    rng = np.random.default_rng(2)
    X, y = sparse(rng, 500, 30, 0.3).tocsc(), np.sign(rng.standard_normal(500))
    identical(lambda threads: as_data(X, y, threads=threads))


def test_the_rows_are_made_once_where_they_are_asked_for():
    columns, rows = tables()
    np.testing.assert_array_equal(columns.X.toarray(), rows.X.toarray())
    assert columns.X is columns.X is columns.with_targets(lambda y: -y).X
    part, due = (data.subset(np.array([3, 5, 200])) for data in (columns, rows))
    assert type(part) is SparseData
    np.testing.assert_array_equal(part.X.toarray(), due.X.toarray())
    np.testing.assert_array_equal(part.apply(np.ones(40)), due.apply(np.ones(40)))
    again = pickle.loads(pickle.dumps(columns))
    np.testing.assert_array_equal(again.apply(np.ones(40)), rows.apply(np.ones(40)))


def test_other_formats_are_turned_into_columns():
    X = np.array([[1.0, 2.0], [0.0, 3.0]])
    np.testing.assert_array_equal(SparseColumns(sp.csr_array(X), np.ones(2)).apply(np.array([1.0, 10.0])), [21.0, 30.0])


@pytest.mark.parametrize("outputs", [1, 400])
def test_as_many_roundings_as_the_longest_sum_are_allowed_for(outputs):
    """Over a column, over a tile of rows, or over the tiles."""
    n = 3 * sparse_columns.STEP_NUMBERS
    data = as_data(sp.csc_array(([1.0], ([0], [0])), shape=(n, 1)), np.ones(n))
    tile = max(sparse_columns.FEWEST_ROWS, sparse_columns.STEP_NUMBERS // outputs)
    assert data.summation() >= tile + n / tile
    full = as_data(sp.csc_array(np.ones((n, 1))), np.ones(n))
    assert full.summation() >= n


@pytest.mark.parametrize("change", ["single precision", "large"])
def test_others_are_turned_at_once(change, monkeypatch):
    X = sparse(np.random.default_rng(0), 20, 5, 0.5).tocsc()
    if change == "large":
        monkeypatch.setattr(sparse_columns, "WIDE_BYTES", 12 * X.nnz)
    else:
        X = X.astype(np.float32)
    assert type(as_data(X, np.ones(20))) is SparseData


def test_an_entry_that_is_not_finite_is_named_by_row_and_column():
    X = sp.csc_array(np.array([[1.0, 0.0], [0.0, np.inf], [2.0, 0.0]]))
    with pytest.raises(ValueError, match=r"`X` must be finite, got inf at index \(1, 1\)"):
        as_data(X, np.ones(3))
    with pytest.raises(ValueError, match="entries as large as 1e\\+200; rescale its columns"):
        as_data(sp.csc_array(np.array([[1e200, 0.0]])), np.ones(1))


def test_squares_that_overflow_in_sum_alone_are_taken():
    """Each row is within the range of numbers, the sum of all squares is not."""
    X = sp.csc_array(np.full((3, 1), 1e154))
    data = as_data(X, np.zeros(3))
    assert data.mean_square == pytest.approx(1e308)


@pytest.mark.parametrize("by_columns", [False, True])
def test_products_with_columns_are_laid_out_once_while_nothing_changes(by_columns):
    columns, rows = tables()
    data = columns if by_columns else rows
    features = np.arange(0, 40, 3)
    first = Objective(Squared(), data)
    x, y = first.point(np.zeros(40)), first.point(np.ones(40))
    made = first.column_products(x, features)
    assert first.column_products(y, features) is made  # squares are curved alike everywhere
    assert first.column_products(x, features[1:]) is not made
    other = Objective(Logistic(), data)
    w = np.zeros(40)
    w[features] = 1.0
    at_zero, elsewhere = (other.column_products(other.point(v), features) for v in (np.zeros(40), w))
    assert at_zero is not elsewhere
    assert not np.array_equal(at_zero.h, elsewhere.h)
    assert Objective(Squared(), data, fit_intercept=True).column_products(x, features) is not made
