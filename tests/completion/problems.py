"""Small completion problems."""

from __future__ import annotations

import numpy as np

from projfree import Entries, as_data
from projfree.algebra import OnPattern, Pattern
from projfree.completion.problem import CompletionProblem, Settings
from projfree.completion.ratings import Ratings
from projfree.losses import Squared
from projfree.numerics.projections import project

SHAPE = (9, 7)
#: With a first row and a last column without ratings, implicit features or none, features of both sides or one.
CASES = [(0.7, (True, True)), (0.7, (True, False)), (0.7, (False, False)), (0.0, (True, True)), (0.0, (False, False))]


def entries(m=12, n=9, count=60, seed=0, rank=2, noise=0.3):
    rng = np.random.default_rng(seed)
    flat = rng.choice(m * n, count, replace=False)
    rows, cols = flat // n, flat % n
    M = 3.0 + rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    return rows, cols, M[rows, cols]


def both(rows, cols, y, shape, weight=None):
    """The same data with a dense parameter and with one in factors."""
    return [as_data(Entries(rows, cols, shape, factored=factored), y, weight) for factored in (False, True)]


def problem(implicit=0.7, sides=(True, True), loss=Squared(), p=1.0, kinds=(True, True, True), weighted=True):  # noqa: B008 - a loss is frozen
    """A problem with features of width 3 and 2."""
    rng = np.random.default_rng(0)
    rows, cols, y = entries(*SHAPE, 30, seed=0)
    there = (rows > 0) & (cols < SHAPE[1] - 1)
    rows, cols, y = rows[there], cols[there], y[there]
    y = np.where(y > 3.0, 1.0, -1.0) if loss.labels else y
    tables = [full(rng.standard_normal((side, width))) for side, width in zip(SHAPE, (3, 2), strict=True)]
    on = tuple(table if use else None for table, use in zip(tables, sides, strict=True))
    base, weight = 0.0 if loss.labels else float(y.mean()), rng.random(len(y)) + 0.2 if weighted else None
    settings = Settings(loss, p=p, ridge=2.0, kinds=kinds, base=base, implicit=implicit)
    return CompletionProblem(Ratings.of(rows, cols, y, weight, SHAPE), settings, on)


def full(table):
    rows, cols = np.divmod(np.arange(table.size), table.shape[1])
    return OnPattern(Pattern.of(rows, cols, table.shape)[0], table.ravel())


def dense_parts(f):
    """What S and T should be, and the weights of the lines beyond the matrix."""
    B = OnPattern(f.entries.pattern, np.ones(f.n)).toarray()
    users, items = (None if table is None else table.toarray() for table in f.features)
    right = [B] * (f.implicit > 0) + [users] * (users is not None) + [np.zeros((SHAPE[0], 0))]
    low = [B] * (f.implicit > 0) + [items.T if items is not None else np.zeros((0, SHAPE[1]))]
    return np.hstack(right), np.vstack(low), f.side.weights[0], f.side.weights[1]


def dense_value(f, Y, b):
    """The objective by its formula, with offsets as given."""
    (m, n), e, M = SHAPE, f.entries, Y / f.rows[:, None] / f.cols
    rows, cols = e.pattern.rows, e.pattern.indices
    u = e.base + b[0] + b[1 : 1 + m][rows] + b[1 + m :][cols] + M[rows, cols]
    right, low, q, r = dense_parts(f)
    loss = np.sum(e.s * e.loss.value(u, e.y)) + 0.5 * e.loss.smoothness * e.ridge / f.n * (b @ b)
    return loss + (q * (right - M[:m, n:]) ** 2).sum() + (r[:, None] * (low - M[m:, :n]) ** 2).sum()


def dense_minimum(f, radius, steps=500):
    """The minimum for squares by accelerated projected gradients on dense matrices."""
    (m, n), e, D = SHAPE, f.entries, np.multiply.outer(f.rows, f.cols)
    rows, cols, share = e.pattern.rows, e.pattern.indices, np.broadcast_to(e.s, f.n)
    right, low, q, r = dense_parts(f)
    A = np.zeros((f.n, 1 + m + n))
    A[:, 0] = A[np.arange(f.n), 1 + rows] = A[np.arange(f.n), 1 + m + cols] = 1.0
    fit = np.linalg.solve(A.T @ (share[:, None] * A) + e.ridge / f.n * np.eye(1 + m + n), A.T * share)
    L = 2.0 * max(q.max(initial=0.0), r.max(initial=0.0), share.max()) / D.min() ** 2

    def gradient(M):
        rest = e.y - e.base - M[rows, cols]
        out = np.zeros(M.shape)
        out[rows, cols] = -2.0 * share * (rest - A @ (fit @ rest))
        out[:m, n:], out[m:, :n] = 2.0 * q * (M[:m, n:] - right), 2.0 * r[:, None] * (M[m:, :n] - low)
        return out

    def inside(Y):
        u, v, wt = np.linalg.svd(Y, full_matrices=False)
        return (u * project(v, f.p, radius)) @ wt if np.linalg.norm(v, f.p) > radius else Y

    Y, Z, t = np.zeros(D.shape), np.zeros(D.shape), 1.0
    for _ in range(steps):
        new, grown = inside(Z - gradient(Z / D) / D / L), 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        restart = float(((Z - new) * (new - Y)).sum()) > 0.0
        Y, Z, t = (new, new, 1.0) if restart else (new, new + (t - 1.0) / grown * (new - Y), grown)
    M = Y / D
    return dense_value(f, Y, fit @ (e.y - e.base - M[rows, cols]))
