"""Passes over sparse tables: no copies, any cut into pieces, canonical form, and what is found once and kept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from projfree import Logistic, LpBall, Objective, Softmax, Squared, as_data
from projfree.data import sparse


def random_table(rng, n, d, density=0.3, dtype=np.float64):
    X = sp.random_array((n, d), density=density, format="csr", random_state=rng, data_sampler=rng.standard_normal)
    return sp.csr_array(X.astype(dtype))


def shuffled(X, rng, split=False):
    """The same table with the entries of each row in any order; each entry in two halves if asked."""
    values, columns, pointers = [], [], [0]
    for i in range(X.shape[0]):
        own = slice(X.indptr[i], X.indptr[i + 1])
        a, j = X.data[own], X.indices[own]
        a, j = (np.concatenate([a / 2, a / 2]), np.concatenate([j, j])) if split else (a, j)
        order = rng.permutation(len(a))
        values.append(a[order])
        columns.append(j[order])
        pointers.append(pointers[-1] + len(a))
    out = sp.csr_array(X.shape)
    out.data, out.indices = np.concatenate(values), np.concatenate(columns).astype(np.int32)
    out.indptr = np.array(pointers, dtype=np.int32)
    return out


def passes(data, loss, seed=0):
    """Everything that a tangent says."""
    f = Objective(loss, data, fit_intercept=True)
    x = f.point(np.random.default_rng(seed).standard_normal(f.shape) / 5)
    m = f.evaluate(x).slope
    return [f(x), m.constant, m.gradient, *m.minimum(LpBall(2, 1.0)), data.column_stats.row_norm]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 8), st.booleans(), st.booleans())
def test_unsorted_and_repeated_entries_are_those_of_the_canonical_table(seed, n, d, split, by_column):
    """The same digits of values and bounds, a table in canonical form, and an input that stays as it was."""
    rng = np.random.default_rng(seed)
    X, y = random_table(rng, n, d), rng.standard_normal(n)
    other = shuffled(X, rng, split)
    if by_column:  # which keeps repeated entries
        other = other.tocsc()
    before = other.data.copy(), other.indices.copy(), other.indptr.copy()
    data, canonical = as_data(other, y), as_data(X.tocsc() if by_column else X, y)
    for a, b in zip(passes(data, Squared()), passes(canonical, Squared()), strict=True):
        np.testing.assert_array_equal(a, b)
    assert data.fingerprint() == canonical.fingerprint() == as_data(X, y).fingerprint()
    for found, due in zip((other.data, other.indices, other.indptr), before, strict=True):
        np.testing.assert_array_equal(found, due)
    assert is_canonical(data.X)
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    np.testing.assert_array_equal(data.scaled_columns(slice(None), centred=False).toarray(), X.toarray())


def is_canonical(table):
    lines = np.split(table.indices, table.indptr[1:-1])
    return all((np.diff(line) > 0).all() for line in lines)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_cut_and_any_number_of_threads(monkeypatch, loss, dtype):
    """Threads never show; other blocks change nothing but roundings, within the allowances."""
    rng = np.random.default_rng(1)
    n, d = 9_000, 6
    X = random_table(rng, n, d, dtype=dtype)
    y = rng.integers(0, 3, n) if loss.coupled else np.sign(rng.standard_normal(n))
    dense = passes(as_data(X.toarray(), y), loss)
    monkeypatch.setattr("projfree.data.rows.THREADED_BYTES", 0)
    monkeypatch.setattr(sparse, "BLOCK_ENTRIES", 1 << 10)
    assert as_data(X, y).cut.count == 5
    first, *others = (passes(as_data(X, y, threads=threads), loss) for threads in (1, 2, 3))
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(first[:3], dense[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
