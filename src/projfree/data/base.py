"""What data is to an objective: the linear map A and the targets, wherever their rows are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array

if TYPE_CHECKING:
    from projfree.algebra import Pattern
    from projfree.data.gram import Gram
    from projfree.data.workspace import Workspace


class RowsLostError(RuntimeError):
    """Rows cannot be reached, and did not come back in time; a run ends with what it has."""


@dataclass(frozen=True)
class TableErrors:
    """How far residuals of targets and features from other columns are from the exact ones.

    Root mean squares over the rows, of targets and of features in the Frobenius norm: of all errors but those within
    the span of the other columns, and of what is left within it. Least squares feel the first as they are, and the
    second, at a right angle to the exact residuals, only by their squares.
    """

    targets: float = 0.0
    features: float = 0.0
    targets_left: float = 0.0
    features_left: float = 0.0


class Data(ABC):
    """A linear map A from parameters to one prediction a row, with a target and a weight for each row.

    Runs touch rows in a workspace, which `open` gives, and nowhere else: rows may lie on other machines. Weights are
    normalised to the sum one, so that every mean is a weighted sum.

    Attributes
    ----------
    n : int
        Number of rows.
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
    stored : int or None
        The numbers that a sparse table holds; None for others, which hold all.
    diagonal : bool
        Whether each row of A has a single entry, so that squares have a diagonal matrix.
    reweighs : bool
        Whether `reweighted` and `split` give views of the rows with other weights.
    table_errors : TableErrors
        How far the table may be from the one that it stands for; zero unless columns were replaced by residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Data, as_data
    >>> data = as_data(np.array([[3.0, 4.0], [0.0, 1.0]]), [1.0, 2.0])
    >>> isinstance(data, Data), data.n, data.shape(()), data.mean_row()
    (True, 2, (2,), array([1.5, 2.5]))
    """

    feature_names: tuple[str, ...] | None = None
    total_weight: float | None = None
    pattern: Pattern | None = None
    stored: int | None = None
    diagonal: bool = False
    reweighs: bool = False
    table_errors: TableErrors = TableErrors()
    n: int
    row_norm: float
    mean_square: float

    @abstractmethod
    def open(self) -> Workspace:
        """A new workspace, which remembers nothing."""

    @abstractmethod
    def with_targets(self, convert: Callable[[Array], Array]) -> Data:
        """The same rows with their targets in the form that a loss takes."""

    @abstractmethod
    def outputs(self, of: Callable[[Array], tuple[int, ...]]) -> tuple[int, ...]:
        """The trailing shape of predictions that a loss finds in the targets."""

    @abstractmethod
    def labels(self) -> list[Array]:
        """The labels that rows with some weight have, for each output in increasing order."""

    @abstractmethod
    def mean_target(self) -> Array:
        """The weighted mean of the targets, of shape ``()`` or ``(k,)``."""

    @abstractmethod
    def median_target(self) -> Array:
        """The median of the targets, of shape ``()`` or ``(k,)``."""

    @abstractmethod
    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a parameter whose images have the trailing shape ``outputs``."""

    @property
    def products(self) -> float:
        """How many products one prediction is a sum of; zero where it is an entry of the parameter."""
        return float(self.shape(())[0])

    @abstractmethod
    def smoothness(self, *, centred: bool) -> float:
        r"""An upper bound on :math:`\lambda_{\max}(A^T S A)`, with A centred by its weighted mean row if asked."""

    @abstractmethod
    def mean_row(self) -> Array:
        r""":math:`A^T s`: the weighted mean of the rows of A, as a parameter with one output."""

    def centre_row(self) -> Array:
        """A rough mean of the rows, for tables of features: what centred second moments are about."""
        return self.mean_row()

    @abstractmethod
    def summation(self) -> float:
        """A number k such that each sum over rows errs by at most k units of rounding of its absolute terms."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash that tells this data from other data."""

    @abstractmethod
    def row_measures(self, shift: Array, scale: Array) -> tuple[float, float]:
        r"""The largest norm and the weighted mean squared norm of the rows :math:`(|x_i| + |shift|) / scale`."""

    def largest_row_sum(self, scale: Array) -> float:
        r"""The largest sum of sizes in a row of :math:`|A|^T S |A|`, features divided by ``scale``; may be infinite."""
        return math.inf

    @abstractmethod
    def column_deviation(self, constant: float = 1.0) -> Array:
        """The weighted standard deviation of each column, ``constant`` for one that is so up to rounding; one read."""

    @abstractmethod
    def column_sizes(self) -> Array:
        """Root mean square and largest size of the entries of each column, in one read."""

    @abstractmethod
    def gram(self) -> Gram:
        """Moments of features and targets, in one pass: all that least squares needs, and open for more rows."""

    def columns(self) -> Any:
        """The features by columns: a `scipy.sparse.csc_array`, an array, or None where they are not at hand.

        Of a sparse table it is made when it is first asked for, and kept: sorted, without repeated entries, and with
        the table's own dtype. It must not be changed.
        """
        return None

    def reweighted(self, factor: Callable[[Array], Array]) -> Data:
        """The same rows, their weights multiplied by what ``factor`` makes of the targets."""
        raise TypeError(f"{type(self).__name__} does not let its weights be changed; give them to `as_data`.")

    def split(self, folds: int, seed: int) -> list[tuple[Data, Data]]:
        """The rows outside and inside of each of some folds, into which they are dealt at random, as views."""
        raise TypeError(f"{type(self).__name__} does not split its rows; give parts of the table to `as_data`.")

    def standardized(self, shift: Any, scale: Any) -> Data:
        """The rows ``(x_i - shift) / scale``, entry by entry, as a view: nothing is copied."""
        raise TypeError(f"{type(self).__name__} does not standardise its features; scale the table itself.")

    def feature_columns(self, features: Array, *, centred: bool) -> tuple[int, Array, Array, Array] | None:
        """Some columns for `projfree.numerics.group_l1_kernels`; None where that takes more than a read.

        Where ``centred``, any constant may be subtracted from a column.
        """
        return None

    def raw(self, w: Array, intercept: Any = None) -> tuple[Array, Array]:
        """Coefficients and intercept in the units of the table that was given; differ where it is `standardized`."""
        return np.asarray(w, dtype=np.float64), np.asarray(0.0 if intercept is None else intercept, dtype=np.float64)
