"""Small completion problems."""

from __future__ import annotations

import numpy as np

from projfree import Entries, as_data
from projfree.numerics.projections import project


def entries(m=12, n=9, count=60, seed=0, rank=2, noise=0.3):
    rng = np.random.default_rng(seed)
    flat = rng.choice(m * n, count, replace=False)
    rows, cols = flat // n, flat % n
    M = 3.0 + rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    return rows, cols, M[rows, cols]


def both(rows, cols, y, shape, weight=None):
    """The same data with a dense parameter and with one in factors."""
    return [as_data(Entries(rows, cols, shape, factored=factored), y, weight) for factored in (False, True)]


def predictions(f, now):
    """What factors and offsets predict at the observed entries of an objective."""
    rows, cols = f.data.places
    inner = np.einsum("ij,ij->i", now.left[rows], now.right[cols])
    return f.base + now.shift + now.rows[rows] + now.cols[cols] + inner


def offset_regression(rows, cols, share, shape, ridge):
    """The columns of shift and offsets at the entries, and the matrix that takes residuals to their best offsets."""
    m, n, count = *shape, len(rows)
    A = np.zeros((count, 1 + m + n))
    A[:, 0] = A[np.arange(count), 1 + rows] = A[np.arange(count), 1 + m + cols] = 1.0
    return A, np.linalg.solve(A.T @ (share[:, None] * A) + ridge / count * np.eye(1 + m + n), A.T * share)


def dense_descent(gradient, D, L, p, radius, steps):
    """The minimiser over a Schatten ball by accelerated projected gradients, in coordinates weighted by ``D``."""

    def inside(Y):
        u, v, wt = np.linalg.svd(Y, full_matrices=False)
        return (u * project(v, p, radius)) @ wt if np.linalg.norm(v, p) > radius else Y

    Y, Z, t = np.zeros(D.shape), np.zeros(D.shape), 1.0
    for _ in range(steps):
        new, grown = inside(Z - gradient(Z / D) / D / L), 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        restart = float(((Z - new) * (new - Y)).sum()) > 0.0
        Y, Z, t = (new, new, 1.0) if restart else (new, new + (t - 1.0) / grown * (new - Y), grown)
    return Y / D
