r"""`Gram`: all that least squares needs to know about a table, in one pass and open for more rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse
from projfree.data.second_moments import LANE_ROWS, LANES, add_products, table_bytes
from projfree.numerics.sums import tree_sum
from projfree.runtime import single_blas

if TYPE_CHECKING:
    from projfree.data.local import LocalData

#: Sums of weights within which moments neither overflow nor vanish.
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100


class Gram:
    r"""The weighted moments of features and targets, about a provisional centre.

    With :math:`z_i = (x_i - c, y_i - c_y, 1)` it holds :math:`M = \sum_i s_i z_i z_i^T` in float64, for weights s as
    they were given (ones if none were). The centre is that of the first rows: moments about the mean then come out
    without the cancellation that :math:`X^T X - n m m^T` suffers when a mean is large compared with the deviations.

    Attributes
    ----------
    matrix : ndarray of shape (d + k + 1, d + k + 1)
        M.
    shift : ndarray of shape (d + k,)
        The centre of features and targets.
    n : int
        Rows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> gram = as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]).gram()
    >>> _ = gram.add(np.array([[3.0]]), [7.0])
    >>> gram.n, gram.xtx.tolist(), gram.xty.tolist(), gram.mean.tolist()
    (3, [[14.0]], [30.0], [2.0])
    """

    #: Whether the centre was given, and is not to be that of the first rows.
    _centred = False
    #: The most rows of one product, whose terms may be added one after the other.
    _product_rows = LANE_ROWS

    def __init__(self, d: int, outputs: tuple[int, ...] = ()) -> None:
        self.d, self.outputs, self.n = d, outputs, 0
        width = d + math.prod(outputs)
        self.shift, self.matrix = np.zeros(width), np.zeros((width + 1, width + 1))

    @classmethod
    def about(cls, shift: Array, d: int, outputs: tuple[int, ...]) -> Gram:
        """No rows yet, with a given centre: moments of parts of a table about one centre can be added up."""
        gram = cls(d, outputs)
        gram.shift, gram._centred = shift, True
        return gram

    @classmethod
    def of(cls, data: LocalData) -> Gram:
        """The moments of a data set, in one pass."""
        columns = data.shape(())
        if len(columns) != 1:
            raise TypeError(
                f"`gram` needs a table of features; {type(data).__name__} has a diagonal one, `mean_row()`."
            )
        return cls(columns[0], data.y.shape[1:]).include(data)

    def add(self, X: Any, y: Any, sample_weight: Any = None) -> Gram:
        """Append rows, at their own cost; returns the same object."""
        from projfree.data.convert import as_data

        return self.include(as_data(X, y, sample_weight))

    def include(self, data: LocalData) -> Gram:
        """Append the rows of a data set; returns the same object."""
        if data.shape(()) != (self.d,) or data.y.shape[1:] != self.outputs:
            raise ValueError(
                f"`X` and `y` must have {self.d} columns and trailing shape {self.outputs} like the rows before them, "
                f"got {data.shape(())[0]} and {data.y.shape[1:]}."
            )
        total, threads = self._units_of(data), data.threads
        lanes = np.zeros((LANES, *self.matrix.shape))
        if not self.n and not self._centred:
            self.shift = np.concatenate((data.centre_row(), data.mean_target().ravel()))
        with single_blas():
            for rows, table in data.tables(table_bytes(self.d)):
                if is_sparse(table):
                    self._product_rows = max(self._product_rows, table.shape[0])
                y = data.y[rows].reshape(table.shape[0], -1).astype(np.float64, copy=False)
                s = np.ones(len(y)) if data.weight is None else np.sqrt(data.weight[rows] * total)
                add_products(lanes, table, y, s, self.shift, threads)
        # Only now, so that rows of which a read failed do not count in part.
        self.matrix, self.n = self.matrix + tree_sum(lanes), self.n + data.n
        return self

    def _units_of(self, data: LocalData) -> float:
        """The sum of the weights of some rows; of the first ones only ratios matter, so it need not be extreme."""
        total = float(data.n if data.total_weight is None else data.total_weight)
        if self.n and not LEAST_WEIGHT <= total <= MOST_WEIGHT:
            raise ValueError(
                f"`sample_weight` must have a sum between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g} where rows are added to "
                f"others, got {total:g}; multiply the weights of all rows by one number."
            )
        return min(max(total, LEAST_WEIGHT), MOST_WEIGHT)

    def merge(self, other: Gram) -> Gram:
        """Take in the rows of another one; returns the same object."""
        if (other.d, other.outputs) != (self.d, self.outputs):
            raise ValueError(
                f"`other` must have {self.d} columns and trailing shape {self.outputs}, got {other.d} and "
                f"{other.outputs}."
            )
        if not self.n:
            self.shift = other.shift.copy()
        self._product_rows = max(self._product_rows, other._product_rows)
        same = np.array_equal(self.shift, other.shift)
        self.matrix, self.n = self.matrix + (other.matrix if same else other._about(self.shift)), self.n + other.n
        return self

    def standardized(self, shift: Array, scale: Array) -> Gram:
        """The moments of the features ``(x - shift) / scale``."""
        out = Gram(self.d, self.outputs)
        extra = len(self.shift) - self.d
        by = np.concatenate([scale, np.ones(extra + 1)])
        out.n, out.matrix, out._product_rows = self.n, self.matrix / by / by[:, None], self._product_rows
        out.shift = (self.shift - np.concatenate([shift, np.zeros(extra)])) / by[:-1]
        return out

    def _about(self, centre: Array | None) -> Array:
        """M for another centre, or for the exact mean: z changes by a multiple of its last entry, which is one.

        The mean itself would be rounded; its distance from the present centre is rounded by far less.
        """
        move, last = np.zeros(len(self.matrix)), self.matrix[-1]
        move[:-1] = self.shift - centre if centre is not None else -last[:-1] / self.total_weight
        cross = last + 0.5 * last[-1] * move
        moved: Array = self.matrix + np.multiply.outer(move, cross)
        moved += np.multiply.outer(cross, move)
        return moved

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        if not self.n:
            raise ValueError("This Gram has no rows yet; `add` some first.")
        return float(self.matrix[-1, -1])

    def _means(self) -> Array:
        means: Array = self.shift + self.matrix[-1, :-1] / self.total_weight
        return means

    @property
    def mean(self) -> Array:
        """The weighted mean row."""
        return self._means()[: self.d]

    @property
    def mean_target(self) -> Array:
        """The weighted mean target, of shape ``()`` or ``(k,)``."""
        return self._means()[self.d :].reshape(self.outputs)

    @property
    def xtx(self) -> Array:
        """The weighted sum of ``x x^T``."""
        return self._about(np.zeros_like(self.shift))[: self.d, : self.d]

    @property
    def xty(self) -> Array:
        """The weighted sum of ``x y^T``, of shape ``(d,)`` or ``(d, k)``."""
        return self._about(np.zeros_like(self.shift))[: self.d, self.d : -1].reshape(self.d, *self.outputs)

    def moment(self, about: Array) -> Array:
        """The weighted mean of ``(x - about) (x - about)^T``."""
        centre = np.concatenate([about, self.shift[self.d :]])
        return self._about(centre)[: self.d, : self.d] / self.total_weight

    def quadratic(self, fit_intercept: bool = False) -> tuple[Array, Array, float]:
        r"""The mean squared error as ``(H, b, c)``, with the intercept, if asked for, minimised out.

        .. math:: \tfrac12 \langle w, H w\rangle - \langle b, w\rangle + c

        Its value for several outputs is summed over them; `intercept` recovers the intercept.
        """
        M = self._about(None if fit_intercept else np.zeros_like(self.shift)) * (2.0 / self.total_weight)
        H, b = M[: self.d, : self.d], M[: self.d, self.d : -1].reshape(self.d, *self.outputs)
        return (H + H.T) / 2.0, b, 0.5 * float(np.add.reduce(M.diagonal()[self.d : -1]))

    def errors(self, fit_intercept: bool = False) -> tuple[float, float]:
        r"""Numbers e and k such that the form of `quadratic` errs by at most :math:`e + k \|w\|^2 / 2`.

        Each entry of M is a sum of products :math:`s z_a z_b`, in blocks of rows that are added one after the other; by
        Cauchy-Schwarz the absolute terms of :math:`\langle w, M w\rangle` are at most twice the mean square of
        :math:`\|x\|\|w\|` and of y. Moving the centre and the sums of sums are covered by a factor of four.
        """
        M = self.matrix if fit_intercept else self._about(np.zeros_like(self.shift))
        square = M.diagonal() / self.total_weight
        units = self._product_rows + self.n / (LANES * LANE_ROWS) + len(M) + 64.0
        share = 8.0 * UNIT * units
        return share * float(square[self.d : -1].sum()), 2.0 * share * float(square[: self.d].sum())

    def intercept(self, w: Array) -> Array:
        """The best intercept for ``w``."""
        return np.asarray(self.mean_target - self.mean @ w)
