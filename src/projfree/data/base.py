"""What data is to an objective: the linear map A and the targets, wherever their rows are."""

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
    """Rows cannot be reached, and did not come back in time; a run goes on from its last checkpoint."""


@dataclass(frozen=True)
class Fold:
    """The rows inside of one of some folds, or all others; rows are dealt to the folds at random, by the seed."""

    seed: int
    folds: int
    fold: int
    inside: bool


class Data(ABC):
    """A linear map A from parameters to one prediction a row, with a target and a weight for each row.

    Runs touch rows in a workspace, which `open` gives, and nowhere else: rows may lie on other machines. Weights are
    normalised to the sum one, so that every mean is a weighted sum.

    Attributes
    ----------
    n : int
        Number of rows.
    column_stats : ColumnStats
        Means and sizes of columns and rows, found in one read.
    rounding_units : float
        A number k such that each sum over rows errs by at most k units of rounding of its absolute terms.
    feature_names : tuple of str or None
        Names of the columns, where the table had some.
    total_weight : float or None
        The sum of the sample weights as they were given; None where each row counts one.

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
        """A new workspace, which remembers nothing."""

    @abstractmethod
    def with_targets(self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None) -> Data:
        """The same rows with other targets, their weights multiplied by what ``reweight`` makes of the present ones."""

    @abstractmethod
    def subset(self, rows: Array | Fold) -> Data:
        """Some of the rows as data of their own, by their numbers or as they were dealt to folds."""

    @abstractmethod
    def labels(self) -> list[Array]:
        """The labels that rows with some weight have, for each output in increasing order."""

    def mean_target(self) -> Array:
        """The weighted mean of the targets, of shape ``()`` or ``(k,)``."""
        workspace, mean = self.open(), np.zeros(())
        for _ in range(2):  # the second turn takes off the rounding of the first
            mean = mean + workspace.fold(TargetSum(mean), ())
        return np.asarray(mean)

    @abstractmethod
    def quantile(self, q: float) -> Array:
        """A quantile of the targets, without weights; approximate between 0 and 1 where rows are elsewhere."""

    @abstractmethod
    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a parameter whose images have the trailing shape ``outputs``."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash that tells this data from other data."""

    @abstractmethod
    def gram(self) -> Gram:
        """Moments of features and targets, in one pass: all that least squares needs, and open for more rows."""

    def standardized(self, centre: Any, scale: Any) -> Data:
        """The rows ``(x_i - centre) / scale``, entry by entry, as a view: nothing is copied."""
        raise TypeError(f"{type(self).__name__} does not standardise its features; scale the table itself.")
