"""The checked rows of a fit, and parts of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from projfree.checks import Array, is_missing, shown
from projfree.data import Data, as_data
from projfree.data.local import checked_weights


@dataclass(frozen=True, eq=False)
class Table:
    """Features, encoded targets, weights and, where there are tasks, the task of each row.

    ``X`` may be a data class that holds targets and weights itself.
    """

    X: Any
    y: Array
    weight: Array | None = None
    task: Array | None = None
    #: How many tasks there are, also where a part of the rows has fewer.
    tasks: int = 0

    @property
    def features(self) -> int:
        """How many columns there are."""
        return int(self.X.shape(())[0] if isinstance(self.X, Data) else self.X.shape[1])

    def part(self, rows: Array) -> Table:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        task = None if self.task is None else self.task[rows]
        return Table(self.X[rows], self.y[rows], weight, task, self.tasks)

    @cached_property
    def data(self) -> Data:
        """The rows as a data class."""
        return self.X if isinstance(self.X, Data) else as_data(self.X, self.y, self.weight)


def row_weights(sample_weight: Any, X: Any) -> Array | None:
    """The weights of the rows of ``X`` as numbers, none of them negative; None where there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    checked_weights(weight, len(weight))
    return weight


def take_column(X: Any, column: int | str) -> tuple[Any, Array]:
    """The table without one column, named or numbered, and that column."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        name = column
        if isinstance(column, int) and column not in names and -len(names) <= column < len(names):
            name = names[column]
        if name not in names:
            raise ValueError(f"`task` must name a column of `X`, got {shown(column)}.")
        rest = X.drop(columns=[name]) if hasattr(X, "iloc") else X.drop(name)
        return rest, _labels(np.asarray(X[name]))
    if not isinstance(column, int | np.integer):
        raise ValueError(f"`task` must be the number of a column where `X` has no names, got {shown(column)}.")
    X = X.tocsc() if hasattr(X, "tocsc") else np.asarray(X)
    if X.ndim != 2 or not -X.shape[1] <= column < X.shape[1]:
        raise ValueError(f"`task` must be the number of a column of `X`, got {shown(column)}.")
    rest = np.arange(X.shape[1]) != column % X.shape[1]
    own = X[:, [column]]
    return X[:, rest], _labels(np.ravel(own.toarray() if hasattr(own, "toarray") else own))


def _labels(found: Array) -> Array:
    """The labels of tasks, or a sentence where one is missing or they have no order."""
    if found.dtype.kind not in "fO":
        return found
    gone = np.flatnonzero(np.isnan(found) if found.dtype.kind == "f" else [is_missing(label) for label in found])
    if len(gone):
        row = int(gone[0])
        raise ValueError(f"`task` must name a column with a label in each row, got none in row {row}; fill or drop it.")
    words = 0 if found.dtype.kind == "f" else sum(isinstance(label, str) for label in found)
    if 0 < words < len(found):
        raise ValueError("`task` must name a column with labels of one kind, got text and others; make all of it text.")
    return found
