"""`Offsets`: the linear map from offsets of all, of rows and of columns to the observed entries."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.data.factored_entries import FactoredEntriesData

#: Conjugate gradient steps of one solve.
MOST_STEPS = 200


class Offsets:
    """Vectors ``(b_0, rows, columns)``; kinds that are switched off stay zero.

    Parameters
    ----------
    data : FactoredEntriesData
        Whose entries.
    kinds : tuple of bool
        Whether there is an offset for all, for each row, for each column.
    kappa : float
        The ridge.
    """

    def __init__(self, data: FactoredEntriesData, kinds: tuple[bool, bool, bool], kappa: float) -> None:
        at, place = data.pattern, data.place
        self.rows = at.rows if place is None else at.rows[place]
        self.cols = at.indices if place is None else at.indices[place]
        self.shape, self.kinds, self.kappa = (at.shape[0], at.shape[1]), kinds, kappa
        #: The largest number of terms in a sum over one offset's entries.
        self.most = float(len(self.rows) if kinds[0] else max(self._count(self.rows), self._count(self.cols)))

    @staticmethod
    def _count(index: Array) -> int:
        return int(np.bincount(index).max())

    def zero(self) -> Array:
        """No offsets."""
        return np.zeros(1 + self.shape[0] + self.shape[1])

    def apply(self, b: Array) -> Array:
        """The offset of each entry."""
        out = np.full(len(self.rows), b[0])
        if self.kinds[1]:
            out += b[1 : 1 + self.shape[0]][self.rows]
        if self.kinds[2]:
            out += b[1 + self.shape[0] :][self.cols]
        return out

    def adjoint(self, r: Array) -> Array:
        """The sums of ``r`` over all entries, those of each row and those of each column."""
        out, (m, n) = self.zero(), self.shape
        if self.kinds[0]:
            out[0] = r.sum()
        if self.kinds[1]:
            out[1 : 1 + m] = np.bincount(self.rows, weights=r, minlength=m)
        if self.kinds[2]:
            out[1 + m :] = np.bincount(self.cols, weights=r, minlength=n)
        return out

    def solve(self, slope: Array, h: Array, tolerance: float) -> Array:
        """Newton's step for the curvatures ``h`` of the entries: conjugate gradients, scaled by the diagonal."""
        scale = 1.0 / (self.adjoint(h) + self.kappa)
        x, r = np.zeros_like(slope), slope.copy()
        z = scale * r
        d, size = z.copy(), float(r @ z)
        first = size
        for _ in range(MOST_STEPS):
            if size <= tolerance**2 * first or size == 0.0:
                break
            applied = self.adjoint(h * self.apply(d)) + self.kappa * d
            alpha = size / float(d @ applied)
            x += alpha * d
            r -= alpha * applied
            z = scale * r
            size, old = float(r @ z), size
            d = z + (size / old) * d
        return x
