"""Observed entries of a matrix: (A W)_i = W[row_i, col_i], also where a place is observed more than once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projfree import Entries, as_data
from projfree.algebra import Point
from projfree.data import entries
from projfree.data.rows import AsResidual, FormPredictions, Step

SHAPE = (4, 3)


def observed(n=60, seed=0, weight=False):
    rng = np.random.default_rng(seed)
    places = Entries(rng.integers(0, 4, n), rng.integers(0, 3, n), SHAPE)
    return as_data(places, rng.standard_normal(n), rng.uniform(size=n) if weight else None)


def as_table(data):
    """The same linear map as a table on flattened matrices."""
    X = np.zeros((data.n, 12))
    X[np.arange(data.n), data.places[0] * 3 + data.places[1]] = 1.0
    return X


@pytest.fixture(params=[1 << 13, 7], ids=["one block", "nine blocks"], autouse=True)
def _blocks(request, monkeypatch):
    monkeypatch.setattr(entries.EntriesData, "block_rows", request.param)


@given(st.integers(0, 2**32 - 1))
def test_image_and_adjoint(seed):
    rng, data = np.random.default_rng(seed), observed()
    W, r, X = rng.standard_normal(SHAPE), rng.standard_normal(data.n), as_table(data)
    np.testing.assert_array_equal(data.apply(W), X @ W.ravel())
    np.testing.assert_allclose(data.adjoint(r), (X.T @ r).reshape(SHAPE), atol=1e-13)
    assert np.vdot(data.apply(W), r) == pytest.approx(np.vdot(W, data.adjoint(r)), abs=1e-12)


@dataclass(frozen=True)
class Both(Step):
    """The sum of two images as the residual, and what is told about each block of rows."""

    told: list = field(default_factory=list)

    def block(self, rows, u, v):
        self.told.append(rows)
        return u + v, np.array([u.sum()])


def test_one_pass_serves_several_matrices():
    data, step = observed(weight=True), Both()
    workspace = data.open()
    U, V = np.arange(12.0).reshape(SHAPE), np.ones(SHAPE)
    sums, adjoint = workspace.sweep(step, [Point(U), Point(V)])
    assert len(step.told) == (9 if data.block_rows == 7 else 1)
    np.testing.assert_array_equal(np.concatenate([rows.y for rows in step.told]), data.y)
    np.testing.assert_array_equal(np.concatenate([rows.s for rows in step.told]), data.weight)
    assert workspace.rows_read == data.n
    assert sums[0] == pytest.approx(data.apply(U).sum())
    np.testing.assert_allclose(adjoint, data.adjoint(data.apply(U + V)), rtol=1e-13)


@pytest.mark.parametrize("weight", [False, True], ids=["plain", "weighted"])
def test_mean_row_and_samples(weight):
    data = observed(weight=weight)
    s = np.broadcast_to(data.rows(slice(None)).s, (data.n,))
    np.testing.assert_allclose(data.column_stats.mean, data.adjoint(s), rtol=1e-14)
    singles = [data.representative(np.array([i])).column_stats.mean for i in range(data.n)]
    np.testing.assert_allclose(np.mean(singles, axis=0), data.column_stats.mean, rtol=1e-12)
    workspace, x = data.open(), Point(np.ones(SHAPE))
    workspace.sweep(AsResidual(), [x])
    assert workspace.rows_read == data.n
    part = workspace.sample(2, np.random.default_rng(0))
    part.sweep(FormPredictions(), [x])
    assert part.data.n == 2
    assert workspace.rows_read == data.n + 2


def test_one_prediction_each():
    data = observed()
    assert data.shape(()) == SHAPE
    with pytest.raises(ValueError, match=r"one prediction each; the loss asks for 3\."):
        data.shape((3,))
