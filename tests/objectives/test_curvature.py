"""Hessians are sums over blocks of rows: they agree with the plain sum, and take no memory for all rows at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import Logistic, Objective, Softmax, Squared, as_data
from projfree.data import gram as moments
from projfree.data.rows import Rows
from projfree.objectives.hull import HullSums
from projfree.testing.sealed import SealedData

N, D, K = 701, 4, 5
RNG = np.random.default_rng(0)
X, WEIGHT = RNG.standard_normal((N, D)) + 0.5, RNG.uniform(size=N)
CLASSES = np.concatenate([np.arange(K), RNG.integers(0, K, N - K)])


def plain(f, w):
    """The Hessian from the curvature of all rows at once, the intercept eliminated."""
    x = f.evaluate(f.point(w), tangent=False)
    u = f.data.apply(w).reshape(N, -1)
    full = u if x.intercept is None else u + x.intercept
    k = full.shape[1]
    bend = f.loss.second(full if f.outputs else full[:, 0], f.data.y).reshape(N, k, -1)
    bend = bend if f.loss.coupled else bend[:, :, :1] * np.eye(k)
    A = X if x.intercept is None else np.column_stack([X, np.ones(N)])
    joint = np.einsum("i,iab,ic,id->cadb", np.broadcast_to(f.data.rows(slice(None)).s, N), bend, A, A)
    size = A.shape[1] * k
    joint = joint.reshape(size, size)
    H, cross, own = joint[: D * k, : D * k], joint[: D * k, D * k :], joint[D * k :, D * k :]
    return H if x.intercept is None else H - cross @ np.linalg.pinv(own, rcond=1e-12) @ cross.T


@pytest.mark.parametrize("block", [1 << 24, 1 << 17, 1], ids=["one block", "some blocks", "short blocks"])
@pytest.mark.parametrize("table", [X, sp.csr_array(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Softmax(), Logistic(), Squared()], ids=repr)
def test_blocks_add_up_to_the_plain_sum(monkeypatch, loss, intercept, table, block):
    monkeypatch.setattr(moments, "CHUNK_BYTES", block // 2)
    y = {"Softmax": CLASSES, "Logistic": np.sign(X[:, 0] + WEIGHT - 1.0)}.get(type(loss).__name__, X[:, :3] ** 2)
    f = Objective(loss, as_data(table, y, WEIGHT), fit_intercept=intercept)
    w = 0.3 * np.random.default_rng(1).standard_normal(f.shape)
    found, due = f.hessian(f.point(w)).matrix, plain(f, w)
    np.testing.assert_allclose(found, due, rtol=0, atol=1e-13 * np.abs(due).max())
    np.testing.assert_array_equal(found, found.T)


def test_threads_do_not_show(monkeypatch):
    monkeypatch.setattr(moments, "CHUNK_BYTES", 1 << 15)
    found = []
    for threads in (1, 3):
        f = Objective(Softmax(), as_data(X, CLASSES, WEIGHT, threads=threads), fit_intercept=True)
        found.append(f.hessian(f.point(np.full(f.shape, 0.1))).matrix.tobytes())
    assert found[0] == found[1]


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def many():
    """Sixty classes: the second derivatives of all rows take 230 MB."""
    n, k = 8_000, 60
    rng = np.random.default_rng(2)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return Objective(Softmax(), as_data(rng.standard_normal((n, 3)), y), fit_intercept=True)


def test_a_hessian_of_many_classes_takes_little_memory(many):
    x = many.point(np.full(many.shape, 0.1))
    many.evaluate(x)
    assert peak(lambda: many.hessian(x).matrix) < 60e6


def test_a_hull_of_many_classes_takes_little_memory(many):
    u = many.data.apply(np.full(many.shape, 0.1))
    rows = Rows(many.data.y, many.data.rows(slice(None)).s)
    step = HullSums(many.loss, (0.5, 0.1), np.zeros(60))
    images = u, 2.0 * u, u + 1.0
    assert peak(lambda: step.block(rows, *images)) < 80e6


STORED = {
    "dense": lambda X, y, s: as_data(X, y, s),
    "sparse": lambda X, y, s: as_data(sp.csr_array(X * (np.abs(X) > 0.5)), y, s),
    "scaled": lambda X, y, s: as_data(X, y, s, centre=True, scale=True),
    "sealed": lambda X, y, s: SealedData(X, y, s),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("loss", [Logistic(), Softmax()], ids=repr)
def test_the_intercept_follows_the_parameter_as_the_curvature_says(stored, loss):
    rng = np.random.default_rng(4)
    X, s = rng.standard_normal((50, 4)) + np.array([0.0, 2.0, -30.0, 0.5]), rng.random(50)
    y = np.arange(50) % 3 if isinstance(loss, Softmax) else np.where(np.arange(50) % 3, 1.0, -1.0)
    f = Objective(loss, STORED[stored](X, y, s), fit_intercept=True)
    w, v = 0.1 * rng.standard_normal(f.shape), rng.standard_normal(f.shape)
    H = f.hessian(f.evaluate(f.point(w)).point)
    follow, _ = H.intercept_response
    before, after = (f.evaluate(f.point(w + t * v)).intercept for t in (-1e-5, 1e-5))
    moved = (after - before) / 2e-5
    np.testing.assert_allclose(moved - moved.mean(), _less_mean(-follow.T @ v.ravel()), atol=1e-5)
    if not isinstance(loss, Softmax):  # which does not see a common shift
        np.testing.assert_allclose(moved, np.squeeze(-follow.T @ v.ravel()), rtol=1e-5)
    np.testing.assert_array_equal(H.matrix, f.hessian(f.point(w)).matrix)


def _less_mean(x):
    return x - x.mean() if x.size > 1 else 0.0
