"""Weighted second moments of a table, for least squares (`Gram`) and second-order methods, each in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import UNIT, Point
from projfree.checks import Array, is_sparse
from projfree.data.rows import CHUNK_BYTES, LANES, WeightsAsResidual
from projfree.deadline import Expired, expired
from projfree.numerics.sums import tree_sum
from projfree.runtime import parallel_for, single_blas_thread

if TYPE_CHECKING:
    from projfree.data.base import Data
    from projfree.data.local import LocalData

#: Sums of weights between this number and its inverse cause neither overflow nor underflow in moments.
MIN_WEIGHT = 1e-100
#: Largest number of rows or columns for which the largest eigenvalue is computed from a Gram matrix; beyond, it is
#: bounded.
GRAM_SIDE = 3_000
#: Rows that are centred and multiplied at a time: enough that adding a d x d matrix is cheap in comparison, few enough
#: for the cache.
LANE_ROWS = 1024

#: ``h(rows)`` with a slice ``rows`` returns non-negative weights of shape ``(rows, m)``; further columns are ignored.
RowWeights = Callable[[slice], Array]


@dataclass(frozen=True)
class Moments:
    r"""Specify sums :math:`\sum_i h_i z_i z_i^T` over the rows :math:`z_i = (x_i - c, 1)` with weights h.

    Attributes
    ----------
    weights : int
        Number of weights per row; there is one matrix for each.
    centred : bool
        Whether c is ``centre``, by default `ColumnStats.centre`. After elimination of the last coordinate the sums do
        not depend on c, but they cancel less.
    features : array, optional
        Indices of the features to use; by default all.
    centre : array, optional
        The centre c in the units of the unscaled table, for rows that are a part of a larger table.
    factors : bool
        Whether to return the columns and weights of all rows instead of the sums.
    """

    weights: int
    centred: bool
    features: Array | None = None
    centre: Array | None = None
    factors: bool = False

    def select(self, columns: Any) -> Any:
        """Select the features from the columns of a table, or from a vector with an entry for each column."""
        if self.features is None or np.array_equal(self.features, np.arange(columns.shape[-1])):
            return columns
        return columns[..., self.features] if isinstance(columns, np.ndarray) else columns[:, self.features]


class Gram:
    r"""Weighted moments of features and targets about a provisional centre.

    With :math:`z_i = (x_i - c, y_i - c_y, 1)` it stores :math:`M = \sum_i s_i z_i z_i^T` in float64, for the weights s
    before normalisation (ones by default). The centre is that of the first rows added. This avoids the cancellation in
    :math:`X^T X - n m m^T` when a mean is large compared with the deviations.

    ``matrix`` is M, ``shift`` the centre of features and targets, and ``n`` the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> gram = as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]).gram()
    >>> _ = gram.include(as_data(np.array([[3.0]]), [7.0]))
    >>> gram.n, gram.mean.tolist(), gram.mean_target
    (3, [2.0], array(4.))
    """

    def __init__(self, d: int, outputs: tuple[int, ...] = ()) -> None:
        self.d, self.outputs, self.n = d, outputs, 0
        width = d + math.prod(outputs)
        self.shift, self.matrix = np.zeros(width), np.zeros((width + 1, width + 1))
        self._product_rows = 0  # largest number of rows in one product; its terms may be summed sequentially

    @classmethod
    def of(cls, data: LocalData, centre: Array | None = None) -> Gram:
        """Compute the moments of the unscaled rows of a table, about their mean by default."""
        gram = cls(math.prod(data.shape(())), data.y.shape[1:])
        total = min(max(float(data.total_weight or data.n), MIN_WEIGHT), 1.0 / MIN_WEIGHT)  # only ratios matter
        if centre is None:
            centre = np.concatenate((data.table_stats.centre, data.mean_target().ravel()))

        def weights(rows: slice) -> Array:
            return np.ones(rows.stop - rows.start) if data.weight is None else data.weight[rows] * total

        sums, gram._product_rows = weighted_products(data, weights, centre, Moments(1, False), targets=True)
        gram.n, gram.shift, gram.matrix = data.n, centre, sums[0]
        return gram

    def include(self, data: Data) -> Gram:
        """Add the rows of a data set to this object, in place, and return it."""
        total = float(data.total_weight or data.n)
        if self.n and not MIN_WEIGHT <= total <= 1.0 / MIN_WEIGHT:
            raise ValueError(
                f"`sample_weight` must have a sum between {MIN_WEIGHT:g} and {1.0 / MIN_WEIGHT:g} where rows are "
                f"added to others, got {total:g}; multiply the weights of all rows by one number."
            )
        return self.merge(data.gram())

    def merge(self, other: Gram) -> Gram:
        """Add the moments of ``other`` to this object, in place, and return it."""
        if (other.d, other.outputs) != (self.d, self.outputs):
            raise ValueError(
                f"`X` and `y` must have {self.d} columns and trailing shape {self.outputs} like the rows before them, "
                f"got {other.d} and {other.outputs}."
            )
        if not self.n:
            self.shift = other.shift.copy()
        self._product_rows = max(self._product_rows, other._product_rows)
        same = np.array_equal(self.shift, other.shift)
        self.matrix, self.n = self.matrix + (other.matrix if same else other._about(self.shift)), self.n + other.n
        return self

    def standardized(self, shift: Array, scale: Array) -> Gram:
        """Return the moments of the features ``(x - shift) / scale``."""
        out = Gram(self.d, self.outputs)
        extra = len(self.shift) - self.d
        by = np.concatenate([scale, np.ones(extra + 1)])
        out.n, out.matrix, out._product_rows = self.n, self.matrix / by / by[:, None], self._product_rows
        out.shift = (self.shift - np.concatenate([shift, np.zeros(extra)])) / by[:-1]
        return out

    def _about(self, centre: Array | None) -> Array:
        """Return M for another centre, or for the mean, by a rank-two update: the last entry of z is one.

        For the mean, the update uses its distance from the present centre, whose rounding error is far smaller than
        that of the mean.
        """
        move, last = np.zeros(len(self.matrix)), self.matrix[-1]
        move[:-1] = self.shift - centre if centre is not None else -last[:-1] / self.total_weight
        cross = last + 0.5 * last[-1] * move
        moved: Array = self.matrix + np.multiply.outer(move, cross)
        moved += np.multiply.outer(cross, move)
        return moved

    @property
    def total_weight(self) -> float:
        """The sum of the weights before normalisation."""
        if not self.n:
            raise ValueError("This Gram has no rows yet; `add` some first.")
        return float(self.matrix[-1, -1])

    def _means(self) -> Array:
        means: Array = self.shift + self.matrix[-1, :-1] / self.total_weight
        return means

    @property
    def mean(self) -> Array:
        """The weighted mean of the rows."""
        return self._means()[: self.d]

    @property
    def mean_target(self) -> Array:
        """The weighted mean of the targets, of shape ``()`` or ``(k,)``."""
        return self._means()[self.d :].reshape(self.outputs)

    def moment(self, about: Array) -> Array:
        """Return the weighted mean of ``(x - about) (x - about)^T``."""
        centre = np.concatenate([about, self.shift[self.d :]])
        return self._about(centre)[: self.d, : self.d] / self.total_weight

    def quadratic(self, fit_intercept: bool = False) -> tuple[Array, Array, float]:
        r"""Return the mean squared error as ``(H, b, c)``; ``fit_intercept`` minimises over the intercept.

        .. math:: \tfrac12 \langle w, H w\rangle - \langle b, w\rangle + c

        For several outputs it is summed over them; `intercept` computes the intercept.
        """
        M = self._about(None if fit_intercept else np.zeros_like(self.shift)) * (2.0 / self.total_weight)
        H, b = M[: self.d, : self.d], M[: self.d, self.d : -1].reshape(self.d, *self.outputs)
        return (H + H.T) / 2.0, b, 0.5 * float(np.add.reduce(M.diagonal()[self.d : -1]))

    def errors(self, fit_intercept: bool = False) -> tuple[float, float]:
        r"""Return e and k such that the rounding error of the form of `quadratic` is at most :math:`e + k \|w\|^2 / 2`.

        Each entry of M is a sum of products :math:`s z_a z_b` over blocks of rows that are added sequentially. By the
        Cauchy-Schwarz inequality the absolute terms of :math:`\langle w, M w\rangle` are at most twice the mean square
        of :math:`\|x\|\|w\|` and of y. A factor of four covers the change of the centre and the addition of the block
        sums.
        """
        M = self.matrix if fit_intercept else self._about(np.zeros_like(self.shift))
        square = M.diagonal() / self.total_weight
        units = self._product_rows + self.n / (LANES * LANE_ROWS) + len(M) + 64
        share = 8 * UNIT * units
        return share * float(square[self.d : -1].sum()), 2.0 * share * float(square[: self.d].sum())

    def intercept(self, w: Array) -> Array:
        """Return the optimal intercept for ``w``."""
        return np.asarray(self.mean_target - self.mean @ w)


def weighted_products(
    data: LocalData, h: RowWeights, shift: Array, wanted: Moments, *, targets: bool = False
) -> tuple[Array, int]:
    """Compute the moments about ``shift`` for each column of the weights, in one pass over the table.

    Return an array of shape ``(m, len(shift) + 1, len(shift) + 1)``, in which ``targets`` appends the targets to the
    features, and the largest number of rows that were multiplied at a time. Raises `Expired` at a deadline.
    """
    columns, width, most = math.prod(data.shape(())), len(shift) + 1, 0
    lanes = np.zeros((LANES, wanted.weights, width, width))

    def add(table: Any, start: int, step: int, size: int, k: int) -> None:
        """Add the products of rows ``k * step`` to ``(k + 1) * step`` of a table, ``size`` rows at a time.

        The table begins at row ``start`` of the data.
        """
        for first in range(k * step, min((k + 1) * step, table.shape[0]), size):
            if expired():
                raise Expired
            part = table[first : min(first + size, (k + 1) * step)]
            rows = slice(start + first, start + first + part.shape[0])
            y = data.y[rows].reshape(part.shape[0], -1) if targets else np.empty((part.shape[0], 0))
            roots, some = np.sqrt(h(rows)).reshape(part.shape[0], -1), wanted.select(part)
            product = _sparse_product if is_sparse(table) else _dense_product
            for j in range(wanted.weights):
                lanes[k, j] += product(some, y, roots[:, j], shift)

    with single_blas_thread():
        for rows, table in data.tables(max(CHUNK_BYTES, 8 * columns * LANES * LANE_ROWS)):
            count = table.shape[0]
            step = -(-count // max(1, min(LANES, -(-count // LANE_ROWS))))  # a single lane if one product has all rows
            # A row takes about four numbers for each of its weights.
            size = min(step, max(64, CHUNK_BYTES // (32 * wanted.weights)))
            size = size if is_sparse(table) else min(size, LANE_ROWS)
            most = max(most, size)
            work = partial(add, table, rows.start, step, size)
            if step < count:
                parallel_for(work, -(-count // step), data.threads)
            else:
                work(0)
    return tree_sum(lanes), most


def _dense_product(table: Array, y: Array, s: Array, shift: Array) -> Array:
    d = table.shape[1]
    # Use the memory order of the table: transposing would cost as much as the product.
    z = np.empty((len(y), len(shift) + 1), order="F" if table.strides[0] < table.strides[1] else "C")
    np.subtract(table, shift[:d], out=z[:, :d])
    np.subtract(y, shift[d:], out=z[:, d:-1])
    z[:, -1] = 1.0
    if (s != 1.0).any():
        z *= s[:, None]
    product: Array = z.T @ z  # NumPy recognises a symmetric product and computes half of it
    return product


def _sparse_product(table: Any, y: Array, s: Array, shift: Array) -> Array:
    """Return the product for sparse rows; columns with a shift, targets and ones are dense, the others stay sparse."""
    d = table.shape[1]
    moved, still = np.flatnonzero(shift[:d]), np.flatnonzero(shift[:d] == 0.0)
    full = np.concatenate([moved, np.arange(d, len(shift) + 1)])
    columns = table.tocsc()
    rest = columns[:, still].multiply(s[:, None]).tocsc()
    z = np.column_stack([columns[:, moved].toarray() - shift[moved], y - shift[d:], np.ones(len(y))]) * s[:, None]
    out = np.zeros((len(shift) + 1,) * 2)
    out[np.ix_(full, full)] = z.T @ z
    cross = rest.T @ z
    out[np.ix_(still, full)], out[np.ix_(full, still)] = cross, cross.T
    out[np.ix_(still, still)] = (rest.T @ rest).toarray()
    return out


def largest_eigenvalue(data: Data, *, centred: bool) -> float:
    r"""Return an upper bound on :math:`\lambda_{\max}(A^T S A)`, for A minus its weighted mean row if ``centred``.

    If n or d is at most 3,000, it is the eigenvalue of the smaller Gram matrix plus a bound on its rounding error.
    Otherwise it is the largest row sum of absolute values, which does not need the matrix and bounds the moments about
    the mean m; moments about zero add at most :math:`\|m\|^2`. The trace, the mean square of the rows, is another
    bound.
    """
    own, n, d = data.column_stats, data.n, math.prod(data.shape(()))
    units = data.rounding_units + d
    if own.terms and d <= min(n, GRAM_SIDE):
        gram, mean = data.gram(), np.ravel(own.mean)
        moment = gram.moment(mean if centred else np.zeros(d))
        return _raised(moment, float(np.trace(moment) + np.trace(gram.moment(gram.shift[:d]))), units)
    if own.terms and n <= GRAM_SIDE and (outer := _outer_products(data, d, centred)):
        return _raised(outer[0], float(np.trace(outer[0])), float(n + d))
    away = 0.0 if centred or not own.terms else float(np.sum(own.mean**2))
    bound = min(float(own.row_sums.max()) + away, own.mean_square)
    return bound * (1.0 + 8 * UNIT * units)


def _raised(gram: Array, size: float, units: float) -> float:
    """Return the largest eigenvalue of a matrix plus a bound on the effect of its rounding errors."""
    return float(np.linalg.eigvalsh(gram)[-1]) + 8 * UNIT * units * size


def _outer_products(data: Data, d: int, centred: bool) -> tuple[Array] | None:
    """Return the Gram matrix of the rows, computed from a few columns at a time; None if columns are not available."""
    total, workspace, zero = np.zeros((data.n, data.n)), data.open(), Point(np.zeros(data.shape(())))
    for start in range(0, d, LANE_ROWS):
        features = np.arange(start, min(start + LANE_ROWS, d))
        found = workspace.moments(WeightsAsResidual(), zero, Moments(1, centred, features, factors=True))
        if found is None:
            return None
        columns, weights = found
        z = columns.toarray() if is_sparse(columns) else columns
        z = (z - weights @ z / weights.sum() if centred else z) * np.sqrt(weights)[:, None]
        total += z @ z.T
    return (total,)
