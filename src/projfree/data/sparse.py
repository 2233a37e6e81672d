"""Sparse tables in memory, in compressed rows, including those of multi-task problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array, count, is_sparse, plain_array, real_array
from projfree.data.column_stats import ColumnStats
from projfree.data.rows import MAX_BLOCKS, Blocks
from projfree.data.tables import MemoryTable

#: Smallest number of entries per block, so that a block pays for its function calls, and smallest number of entries per
#: coefficient, so that they pay for adding up the adjoints of the blocks.
BLOCK_ENTRIES, ADJOINT_ENTRIES = 1 << 17, 16


class SparseData(MemoryTable):
    """A SciPy sparse matrix or array with targets.

    CSR with float32 or float64 values is not copied and must not be modified afterwards; other formats are converted to
    CSR once. Unsorted or duplicate column indices are sorted and summed in a copy. The CSC form is computed when
    columns are first needed. A pass reads the stored entries once, in compiled code for one output and large tables,
    otherwise by SciPy's products, block by block.
    """

    caches_predictions = True

    def _checked(self, X: Any) -> sp.csr_array:
        return canonical_rows(X)

    def _set_rows(self, n: int, y: Array, weight: Array | None) -> None:
        self.n, self.y, self.weight, self._by_column = n, y, weight, list[Any]()  # computed when first needed
        entries = int(self.X.nnz)
        self.nbytes = 12 * entries  # whatever the dtype of the indices
        # Limit the number of blocks, so that the adjoints of all blocks have far fewer numbers than the table.
        cut = Blocks.of(n, min(MAX_BLOCKS, entries // BLOCK_ENTRIES, entries // (ADJOINT_ENTRIES * self.d)))
        self.row_bytes = self.nbytes / n
        self._set_blocks(cut, cut.rows)

    def columns(self, features: Array | slice) -> sp.csc_array:
        if not self._by_column:  # shared with copies that have other targets
            self._by_column.append(self.X.tocsc())
        return self._by_column[0][:, features].astype(np.float64, copy=False)


def canonical_rows(X: Any) -> sp.csr_array:
    """Convert a SciPy sparse matrix or array to CSR of floats with sorted and distinct column indices.

    CSR with float32 or float64 values and sorted indices shares its memory with the result. Explicit zeros stay. Sparse
    products and compiled code do not check indices, so invalid ones raise an error here; whether the values are finite
    is checked when the column statistics are computed.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
    if X.dtype.kind not in "iub" and X.dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise TypeError(
            f"`X` must hold real numbers, got dtype {X.dtype}; convert it first, e.g. with `.astype(float)`."
        )
    try:
        own = X
        if hasattr(X, "check_format"):  # conversions do not check their input
            own = type(X)(X)  # shares the arrays: the check removes unused space behind the last entry
            own.check_format(full_check=True)
        rows = sp.csr_array(own)
    except ValueError as error:
        raise ValueError(
            f"`X` is not a sound sparse matrix: {error}; build it anew from triplets, with "
            "`scipy.sparse.coo_array((values, (rows, columns)), shape)`."
        ) from None
    if not rows.has_canonical_format:
        rows = rows.copy() if np.shares_memory(rows.indices, getattr(own, "indices", rows.data)) else rows
        rows.sum_duplicates()
    dtype = np.float32 if rows.dtype.newbyteorder("=") == np.float32 else np.float64
    rows.data = np.ascontiguousarray(rows.data, dtype=dtype)
    return rows


class TaskData(SparseData):
    """A table for multi-task problems: row i belongs to one task, and each task has a column of coefficients.

    It is a sparse table with one column for each pair of a feature and a task: row i has its entries in the columns of
    its task. The parameter is a matrix, which passes use as a flat vector.

    Parameters
    ----------
    X : array or scipy.sparse of shape (n, d)
        Features.
    y, sample_weight
        As for `as_data`; one target per row.
    task : array of int of shape (n,)
        Task of each row, from 0.
    tasks : int, optional
        Number of tasks; by default one more than the largest entry of ``task``.

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
        super().__init__(expand_tasks(X, task, self.tasks), y, sample_weight)

    def _set_stats(self, stats: ColumnStats) -> None:
        super()._set_stats(stats)
        self.column_stats = self.column_stats.reshaped(self.shape(()), self.features)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        if outputs:
            raise ValueError(f"Rows with a task have one target each; the loss asks for {outputs[0]}.")
        return self.features, self.tasks


def expand_tasks(X: Any, task: Array, tasks: int) -> sp.csr_array:
    """Return the sparse table of all (feature, task) pairs: entry (i, j) moves to column ``j * tasks + task[i]``."""
    (n, d), table = X.shape, canonical_rows(X if is_sparse(X) else sp.csr_array(X))
    index = np.int32 if max(d * tasks, n, table.nnz) <= np.iinfo(np.int32).max else np.int64
    columns = tasks * table.indices.astype(index)
    columns += np.repeat(task.astype(index), np.diff(table.indptr))
    return sp.csr_array((table.data, columns, table.indptr.astype(index)), (n, d * tasks))
