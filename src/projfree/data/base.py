"""What data is: the linear map A and the targets, read block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array, all_finite, real_array

if TYPE_CHECKING:
    from projfree.algebra import Pattern
    from projfree.data.curvature import RowWeights
    from projfree.data.gram import Gram

#: Weights below this part of the largest would leave the range of normal numbers once they are divided by their sum.
LEAST_SHARE = 1e-290

#: ``kernel(rows, *images) -> (residual or None, sums)`` for one block of rows: what a pass does with the block.
Kernel = Callable[..., tuple[Array | None, Array]]


class Meter:
    """Counts the rows that were read, shared by a data set and its subsets."""

    def __init__(self) -> None:
        self.rows = 0


class Data(ABC):
    """A linear map A from parameters to one prediction a row, with a target and a weight for each row.

    `accumulate` is the one way in which a pass happens, and reads each row once however many images and sums it
    forms. Weights are normalised to the sum one, so that every mean is a weighted sum.

    Attributes
    ----------
    n : int
        Number of rows.
    y : ndarray
        Targets, one row each.
    weight : ndarray or None
        Normalised weights; None where all are ``1 / n``.
    row_norm : float
        The largest Euclidean norm of a row of A.
    mean_square : float
        The weighted mean of the squared norms of the rows of A.
    feature_names : tuple of str or None
        Names of the columns, where the table had some.
    total_weight : float or None
        The sum of the sample weights as they were given; None where each row counts one.
    pattern : Pattern or None
        Where adjoints live on observed entries and are never dense, the places of these.
    nbytes : int
        What a pass reads; 0 where no compiled kernel does.
    stored : int or None
        The numbers that a sparse table holds; None for others, which hold all.
    diagonal : bool
        Whether each row of A meets a single entry of the parameter, so that squares have a diagonal matrix.
    """

    feature_names: tuple[str, ...] | None = None
    total_weight: float | None = None
    pattern: Pattern | None = None
    nbytes: int = 0
    stored: int | None = None
    diagonal: bool = False
    n: int
    y: Array
    weight: Array | None
    row_norm: float
    mean_square: float
    meter: Meter

    def weights(self, rows: slice | Array) -> Array | float:
        """The normalised weights of some rows, as something to multiply with."""
        return 1.0 / self.n if self.weight is None else self.weight[rows]

    @abstractmethod
    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a parameter whose images have the trailing shape ``outputs``."""

    @property
    def products(self) -> float:
        """How many products one prediction is a sum of; zero where it is an entry of the parameter."""
        return float(self.shape(())[0])

    @abstractmethod
    def accumulate(self, vectors: Sequence[Array], kernel: Kernel) -> tuple[Array, Array | None]:
        """Run ``kernel`` over the blocks; return the added sums and the adjoint of the residuals it returned.

        Parameters
        ----------
        vectors : sequence of ndarray
            Parameters whose images of the block the kernel is given, in this order.
        kernel : callable
            ``kernel(rows, *images) -> (residual, sums)``, with ``rows`` a slice. A residual of None asks for no
            adjoint.
        """

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """``m`` of the rows in increasing order, each row with the probability ``m / n``; no work of order n."""
        return np.sort(rng.choice(self.n, size=m, replace=False, shuffle=False))

    @abstractmethod
    def subset(self, rows: Array) -> Data:
        """The data of the given rows alone, weighted so that its sums are unbiased for those of all rows."""

    @abstractmethod
    def smoothness(self, *, centred: bool) -> float:
        r"""An upper bound on :math:`\lambda_{\max}(A^T S A)`, with A centred by its weighted mean row if asked."""

    @abstractmethod
    def mean_row(self) -> Array:
        r""":math:`A^T s`: the weighted mean of the rows of A, as a parameter with one output."""

    @abstractmethod
    def summation(self) -> float:
        """A number k such that each sum over rows errs by at most k units of rounding of its absolute terms."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash that tells this data from other data."""

    def apply(self, w: Array) -> Array:
        """The image A w, in one pass."""
        out = np.empty((self.n, *w.shape[len(self.shape(())) :]))

        def keep(rows: slice, u: Array) -> tuple[None, Array]:
            out[rows] = u  # blocks may come in any order
            return None, np.zeros(0)

        self.accumulate([w], keep)
        return out

    def adjoint(self, r: Array) -> Array:
        """The adjoint image, the sum over rows of ``r_i`` times row i of A, in one pass."""
        total = self.accumulate([], lambda rows: (r[rows], np.zeros(0)))[1]
        assert total is not None
        return total

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Any]]:
        """The rows of A in order, in float64 tables of about this size, each an array or sparse, good until the next.

        For work outside passes; whoever reads them counts them.
        """
        raise TypeError(f"{type(self).__name__} has no table of features; this needs one.")

    def column_sizes(self) -> Array:
        """Root mean square and largest size of the entries of each column, in one read that does not count."""
        from projfree.data.moments import column_sizes

        return column_sizes(self)

    def gram(self) -> Gram:
        """Moments of features and targets, in one pass: all that least squares needs, and open for more rows."""
        from projfree.data.gram import Gram

        return Gram.of(self)

    def second_moments(self, h: RowWeights, *, centred: bool) -> Array:
        r"""The sums :math:`\sum_i h_i z_i z_i^T` for each column of non-negative weights h, in one read.

        Here :math:`z_i = (x_i - c, 1)`, with c = 0 or, if ``centred``, a rough mean row: what has the last
        coordinate eliminated does not depend on c, but cancels less.

        Parameters
        ----------
        h : RowWeights
            With m columns.

        Returns
        -------
        ndarray of shape (m, d + 1, d + 1)
        """
        from projfree.data.curvature import second_moments

        return second_moments(self, h, centred=centred)

    def raw(self, w: Array, intercept: Any = None) -> tuple[Array, Array]:
        """Coefficients and intercept in the units of the table that was given; differ where it is `Standardized`."""
        return np.asarray(w, dtype=np.float64), np.asarray(0.0 if intercept is None else intercept, dtype=np.float64)


