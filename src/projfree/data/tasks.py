"""Tasks with rows of their own: (A W)_i = x_i . W[:, task_i]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array, count, is_sparse, plain_array, real_array
from projfree.data.gram import Gram
from projfree.data.local import LocalData
from projfree.data.rows import Pass
from projfree.data.sparse import SparseData, assemble, canonical_rows


class TaskData(LocalData):
    """A table whose row i belongs to one of several tasks, each with a column of coefficients of its own.

    It is a sparse table with one column for each pair of a feature and a task: row i has its entries in the columns of
    its task. Passes, weights, bounds and roundings are those of `SparseData`; here a matrix becomes a vector and back.

    Parameters
    ----------
    X : array or scipy.sparse of shape (n, d)
    y, sample_weight
        As for `as_data`; one target a row.
    task : array of int of shape (n,)
        The task of each row, from 0.
    tasks : int, optional
        How many there are; by default one more than the largest.

    Examples
    --------
    >>> import numpy as np
    >>> data = TaskData(np.array([[1.0, 2.0], [3.0, 4.0]]), [0.0, 0.0], task=[0, 1])
    >>> data.apply(np.array([[1.0, 10.0], [1.0, 10.0]])).tolist()
    [3.0, 70.0]
    """

    def __init__(self, X: Any, y: Any, task: Any, sample_weight: Any = None, tasks: int | None = None) -> None:
        task = plain_array("task", task)
        X = X if is_sparse(X) else real_array("X", X)
        if task.shape != X.shape[:1] or task.dtype.kind not in "iu" or (len(task) and task.min() < 0):
            raise ValueError(
                f"`task` must be a whole number from 0 for each of the {X.shape[0]} rows, got {task.dtype} of shape "
                f"{task.shape}; number the tasks first, e.g. with `np.unique(task, return_inverse=True)[1]`."
            )
        most = int(task.max(initial=0))
        self.features, self.tasks = int(X.shape[1]), most + 1 if tasks is None else count("tasks", tasks, most + 1)
        self._hold(SparseData(spread_out(X, task, self.tasks), y, sample_weight))
        self.total_weight = None if sample_weight is None else float(np.sum(sample_weight))

    def _hold(self, table: SparseData) -> None:
        self.table, self.n, self.y, self.weight, self.keeps_images = table, table.n, table.y, table.weight, True
        self.threads, self.rounding_units = table.threads, table.rounding_units
        self.column_stats = table.column_stats.reshaped(self.shape(()), self.features)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        if outputs:
            raise ValueError(f"Rows with a task have one target each; the loss asks for {outputs[0]}.")
        return self.features, self.tasks

    def run(self, work: Pass) -> tuple[Array, Any]:
        sums, g = self.table.run(replace(work, vectors=tuple(np.ravel(w) for w in work.vectors)))
        return sums, None if g is None else g.reshape(self.shape(()))

    def take(self, rows: Array, weight: Array | None) -> TaskData:
        part = self.alike()
        part._hold(self.table.take(rows, weight))
        return part

    def measure(self) -> None:
        table = self.table.alike()
        table.weight = self.weight
        table.measure()
        self._hold(table)

    def gram(self) -> Gram:
        return self.table.gram()

    def fingerprint(self) -> str:
        return f"tasks {self.shape(())} {self.table.fingerprint()}"


def spread_out(X: Any, task: Array, tasks: int) -> sp.csr_array:
    """The table of all pairs: entry (i, j) of X goes to column ``j * tasks + task[i]``."""
    n, d = X.shape
    table = canonical_rows(X) if is_sparse(X) else None
    most = max(d * tasks, n, n * d if table is None else table.nnz)
    index = np.int32 if most <= np.iinfo(np.int32).max else np.int64
    task = task.astype(index)
    if table is None:  # with its zeros, so that every row has d entries whatever they are
        columns = np.add.outer(task, tasks * np.arange(d, dtype=index))
        return assemble(np.ravel(X), columns.ravel(), np.arange(0, n * d + 1, d, dtype=index), (n, d * tasks))
    columns = tasks * table.indices.astype(index)
    columns += np.repeat(task, np.diff(table.indptr))
    return assemble(table.data, columns, table.indptr.astype(index), (n, d * tasks))
