r"""`UnpenalisedBlock`: free columns and the intercept of least squares, eliminated before a fit.

With F the free columns and a column of ones, :math:`\min_\gamma \|y - Xw - F\gamma\|` is the norm of
:math:`P(y - Xw)`, where P projects onto the complement of the span of F (Frisch and Waugh). Residuals of features and
targets are formed with an orthonormal basis of that span, and each comes with a bound on its distance from the exact
projection, which the lower bound of a fit is charged with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array

#: A column that others explain up to this part of it is taken for a combination of them: its residual is rounding.
EXPLAINED = 1e-12


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of columns from the block, their coordinates in its basis, and the errors of each column.

    Root mean squares: ``left`` bounds the part of a column that still lies in the span of the block, ``error`` all
    other differences between it and the exact residual.
    """

    rest: Array
    along: Array
    error: Array
    left: Array


class UnpenalisedBlock:
    """An orthonormal basis, in the weighted inner product, of the free columns and the intercept.

    A free column that the ones before it explain up to rounding gets the coefficient zero, as in R's `lm`.

    Parameters
    ----------
    F : array of shape (n, k)
        The free columns.
    weight : array of shape (n,), optional
        The sample weights.
    intercept : bool
        Whether a column of ones belongs to the block. It comes first, so that all others are centred.
    """

    def __init__(self, F: Array, weight: Array | None, intercept: bool) -> None:
        n, k = F.shape
        s = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
        self.share, self.intercept, self.columns = s / s.sum(), intercept, k
        # The ones are exact: subtracting a multiple of them rounds an entry relative to the difference alone.
        self.basis, self.triangle, self.kept = np.ones((n, int(intercept))), np.eye(int(intercept)), []
        self.angles = np.zeros(int(intercept))
        for j in range(k):
            found = self.residuals(F[:, j])
            size = self._sizes(found.rest)
            if not size:
                continue
            # The new vector lies in the span up to its own rounding and that of the vectors it was made from.
            angle = (found.error + np.linalg.norm(self.angles * found.along)) / size
            self.basis = np.column_stack([self.basis, found.rest / size])
            grown = np.eye(len(self.triangle) + 1)
            grown[:-1, :-1], grown[:-1, -1], grown[-1, -1] = self.triangle, found.along, size
            self.triangle, self.angles = grown, np.append(self.angles, angle)
            self.kept.append(j)

    def residuals(self, Z: Any) -> Residuals:
        """What is left of each column of ``Z`` after a regression on the block."""
        rest = np.asarray(Z, dtype=np.float64)
        along: Array = np.zeros((self.basis.shape[1], *rest.shape[1:]))
        ones, others = slice(0, int(self.intercept)), slice(int(self.intercept), None)
        rest, along = self._reduced(rest, along, ones)
        centred = self._sizes(rest)
        for part in (others, ones, others):  # twice is enough: Giraud, Langou and Rozloznik (2005)
            rest, along = self._reduced(rest, along, part)
        gone = self._sizes(rest) <= EXPLAINED * centred
        theta = float(np.linalg.norm(self.angles))
        n, k = self.basis.shape
        # An entry is rounded a few times for each vector of the basis, relatively to the centred column; the basis
        # leaves the span by the angle theta; and of a column that is set to zero, all that was left is missing.
        error = (UNIT * 8.0 * (k + 1) + 2.0 * theta + np.where(gone, EXPLAINED, 0.0)) * centred
        left = (UNIT * 3.0 * n + theta) * centred  # inner products of n terms
        return Residuals(np.where(gone, 0.0, rest), along, error, left)

    def _reduced(self, rest: Array, along: Array, part: slice) -> tuple[Array, Array]:
        """One round of projection with a part of the basis."""
        Q = self.basis[:, part]
        moved = (Q.T * self.share) @ rest
        along = along.copy()
        along[part] += moved
        return rest - Q @ moved, along

    def _sizes(self, Z: Array) -> Any:
        """The root of the weighted mean square of each column."""
        return np.sqrt(np.tensordot(self.share, Z * Z, axes=1))

    def coefficients(self, along: Array) -> tuple[Array, Array]:
        """Coefficients of the free columns, and the intercept, from coordinates in the basis."""
        from scipy.linalg import solve_triangular

        found = solve_triangular(self.triangle, along) if len(along) else along
        constant = int(self.intercept)
        coef = np.zeros((self.columns, *along.shape[1:]))
        coef[self.kept] = found[constant:]
        return coef, found[0] if constant else np.zeros(along.shape[1:])
