"""The data of the recorded problems: small, seeded, and the same on every machine."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp

from projfree import Entries, as_data

N, D, K = 90, 7, 3
SHAPE = (12, 9)  # of the matrices to complete
RNG = np.random.default_rng(14)
X = RNG.standard_normal((N, D)) * np.linspace(2.0, 0.3, D)
U = X @ np.array([1.0, -2.0, 0.5, 0.0, 0.3, 0.0, -1.0])
Y = U + RNG.standard_normal(N)
SIGNS = np.where(Y + 0.5 > 0, 1.0, -1.0)
MANY = X @ RNG.standard_normal((D, K)) + RNG.standard_normal((N, K)) + np.array([0.5, -1.0, 2.0])
MANY_SIGNS = np.where(MANY > 0, 1.0, -1.0)
CLASSES = np.argmax(MANY + RNG.gumbel(size=(N, K)), axis=1)
COUNTS, AMOUNTS = np.floor(np.exp(0.4 * U)), np.exp(0.4 * MANY)
WEIGHT = RNG.uniform(0.2, 2.0, N)
TASK = np.arange(N) % K
HOLES = sp.csr_array(np.where(RNG.uniform(size=X.shape) < 0.4, X, 0.0))
SHIFTED = X * np.array([1.0, 50.0, 1.0, 0.02, 1.0, 1.0, 3.0]) + np.array([0.0, 7.0, 0.0, 1.0, 0.0, -2.0, 0.0])


def ratings(count: int = 70):
    """Places and values of observed entries of a matrix of rank two with noise."""
    rng = np.random.default_rng(15)
    flat = rng.choice(SHAPE[0] * SHAPE[1], count, replace=False)
    rows, cols = flat // SHAPE[1], flat % SHAPE[1]
    M = 3.0 + rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1]))
    return rows, cols, (M + 0.3 * rng.standard_normal(SHAPE))[rows, cols]


def entries(factored: bool, signs: bool = False, weighted: bool = False):
    """The ratings as data."""
    rows, cols, y = ratings()
    weight = np.random.default_rng(16).uniform(0.5, 2.0, len(y)) if weighted else None
    return as_data(Entries(rows, cols, SHAPE, factored=factored), np.where(y > 3.0, 1.0, -1.0) if signs else y, weight)


@functools.cache
def large():
    """A table that is large enough for compiled passes, with numbers, signs and classes to predict."""
    rng = np.random.default_rng(17)
    table = rng.standard_normal((540_001, 16))  # 69 MB
    u = table[:, :4] + 0.1 * rng.standard_normal((len(table), 4))
    return table, u[:, 0] + 1.0, np.where(u[:, 0] + u[:, 1] > 0.3, 1.0, -1.0), np.argmax(u, axis=1)


@functools.cache
def large_sparse():
    """A sparse table that is large enough for compiled passes, and signs."""
    rng = np.random.default_rng(18)
    n, d, each = 120_000, 400, 50  # 72 MB
    columns = np.sort(np.argsort(rng.random((n // 100, d)), axis=1)[:, :each], axis=1)  # no column twice in a row
    columns = np.tile(columns, (100, 1)).astype(np.int32).ravel()
    table = sp.csr_array((rng.standard_normal(n * each), columns, np.arange(0, n * each + 1, each)), shape=(n, d))
    return table, np.where(table @ rng.standard_normal(d) > 0.5, 1.0, -1.0)
