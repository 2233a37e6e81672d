"""Passes to compile, and their comparison with NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from projfree.data import DenseData
from projfree.data import rows as layout
from projfree.data.rows import Blocks, FormPredictions, Pass, compiled
from projfree.losses import (
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
)
from projfree.objectives.row_steps import TangentSums

N, D, ROWS = 2_101, 11, 1_024  # no multiple of any tile, and three blocks
CUT = Blocks(N, ROWS)
BLOCKS = CUT.count
TOL = 1e-13
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, D))
WEIGHT = RNG.uniform(size=N) / N
ELEMENTWISE = [
    Squared(),
    Logistic(),
    SquaredSigmoid(),
    BiWeight(0.7),
    Huber(0.8),
    SquaredHinge(),
    Quantile(0.7, 0.4),
    Poisson(),
    Gamma(),
]
THIN = X * (X > 0.3)
STORAGES = {
    "C": X,
    "F": np.asfortranarray(X),
    "C single": X.astype(np.float32),
    "F single": np.asfortranarray(X.astype(np.float32)),
    "CSR": sp.csr_array(THIN),
    "CSR long": sp.csr_array(THIN),
    "CSR single": sp.csr_array(THIN.astype(np.float32)),
}
STORAGES["CSR long"].indices = STORAGES["CSR long"].indices.astype(np.int64)
STORAGES["CSR long"].indptr = STORAGES["CSR long"].indptr.astype(np.int64)


@dataclass
class Case:
    """A pass with everything that it may have, or nothing."""

    loss: Loss
    k: int = 0
    weighted: bool = True
    intercepts: bool = True
    points: int = 3
    m: int = 2
    known: bool = True
    offsets: bool = True
    size: float = 1.0

    def build(self, step=TangentSums, seed=0):
        rng = np.random.default_rng(seed)
        outputs = (self.k,) if self.k else ()
        b = tuple(rng.standard_normal(outputs) if self.intercepts else None for _ in range(self.points))
        own = FormPredictions() if step is FormPredictions else step(self.loss, b)
        sources = [j % self.m if self.m else None for j in range(self.points)]
        if self.known:
            sources[0] = rng.standard_normal((N, *outputs))
        if self.points > 1:
            sources[1] = None
        data = DenseData(X, np.zeros(N), WEIGHT if self.weighted else None)
        data.y = self.targets(rng)
        return Pass(
            own,
            data,
            tuple(self.size * rng.standard_normal((D, *outputs)) for _ in range(self.m)),
            tuple(sources),
            tuple(np.full((N, *outputs), np.nan) if j != 1 else None for j in range(self.points)),
            outputs,
            rng.standard_normal((self.m, *outputs)) if self.offsets else None,
        )

    def targets(self, rng):
        if self.loss.coupled:
            return np.concatenate([np.arange(self.k), rng.integers(0, self.k, N - self.k)])
        y = rng.standard_normal((N, self.k) if self.k else N)
        y = np.abs(y) + 0.1 if isinstance(self.loss, Poisson | Gamma) else y
        return np.where(y > 0, 1.0, -1.0) if self.loss.labels else y


def in_numpy(pass_, table):
    """Sums, adjoint, kept images, and the sums of the absolute terms of the adjoint."""
    A = table.toarray() if sp.issparse(table) else table
    A = A.astype(np.float64)
    residual, sums = pass_(slice(0, N), *(A @ w for w in pass_.vectors))
    kept = [None if store is None else store.copy() for store in pass_.keep]
    if residual is None:
        return sums, None, kept, None
    return sums, A.T @ residual, kept, np.abs(A).T @ np.abs(residual)


def prepare(pass_):
    """The pass in compiled code, whatever the size of the table."""
    return compiled(pass_, D, CUT)


def work_on(prepared, table):
    return prepared.over(table, 0)


def agrees(pass_, table):
    sums, gradient, kept, terms = in_numpy(pass_, table)
    for store in pass_.keep:
        if store is not None:
            store[:] = np.nan
    prepared = prepare(pass_)
    work = work_on(prepared, table)
    for block in range(BLOCKS):
        work(block, block + 1)
    found, adjoint = prepared.total()
    for store, due in zip(pass_.keep, kept, strict=True):
        if store is not None:
            np.testing.assert_allclose(store, due, rtol=0, atol=TOL * np.abs(due).max())
    assert (adjoint is None) == (gradient is None)
    if gradient is not None:
        assert adjoint.shape == gradient.shape
        assert (np.abs(adjoint - gradient) <= 2 * TOL * terms).all()
        k = pass_.outputs[0] if pass_.outputs else 1
        residuals = 0 if pass_.offsets is None else k
        assert len(found) == layout.tangent_size(k, len(pass_.sources)) + residuals
        scale = absolute_terms(pass_, sums, k)
        assert (np.abs(found - sums) <= 2 * TOL * scale).all(), (found - sums) / scale


def absolute_terms(pass_, sums, k):
    """For each sum of a tangent that of the sizes of its terms, or a bound on it."""
    scale = np.abs(sums)
    scale[layout.ALONG] = sums[layout.ALONG_SIZE]
    by_output = layout.SCALARS + np.arange(layout.PER_OUTPUT * k).reshape(layout.PER_OUTPUT, k)
    scale[by_output[layout.SLOPE]] = sums[by_output[layout.SLOPE_SIZE]]
    if pass_.offsets is not None:
        scale[-k:] = sums[by_output[layout.SLOPE_SIZE]]
    s = np.broadcast_to(pass_.data.rows(slice(None)).s, N)
    scale[by_output[layout.MEAN_IMAGE]] = s @ np.abs(pass_.keep[0]).reshape(N, k)
    return scale