def measures(largest: float, mean: float) -> tuple[float, float]:
    """`row_norm` and `mean_square` from the largest and the mean squared norm of the rows.

    Squares below the range of floating point count as zero in both; no row is longer than the floor then.
    """
    return max(float(np.sqrt(largest)), 1e-150), max(mean, 1e-300)


def checked_targets(y: Array, n: int) -> Array:
    """``y`` as an array of finite numbers with ``n`` rows and one or two dimensions."""
    y = all_finite("y", real_array("y", y))
    if y.ndim not in (1, 2) or len(y) != n:
        raise ValueError(
            f"`y` must have one row for each of the {n} rows of `X` and one or two dimensions, got shape {y.shape}."
        )
    return y


def checked_weights(weight: Array | None, n: int) -> Array | None:
    """Sample weights normalised to the sum one, None where there are none."""
    if weight is None:
        return None
    weight = all_finite("sample_weight", real_array("sample_weight", weight)).astype(np.float64)
    if weight.shape != (n,):
        raise ValueError(f"`sample_weight` must have one entry for each of the {n} rows, got shape {weight.shape}.")
    if weight.min() < 0 or weight.max() <= 0:
        raise ValueError(
            f"`sample_weight` must be non-negative with a positive sum, got {weight.min():g} to {weight.max():g}; "
            "drop the rows that should not count."
        )
    weight = weight / weight.max()  # else the sum may overflow
    least = float(weight[weight > 0.0].min())
    if least < LEAST_SHARE:  # its share of the sum would be rounded to few digits, or to none
        raise ValueError(
            f"`sample_weight` must be zero or at least {LEAST_SHARE:g} times the largest, got {least:g} times that; "
            "set such weights to zero."
        )
    normalised: Array = weight / weight.sum()
    return normalised
