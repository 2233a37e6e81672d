"""`Data`: the interface between objectives and tables of samples, wherever these are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array
from projfree.data.column_stats import ColumnStats
from projfree.data.rows import TargetSum

if TYPE_CHECKING:
    from projfree.data.gram import Gram
    from projfree.data.workspace import Workspace


class RowsLostError(RuntimeError):
    """The rows cannot be read any more, for example because the workers that stored them have died.

    The run can be resumed from its last checkpoint.
    """


@dataclass(frozen=True)
class Fold:
    """Rows of one cross-validation fold (``inside``), or all others; a seed assigns the rows to folds at random."""

    seed: int
    folds: int
    fold: int
    inside: bool


class Data(ABC):
    """A linear map A from parameters to one prediction per row, with a target and a weight for each row.

    Solvers access the rows only through the workspace that `open` returns, because they may be stored on other
    machines. The weights are normalised to sum to one, so that every mean is a weighted sum.

    Attributes
    ----------
    n : int
        Number of rows.
    column_stats : ColumnStats
        Statistics of the columns and rows, computed in one pass.
    rounding_units : float
        A number k such that the rounding error of each sum over the rows is at most k units of roundoff times the sum
        of the absolute values of its terms.
    feature_names : tuple of str or None
        Names of the columns, if the table has names.
    total_weight : float or None
        The sum of the sample weights before normalisation; None if no weights were given.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Data, as_data
    >>> data = as_data(np.array([[3.0, 4.0], [0.0, 1.0]]), [1.0, 2.0])
    >>> isinstance(data, Data), data.n, data.shape(()), data.column_stats.mean
    (True, 2, (2,), array([1.5, 2.5]))
    """

    feature_names: tuple[str, ...] | None = None
    total_weight: float | None = None
    n: int
    column_stats: ColumnStats
    rounding_units: float

    @abstractmethod
    def open(self) -> Workspace:
        """Create an empty workspace."""

    @abstractmethod
    def with_targets(self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None) -> Data:
        """Return the same rows with the targets ``convert(y)`` and, if given, weights multiplied by ``reweight(y)``."""

    @abstractmethod
    def subset(self, rows: Array | Fold) -> Data:
        """Return the data restricted to the rows with the given indices, or to those of a cross-validation fold."""

    @abstractmethod
    def labels(self) -> list[Array]:
        """Return the sorted distinct targets of the rows with nonzero weight, for each output."""

    def mean_target(self) -> Array:
        """Return the weighted mean of the targets, of shape ``()`` or ``(k,)``."""
        workspace, mean = self.open(), np.zeros(())
        for _ in range(2):  # the second iteration corrects the rounding error of the first
            mean = mean + workspace.fold(TargetSum(mean), ())
        return np.asarray(mean)

    @abstractmethod
    def quantile(self, q: float) -> Array:
        """Return the unweighted quantile of the targets; for distributed rows it is approximate if 0 < q < 1."""

    @abstractmethod
    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the parameter for which predictions have the trailing shape ``outputs``."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a short hash that identifies the data."""

    @abstractmethod
    def gram(self) -> Gram:
        """Return the weighted moments of features and targets, computed in one pass; rows can be added later."""

    def standardized(self, centre: Any, scale: Any) -> Data:
        """Return a view of the data with the features ``(x_i - centre) / scale``; nothing is copied."""
        raise TypeError(f"{type(self).__name__} does not standardise its features; scale the table itself.")
