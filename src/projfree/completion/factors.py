"""`Factors`: the low-rank model that sweeps improve and that a fit leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.algebra.lowrank import Factor
from projfree.checks import Array
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.spectra import singular_values

if TYPE_CHECKING:
    from projfree.completion.problem import CompletionProblem

#: Rows that are decomposed at a time.
BLOCK = 4096


@dataclass(frozen=True)
class Factors:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j``; ``sigma`` are the weighted singular values.

    With side information these are of the larger matrix, whose further factors are ``below`` and ``beside``.
    """

    left: Array
    right: Array
    rows: Array
    cols: Array
    shift: float
    base: float
    sigma: Array
    below: Array
    beside: Array

    @classmethod
    def zero(cls, f: CompletionProblem, offsets: Array | None = None) -> Factors:
        """The model without a matrix, with some offsets or none."""
        (m, n), (below, beside) = f.entries.pattern.shape, f.side.extra
        lefts, rights = np.zeros((m + below, 1)), np.zeros((n + beside, 1))
        b = np.zeros(1 + m + n) if offsets is None else offsets
        return cls.of(f, lefts, rights, b, np.zeros(1))

    @classmethod
    def of(cls, f: CompletionProblem, lefts: Array, rights: Array, b: Array, sigma: Array) -> Factors:
        """From the factors of the larger matrix and the offsets of all, of rows and of columns."""
        m, n = f.entries.pattern.shape
        offsets = b[1 : 1 + m], b[1 + m :], float(b[0])
        return cls(lefts[:m], rights[:n], *offsets, f.entries.base, sigma, lefts[m:], rights[n:])

    @classmethod
    def of_point(cls, f: CompletionProblem, x: Point, sigma: Array | None = None) -> Factors:
        """From a point of the problem; without ``sigma`` both factors get the roots of its singular values."""
        w: Any = x.w
        low = w.low if w.low is not None else LowRank(w.shape, ())
        if sigma is None:
            left, sigma, right = low.truncated(1e-9)[:3]
            low = LowRank.of(left * np.sqrt(sigma), right * np.sqrt(sigma))
        (lefts, rights), (m, n) = low.factors(), f.entries.pattern.shape
        b = np.zeros(1 + m + n) if x.intercept is None else x.intercept
        rows, cols = (weights.astype(lefts.dtype)[:, None] for weights in (f.rows, f.cols))
        return cls.of(f, lefts / rows, rights / cols, b, sigma)

    def point(self, f: CompletionProblem) -> Point:
        """The point of a problem, with factors in the precision that they have here."""
        rows, cols = (weights.astype(self.left.dtype)[:, None] for weights in (f.rows, f.cols))
        lefts, rights = self.lefts * rows, self.rights * cols
        terms = ((1.0, Factor(lefts, rights)),) if lefts.shape[1] else ()
        return f.point(LowRank((len(lefts), len(rights)), terms), self.offsets)

    @property
    def offsets(self) -> Array:
        """All offsets as one vector: of all, of rows, of columns."""
        return np.concatenate([[self.shift], self.rows, self.cols])

    @property
    def lefts(self) -> Array:
        """The left factor of the larger matrix."""
        return np.concatenate([self.left, self.below]) if len(self.below) else self.left

    @property
    def rights(self) -> Array:
        """The right factor of the larger matrix."""
        return np.concatenate([self.right, self.beside]) if len(self.beside) else self.right

    def cast(self, kind: Any) -> Factors:
        """The same model with factors in a precision."""
        names = ("left", "right", "below", "beside")
        return replace(self, **{name: getattr(self, name).astype(kind, copy=False) for name in names})

    def exact(self, f: CompletionProblem) -> Factors:
        """The model in double precision, with its singular values to this precision: sweeps know them to their own."""
        left, right = _triangle(self.lefts, f.rows), _triangle(self.rights, f.cols)
        return replace(self.cast(np.float64), sigma=singular_values(left @ right.T))

    def with_offsets(self, b: Array) -> Factors:
        """The same matrix with other offsets."""
        m = len(self.rows)
        return replace(self, shift=float(b[0]), rows=b[1 : 1 + m], cols=b[1 + m :])

    def centred(self, kinds: tuple[bool, bool, bool]) -> Factors:
        """The offset of all takes up what rows and columns share, as their ridge asks for."""
        if not kinds[0]:
            return self
        row = float(self.rows.mean()) if kinds[1] else 0.0
        col = float(self.cols.mean()) if kinds[2] else 0.0
        return replace(self, shift=self.shift + row + col, rows=self.rows - row, cols=self.cols - col)

    def norm(self, p: float) -> float:
        """The weighted Schatten norm."""
        return lp_norm(self.sigma, p)

    def inside(self, p: float, radius: float) -> Factors:
        """The model with its matrix scaled into the ball."""
        norm = self.norm(p)
        if norm <= radius:
            return self
        by = radius / norm
        return replace(self, left=self.left * by, below=self.below * by, sigma=self.sigma * by)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places of the matrix."""
        u = self.base + self.shift + self.rows[rows] + self.cols[cols]
        return np.asarray(u + LowRank.of(self.left, self.right).of_pairs(rows, cols))

    def resized(self, f: CompletionProblem, users: Array | None = None, items: Array | None = None) -> Factors:
        """The model for a problem with other side information, or where users and items have moved to new places.

        Lines that are new are zero; what the model knows of features stays.
        """
        (m, n), (below, beside) = f.entries.pattern.shape, f.side.extra
        users = np.arange(m) if users is None else users
        items = np.arange(n) if items is None else items
        return replace(
            self,
            left=_placed(self.left, users, m),
            right=_placed(self.right, items, n),
            rows=_placed(self.rows, users, m),
            cols=_placed(self.cols, items, n),
            below=_moved(self.below, users, f.side.counts[1], below),
            beside=_moved(self.beside, items, f.side.counts[0], beside),
        )


def _moved(far: Array, at: Array, first: int, count: int) -> Array:
    """The ``first`` lines are those of B, at new places if there were some; features are behind them."""
    features = min(count - first, len(far))
    known = far[: len(far) - features]
    head = _placed(known, at, first) if first and len(known) == len(at) else np.zeros((first, far.shape[1]), far.dtype)
    tail = np.zeros((count - first - features, far.shape[1]), far.dtype)
    return np.concatenate([head, tail, far[len(far) - features :]])


def _placed(values: Array, at: Array, count: int) -> Array:
    """The values at places among ``count``, zeros elsewhere."""
    out = np.zeros((count, *values.shape[1:]), values.dtype)
    out[at] = values
    return out


def _triangle(factor: Array, weights: Array) -> Array:
    """The triangular factor of a QR decomposition of the weighted rows, a block of rows at a time."""
    k = factor.shape[1]
    r = np.zeros((k, k))
    for start in range(0, len(factor), BLOCK):
        rows = factor[start : start + BLOCK].astype(np.float64) * weights[start : start + BLOCK, None]
        r = np.asarray(np.linalg.qr(np.concatenate([r, rows]), mode="r"))
    return r
