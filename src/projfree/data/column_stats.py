"""`ColumnStats`: what objectives know about the columns and rows of a table, from one read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse

#: The smallest normal number: squares below it are lost, so that it is added to sums of them that bound something.
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class TableErrors:
    """How far residuals of targets and features from other columns are from the exact ones.

    Root mean squares over the rows, of targets and of features in the Frobenius norm: of all errors but those within
    the span of the other columns, and of what is left within it. Least squares feel the first as they are, and the
    second, at a right angle to the exact residuals, only by their squares.
    """

    targets: float
    features: float
    targets_left: float
    features_left: float


#: Those of a table that stands for itself.
EXACT = TableErrors(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class ColumnStats:
    r"""Statistics of the columns of A and of its rows, for weights s of the rows.

    Those of a part of the rows are sums over the part; `merge` adds up two parts.

    ``mean`` is the weighted sum of the rows, of all rows their mean; ``weight`` the sum of the weights; ``spread`` and
    ``squares`` are the weighted sums of squares of each column, about the mean of the rows and about zero; ``largest``
    bounds the size of the entries of each column. The largest of ``row_sums``, the sums of the rows of
    :math:`|A|^T S |A|`, bounds the eigenvalues of the covariance. ``stored`` counts the stored entries of each column,
    and ``checksum``, sums of entries times the numbers of their rows, tells rows in another order. ``row_norm`` bounds
    the Euclidean norms of rows and ``mean_square`` the weighted mean of their squares. A prediction is a sum of
    ``terms`` products, zero where it is an entry of the parameter. ``errors`` say how far the table may be from the one
    that it stands for, and ``scaling`` what was subtracted from its columns, and what they were divided by then.
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
        """The statistics of some rows with weights ``s``; the first one is row ``first`` of ``n``.

        Its ``row_norm`` is not finite where an entry, or the square of one, is not.
        """
        rows, d = table.shape
        s, one, sparse = np.full(rows, s) if isinstance(s, float) else s, np.ones(d), is_sparse(table)
        with np.errstate(over="ignore", invalid="ignore"):
            formed = abs(table)  # for all that is formed of the entries z: fresh memory costs more than the sums
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
            if sparse:  # and the weight of the rows where a column stores nothing
                z[:] = 1.0
                stored, absent = np.bincount(table.indices, minlength=d), weight - s @ formed
                spread += np.where(stored == rows, 0.0, np.maximum(absent, 0.0)) * centre**2
            checksum = np.arange(first + 1, first + rows + 1) / n @ table
            return cls(
                *(rows, mean, weight, spread, squares, largest, row_sums, stored, checksum),
                *(float(np.sqrt(np.maximum.reduce(lengths))), float(s @ lengths), d),
            )

    def merge(self, other: ColumnStats) -> ColumnStats:
        """The statistics of these rows and others behind them (Chan, Golub and LeVeque, 1983)."""
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
        r"""Those of the features ``(x - shift) / scale`` of a table, without a read.

        Sizes are those of :math:`(|x| + |shift|) / scale`: they bound the entries and also the terms that cancel in
        products with either, so that the rounding allowance of a certificate stays true.
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
        """Coefficients and intercept in the units of the table that was given, see `scaled`."""
        w, intercept = np.asarray(w, dtype=np.float64), np.asarray(0.0 if intercept is None else intercept)
        if self.scaling is None:
            return w, intercept
        inner = (w.T / self.scaling[1]).T
        return inner, intercept - self.scaling[0] @ inner

    def reshaped(self, shape: tuple[int, ...], terms: int) -> ColumnStats:
        """With columns arranged as the parameter is, of which a prediction takes so many."""
        names = ("mean", "spread", "squares", "largest", "row_sums", "stored", "checksum")
        return replace(self, terms=terms, **{name: getattr(self, name).reshape(shape) for name in names})

    @property
    def root_mean_square(self) -> Array:
        """The root mean square of the entries of each column, not less where squares are lost by underflow."""
        return np.minimum(np.sqrt(self.squares + TINY), self.largest)

    @property
    def centre(self) -> Array:
        """A rough mean row: that of columns of which more than half is stored.

        Where a share p <= 1/2 of a sparse column is not zero, the square of its mean is at most p times its mean square
        (Cauchy-Schwarz): nothing cancels, and the column stays sparse.
        """
        zero = 0.0 if self.scaling is None else -self.scaling[0] / self.scaling[1]  # an entry that is not stored
        return np.where(2 * self.stored > self.n, self.mean, zero)

    def deviation(self, units: float, constant: float) -> Array:
        """The standard deviation of each column, ``constant`` where it is the rounding of a sum of so many units."""
        found = np.sqrt(self.spread)
        return np.where(found <= UNIT * units * np.hypot(self.mean, found), constant, found)


def _norm(x: Array) -> float:
    """The Euclidean norm, not less where squares are lost by underflow."""
    return float(np.sqrt(np.sum(x * x + TINY)))
