"""What data is: the linear map A and the targets, read block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array, all_finite, real_array
from projfree.data.rows import AsResidual, FormImages, Pass

if TYPE_CHECKING:
    from projfree.algebra import Pattern
    from projfree.data.gram import Gram
    from projfree.data.second_moments import Moments, RowWeights
    from projfree.data.workspace import Workspace

#: Weights below this part of the largest would leave the range of normal numbers once they are divided by their sum.
LEAST_SHARE = 1e-290


class Data(ABC):
    """A linear map A from parameters to one prediction a row, with a target and a weight for each row.

    Runs touch rows in a workspace, which `open` gives. `run` is the one way in which a pass happens, and reads each row
    once however many images and sums it forms. Weights are normalised to the sum one, so that every mean is a weighted
    sum.

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
    threads : int
        How many threads a pass may use.
    local : bool
        Whether rows lie in the memory or on the disks of this machine, so that `run` reads them; else only `open` does.
    keeps_images : bool
        Whether a workspace keeps the images that a sweep forms: where forming them anew costs more than mixing them.
    adjoint_reads : bool
        Whether an adjoint reads the data; not where it only puts residuals in their places.
    places : pair of ndarray, or None
        Row and column of each observed entry of a matrix; None for tables.
    diagonal : bool
        Whether each row of A meets a single entry of the parameter, so that squares have a diagonal matrix.
    """

    feature_names: tuple[str, ...] | None = None
    total_weight: float | None = None
    pattern: Pattern | None = None
    nbytes: int = 0
    stored: int | None = None
    threads: int = 1
    local: bool = True
    keeps_images: bool = False
    adjoint_reads: bool = True
    diagonal: bool = False
    places: tuple[Array, Array] | None = None
    n: int
    y: Array
    weight: Array | None
    row_norm: float
    mean_square: float

    def open(self) -> Workspace:
        """A new workspace, which remembers nothing."""
        from projfree.data.workspace import LocalWorkspace

        return LocalWorkspace(self)

    def with_targets(self, convert: Callable[[Array], Array]) -> Data:
        """The same rows with their targets in the form that a loss takes."""
        data = copy(self)
        data.y = convert(self.y)
        return data

    def outputs(self, of: Callable[[Array], tuple[int, ...]]) -> tuple[int, ...]:
        """The trailing shape of predictions that a loss finds in the targets."""
        return of(self.y)

    def labels(self) -> list[Array]:
        """The labels that rows with some weight have, for each output in increasing order."""
        counted = self.y if self.weight is None else self.y[self.weight > 0]
        return [np.unique(column) for column in counted.reshape(len(counted), -1).T]

    def median_target(self) -> Array:
        """The median of the targets, of shape ``()`` or ``(k,)``."""
        return np.asarray(np.median(self.y, axis=0))

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
    def run(self, work: Pass) -> tuple[Array, Any]:
        """Do the work of a pass block by block; return the added sums and the adjoint of its residuals.

        ``work(rows, *images) -> (residual, sums)``, with ``rows`` a slice and the images of ``work.vectors`` there. A
        residual of None asks for no adjoint.
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
        outputs = w.shape[len(self.shape(())) :]
        out = np.empty((self.n, *outputs))
        self.run(
            Pass(FormImages(), self.n, self.y, self.weight, (w,), np.ones((1, 1)), None, np.zeros(1), (out,), outputs)
        )
        return out

    def adjoint(self, r: Array) -> Array:
        """The adjoint image, the sum over rows of ``r_i`` times row i of A, in one pass."""
        r = np.asarray(r, dtype=np.float64)
        work = Pass(
            AsResidual(), self.n, self.y, self.weight, (), np.zeros((1, 0)), r, np.ones(1), (None,), r.shape[1:]
        )
        total: Array = self.run(work)[1]
        return total

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Any]]:
        """The rows of A in order, in float64 tables of about this size, each an array or sparse, good until the next.

        For work outside passes; whoever reads them counts them.
        """
        raise TypeError(f"{type(self).__name__} has no table of features; this needs one.")

    def columns(self) -> Any:
        """The features by columns: a `scipy.sparse.csc_array`, an array, or None where they are not at hand.

        Of a sparse table it is made when it is first asked for, and kept: sorted, without repeated entries, and with
        the table's own dtype. It must not be changed.
        """
        return None

    def row_measures(self, shift: Array, scale: Array) -> tuple[float, float]:
        r"""The largest norm and the weighted mean squared norm of the rows :math:`(|x_i| + |shift|) / scale`."""
        from projfree.data.moments import row_measures

        return row_measures(self, shift, scale)

    def column_deviation(self) -> Array:
        """The weighted standard deviation of each column, 1 for a column that is constant up to rounding; one read."""
        from projfree.data.moments import column_deviation

        return column_deviation(self)

    def column_sizes(self) -> Array:
        """Root mean square and largest size of the entries of each column, in one read."""
        from projfree.data.moments import column_sizes

        return column_sizes(self)

    def image_of(self, table: Any, w: Array) -> Array:
        """The image of ``w`` on some rows, given their features as `second_moments` reads them."""
        image: Array = table @ w
        return image

    def gram(self) -> Gram:
        """Moments of features and targets, in one pass: all that least squares needs, and open for more rows."""
        from projfree.data.gram import Gram

        return Gram.of(self)

    def second_moments(self, h: RowWeights, wanted: Moments) -> Array:
        """The matrices that are wanted for each column of the weights ``h``, of shape ``(m, d + 1, d + 1)``; one read.

        With d the number of features that are looked at; the second side is that of ``wanted.kept``.
        """
        from projfree.data.second_moments import second_moments

        return second_moments(self, h, wanted)

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
