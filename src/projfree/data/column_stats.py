"""`ColumnStats`: statistics of the columns and rows of a table, computed in one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse

#: Smallest normal number. Squares below it underflow, so it is added to sums of squares that serve as upper bounds.
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class TableErrors:
    """Bounds on the errors of targets and features that are residuals of a regression on other columns.

    All are root mean squares over the rows, of targets and of features (Frobenius norm). ``targets`` and ``features``
    are the errors outside the span of the other columns, which change a least-squares objective to first order;
    ``targets_left`` and ``features_left`` are those within it, orthogonal to the exact residuals, which change it to
    second order.
    """

    targets: float
    features: float
    targets_left: float
    features_left: float


#: The errors of a table that is exact.
EXACT = TableErrors(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class ColumnStats:
    """Statistics of the columns and rows of A, with row weights s.

    For a part of the rows they are sums over the part; `merge` combines two parts.

    Attributes
    ----------
    n : int
        Number of rows.
    mean : array
        Weighted sum of the rows, which is the mean if the weights sum to one.
    weight : float
        Sum of the weights.
    spread, squares : array
        Weighted sum of squares of each column, about its mean and about zero.
    largest : array
        Upper bound on the absolute values of each column.
    row_sums : array
        Row sums of :math:`|A|^T S |A|`; the largest one bounds the eigenvalues of the covariance.
    stored : array
        Number of stored entries of each column.
    checksum : array
        Sum of each column weighted by the row numbers, which changes if rows are reordered.
    row_norm, mean_square : float
        Upper bound on the Euclidean norms of the rows, and weighted mean of their squares.
    terms : int
        Number of products in a prediction; zero if a prediction is an entry of the parameter.
    errors : TableErrors
        Bounds on the errors of the table itself.
    scaling : tuple of array or None
        The centre subtracted from the columns and the scale they were divided by.
    """

    n: int
    mean: Any
    weight: float
    spread: Array
    squares: Array
    largest: Array
    row_sums: Array
    stored: Array
    checksum: Array
    row_norm: float
    mean_square: float
    terms: int
    errors: TableErrors = EXACT
    scaling: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, table: Any, s: Array | float, first: int, n: int) -> ColumnStats:
        """Compute the statistics of some rows with weights ``s``; the first of them is row ``first`` of ``n``.

        ``row_norm`` is not finite if an entry, or its square, is not finite.
        """
        rows, d = table.shape
        s, one, sparse = np.full(rows, s) if isinstance(s, float) else s, np.ones(d), is_sparse(table)
        with np.errstate(over="ignore", invalid="ignore"):
            formed = abs(table)  # one buffer: allocating memory costs more than the sums
            x, z = (table.data, formed.data) if sparse else (table, formed)
            row_sums, largest = (s * (formed @ one)) @ formed, np.zeros(d)
            if sparse:
                np.maximum.at(largest, table.indices, z)
            else:
                np.maximum.reduce(z, axis=0, out=largest)
            np.multiply(z, z, out=z)
            squares, lengths = s @ formed, formed @ one + d * TINY
            mean, weight, stored = s @ table, float(s.sum()), np.full(d, rows)
            centre = mean / weight if weight > 0.0 else np.zeros(d)
            np.subtract(x, centre[table.indices] if sparse else centre, out=z)
            np.multiply(z, z, out=z)
            spread = s @ formed
            if sparse:  # add the entries that are not stored, which are zero
                z[:] = 1.0
                stored, absent = np.bincount(table.indices, minlength=d), weight - s @ formed
                spread += np.where(stored == rows, 0.0, np.maximum(absent, 0.0)) * centre**2
            checksum = np.arange(first + 1, first + rows + 1) / n @ table
            return cls(
                *(rows, mean, weight, spread, squares, largest, row_sums, stored, checksum),
                *(float(np.sqrt(np.maximum.reduce(lengths))), float(s @ lengths), d),
            )

    def merge(self, other: ColumnStats) -> ColumnStats:
        """Return the statistics of these rows followed by those of ``other`` (Chan, Golub and LeVeque, 1983)."""
        spread, both = self.spread + other.spread, self.weight * other.weight
        if both > 0.0:
            spread += (self.mean / self.weight - other.mean / other.weight) ** 2 * (both / (self.weight + other.weight))
        added = ("n", "mean", "weight", "squares", "row_sums", "stored", "checksum", "mean_square")
        return replace(
            self,
            spread=spread,
            largest=np.maximum(self.largest, other.largest),
            row_norm=max(self.row_norm, other.row_norm),
            **{name: getattr(self, name) + getattr(other, name) for name in added},
        )

    def scaled(self, shift: Array, scale: Array) -> ColumnStats:
        """Return the statistics of the features ``(x - shift) / scale``, without a pass over the data.

        ``largest``, ``squares`` and the row norms are bounds for :math:`(|x| + |shift|) / scale`: they also bound the
        terms that cancel in products with the features, so that the rounding allowance of a certificate stays valid.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            away = np.abs(shift) / scale
            squares, largest = (self.root_mean_square / scale + away) ** 2 + TINY, self.largest / scale + away
            norm = min(_norm(largest), self.row_norm / float(scale.min()) + _norm(away))
            mean_square = float(squares.sum())
        if not np.isfinite([norm, mean_square]).all():
            raise ValueError(f"`scale` is too small for the features, down to {scale.min():g}: scaled rows overflow.")
        return replace(
            self,
            mean=(self.mean - shift) / scale,
            spread=self.spread / scale**2,
            squares=squares,
            largest=largest,
            row_sums=self.row_sums / scale**2,
            row_norm=norm,
            mean_square=mean_square,
            scaling=(shift, scale),
        )

    def raw(self, w: Array, intercept: Any = None) -> tuple[Array, Array]:
        """Convert coefficients and intercept to the units of the unscaled table; see `scaled`."""
        w, intercept = np.asarray(w, dtype=np.float64), np.asarray(0.0 if intercept is None else intercept)
        if self.scaling is None:
            return w, intercept
        inner = (w.T / self.scaling[1]).T
        return inner, intercept - self.scaling[0] @ inner

    def reshaped(self, shape: tuple[int, ...], terms: int) -> ColumnStats:
        """Return the statistics in the shape of the parameter; ``terms`` is the number of products in a prediction."""
        names = ("mean", "spread", "squares", "largest", "row_sums", "stored", "checksum")
        return replace(self, terms=terms, **{name: getattr(self, name).reshape(shape) for name in names})

    @property
    def root_mean_square(self) -> Array:
        """The root mean square of each column, or an upper bound if squares underflow."""
        return np.minimum(np.sqrt(self.squares + TINY), self.largest)

    @property
    def centre(self) -> Array:
        """The column means, with zero (unscaled) for columns of which at most half the entries are stored.

        If a share p <= 1/2 of a sparse column is nonzero, the square of its mean is at most p times its mean square
        (Cauchy-Schwarz), so no cancellation occurs without centring, and the column stays sparse.
        """
        zero = 0.0 if self.scaling is None else -self.scaling[0] / self.scaling[1]  # scaled value of a zero
        return np.where(2 * self.stored > self.n, self.mean, zero)

    def deviation(self, units: float, constant: float) -> Array:
        """Return the standard deviation of each column, or ``constant`` for columns that are constant up to rounding.

        ``units`` is the error bound of a sum over the rows in units of roundoff.
        """
        found = np.sqrt(self.spread)
        return np.where(found <= UNIT * units * np.hypot(self.mean, found), constant, found)


def _norm(x: Array) -> float:
    """Return the Euclidean norm, or an upper bound if squares underflow."""
    return float(np.sqrt(np.sum(x * x + TINY)))
