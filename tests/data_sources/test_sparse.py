"""Sparse tables: the same numbers as dense ones, whatever format, dtype and order the entries come in."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from projfree import Huber, Logistic, Squared, as_data
from projfree.algebra import Point
from projfree.data import SparseData
from projfree.data.rows import AsResidual

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def wide(X, dtype):
    """The same CSR with other indices."""
    out = sp.csr_array(X)
    out.indices, out.indptr = out.indices.astype(dtype), out.indptr.astype(dtype)
    return out


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_dense(judge, table, kind, weighted):
    X, y, s = table(3000, 7)
    s = s if weighted else None
    data = as_data(kind(X), y, s)
    assert isinstance(data, SparseData)
    for outputs in ((), (1,), (3,)):
        judge.linear(data, X, outputs=outputs)
    judge.measures(data, X)
    judge.smoothness(data, X)
    judge.tangents(data, as_data(X, y, s))


@pytest.mark.parametrize(("dtype", "index"), [(np.float64, np.int32), (np.float32, np.int64)])
def test_compiled_agrees_with_dense(judge, table, small_is_large, dtype, index):
    X, y, s = table(3000, 7)
    X = X.astype(dtype)
    judge.tangents(as_data(wide(X, index), y, s), as_data(X, y, s), losses=[Squared(), Logistic(), Huber(0.5)])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_every_format_and_dtype(judge, kind, dtype):
    X = (np.arange(60).reshape(20, 3) % 4).astype(dtype)
    data = as_data(sp.csr_array(X).asformat(kind), np.ones(20))
    judge.linear(data, X.astype(np.float64))
    assert data.apply(np.ones(3)).dtype == np.float64


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 6))
def test_any_triplets(seed, n, d):
    """Repeated, unsorted and zero entries and empty rows mean what they mean in the dense table."""
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 3 * n + 1)
    rows, cols, values = rng.integers(0, n, count), rng.integers(0, d, count), rng.integers(-2, 3, count) * 1.0
    order = np.argsort(rows, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    X = sp.csr_array((values[order], cols[order], pointers), shape=(n, d))
    A = np.zeros((n, d))
    np.add.at(A, (rows, cols), values)
    before = X.indices.copy(), X.data.copy()
    data = as_data(X, np.arange(n))
    w, r = rng.integers(-3, 4, d) * 1.0, rng.integers(-3, 4, n) * 1.0
    np.testing.assert_array_equal(data.apply(w), A @ w)
    np.testing.assert_array_equal(data.adjoint(r), A.T @ r)
    assert data.column_stats.row_norm == pytest.approx(np.linalg.norm(A, axis=1).max(), rel=1e-15)
    np.testing.assert_array_equal(before[0], X.indices)
    np.testing.assert_array_equal(before[1], X.data)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_samples_are_unbiased(table, m):
    X, y, s = table(5, 3)
    data = as_data(sp.csr_array(X), y, s)
    r = np.arange(5.0) ** 2
    workspace, rng = data.open(), np.random.default_rng(0)
    parts = []
    for rows in map(np.array, itertools.combinations(range(5), m)):
        part = data.representative(rows)
        np.testing.assert_array_equal(part.y, y[rows])
        np.testing.assert_allclose(part.apply(np.ones(3)), X[rows].sum(axis=1), atol=1e-14)
        workspace.sample(m, rng).sweep(AsResidual(), [Point(np.ones(3))])
        parts.append(part.adjoint(r[rows] * part.rows(slice(None)).s))
    np.testing.assert_allclose(np.mean(parts, axis=0), data.adjoint(r * data.rows(slice(None)).s), atol=1e-13)
    workspace.sweep(AsResidual(), [Point(np.ones(3))])
    assert workspace.rows_read == 5 + len(parts) * m, "images and adjoints in one read"


def broken(kind=sp.csr_array, **changes):
    X = kind(np.eye(3))
    for name, value in changes.items():
        setattr(X, name, np.array(value, dtype=getattr(X, name).dtype))
    return X


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (broken(indices=[0, -1, 2]), r"`X` is not a sound sparse matrix: .*; build it anew from triplets"),
        (broken(indices=[0, 1, 3]), r"`X` is not a sound sparse matrix: .*indices must be < 3"),
        (broken(indptr=[0, 2, 1, 3]), r"`X` is not a sound sparse matrix: .*non-decreasing sequence"),
        (broken(indptr=[0, 1, 2, 9]), r"`X` is not a sound sparse matrix: .*; build it anew from triplets"),
        (broken(indptr=[1, 1, 2, 3]), r"`X` is not a sound sparse matrix: index pointer should start with 0"),
        (broken(data=[1.0, 2.0]), r"`X` is not a sound sparse matrix: indices and data should have the same size"),
        (broken(sp.csc_array, indices=[0, 3, 2]), r"`X` is not a sound sparse matrix: .*indices must be < 3"),
        (broken(sp.csc_array, indptr=[0, 2, 1, 3]), r"`X` is not a sound sparse matrix: .*non-decreasing sequence"),
        (broken(sp.csc_array, data=[1.0, np.nan, 1.0]), r"`X` must be finite, got nan at index \(1, 1\)"),
        (broken(data=[1.0, np.nan, 1.0]), r"`X` must be finite, got nan at index \(1, 1\); drop or impute"),
        (broken(data=[1.0, -np.inf, 1.0]), r"`X` must be finite, got -inf at index \(1, 1\)"),
        (broken(data=[1.0, 1e200, 1.0]), r"`X` has entries as large as 1e\+200; rescale its columns"),
        (sp.csr_array((3, 0)), r"`X` must be a table with at least one row and one column, got shape \(3, 0\)"),
        (sp.csc_array(broken(indices=[0, 1, 2]))[:2], r"`y` must have one row for each of the 2 rows"),
    ],
)
def test_sentences(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_data(X, np.ones(3))


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match=r"`X` must hold real numbers, got dtype complex128; convert it"):
        as_data(sp.csr_array(np.eye(2) * 1j), np.ones(2))


def test_nan_in_the_millionth_row():
    n = 10**6
    X = sp.csr_array((np.ones(n), np.zeros(n, np.int32), np.arange(n + 1)), shape=(n, 2))
    X.data[-1] = np.nan
    with pytest.raises(ValueError, match=r"got nan at index \(999999, 0\)"):
        as_data(X, np.ones(n))
