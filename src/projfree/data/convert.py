"""`as_data`: convert any supported kind of table to `Data`, without importing pandas or polars."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree.checks import Array, is_sparse
from projfree.data.base import Data
from projfree.data.local import LocalData
from projfree.data.rows import MEMORY
from projfree.data.tables import DenseData


def as_data(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    centre: Any = False,
    scale: Any = False,
    columns: Sequence[str] | None = None,
    memory: int = MEMORY,
    threads: int | None = None,
    client: Any = None,
    patience: float = 60.0,
) -> Any:
    """Convert a table, targets and sample weights to a `Data` object.

    Parameters
    ----------
    X : array of shape (n, d), SciPy sparse, data frame, Entries, path or source
        A table of features, or the positions of the observed entries of a matrix. Arrays and CSR matrices are not
        copied unless their byte order is not the native one; masked entries raise an error, like NaN. Data frames of
        pandas and polars must have numeric columns, whose names become ``feature_names``. Tables in files are given by
        the path of a .npy file, a Parquet file or a folder of Parquet files, a memory map, or any array that supports
        row slices, such as a data set of h5py or an array of Zarr. Dask arrays and data frames, and lists of delayed or
        future blocks, stay on their workers: see "Beyond one machine" in the documentation.
    y : array of shape (n,) or (n, k), str or list of str
        Targets; if two-dimensional, the parameter is a matrix of shape ``(d, k)``. For Parquet, also the name of a
        column or a list of names.
    sample_weight : array of shape (n,) or str, optional
        Non-negative weights; the objective is the weighted mean over the rows. For Parquet, also the name of a column.
    centre, scale : bool or array of shape (d,)
        Whether to subtract the weighted means from the features and to divide them by their weighted standard
        deviations (1 for constant columns), or the numbers to use. Nothing is copied.
    columns : sequence of str, optional
        For Parquet, the names of the feature columns; by default all that are neither targets nor weights.
    memory : int
        Maximum number of bytes that a pass over a table in a file uses for buffers.
    threads : int, optional
        Number of threads of a pass; by default the number of cores.
    client : distributed.Client, optional
        Dask client for collections, or for Parquet folders that its workers should read; by default the active client
        for collections. Without a client, the blocks are computed on this machine one after the other.
    patience : float
        Number of seconds to wait if the cluster has no worker.

    Returns
    -------
    Data

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Entries, as_data
    >>> as_data(np.eye(3), [1, 2, 3]).n
    3
    >>> as_data(Entries([0, 1], [1, 0], shape=(2, 2)), [4.0, 5.0]).n
    2
    """
    if isinstance(X, Data):
        raise TypeError("`as_data` takes an array or Entries; this is data already, pass it to the objective as it is.")
    if client is not None or (type(X) is not np.ndarray and is_dask(X)):
        from projfree.data.dask import from_dask

        data: Data = from_dask(X, y, sample_weight, client, patience, columns, memory)
    else:
        y = y if isinstance(y, np.ndarray) else from_series("y", y)
        weight = None if sample_weight is None else from_series("sample_weight", sample_weight)
        if type(X) is np.ndarray and columns is None:  # the most frequent case
            data = DenseData(X, y, weight, threads)
        else:
            data = _opened(X, y, weight, columns, memory, threads)
    if centre is False and scale is False:
        return data
    own = data.column_stats
    if isinstance(centre, bool):
        centre = own.mean if centre else np.zeros(data.shape(()))
    if isinstance(scale, bool):
        scale = own.deviation(data.rounding_units, 1.0) if scale else np.ones(data.shape(()))
    return data.standardized(centre, scale)


def _opened(
    X: Any, y: Any, sample_weight: Any, columns: Sequence[str] | None, memory: int, threads: int | None
) -> LocalData:
    """Convert data other than NumPy arrays."""
    # Import only here what NumPy arrays do not need.
    from projfree.data.entries import Entries, EntriesData
    from projfree.data.sources import open_source
    from projfree.data.tables import ChunkedData

    if isinstance(X, Entries):
        return EntriesData(X, y, sample_weight)
    outside = None if is_frame(X) else open_source(X, y, sample_weight, columns)
    if outside is not None:
        return ChunkedData(*outside, memory=memory, threads=threads)
    if columns is not None:
        raise ValueError("`columns` is for Parquet files; choose the columns of `X` itself.")
    X, names = from_frame("X", X) if is_frame(X) else (X, None)
    if is_sparse(X):
        from projfree.data.sparse import SparseData  # imports SciPy, which dense data do not need

        return SparseData(X, y, sample_weight, threads, names)
    return DenseData(X, y, sample_weight, threads, names)


NUMERIC = "fiub"


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, or a list of delayed or future blocks, without importing Dask."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    return hasattr(first, "__dask_graph__") or _is_future(first)


def is_dask_block(X: Any) -> bool:
    """Return whether X is a single delayed or future block, without importing Dask."""
    delayed = sys.modules.get("dask.delayed")
    return _is_future(X) or (delayed is not None and isinstance(X, delayed.Delayed))


def _is_future(X: Any) -> bool:
    return type(X).__name__ == "Future" and hasattr(X, "key")


def is_frame(X: Any) -> bool:
    """Return whether X is a pandas or polars data frame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "to_numpy")


def from_frame(name: str, frame: Any) -> tuple[Any, tuple[str, ...]]:
    """Convert a data frame to an array and its column names; missing values become NaN.

    Columns that are not numeric raise an error. A frame whose columns are one block of float32 or float64 in memory is
    not copied, for example a pandas frame created from an array. A pandas frame of sparse columns stays sparse.
    """
    names = tuple(str(column) for column in frame.columns)
    for column, dtype in zip(names, frame.dtypes, strict=True):
        if _kind(dtype) not in NUMERIC:
            raise TypeError(
                f"`{name}` must have numeric columns, got column {column!r} of type {dtype}; encode it as numbers, or "
                "leave it out."
            )
    if names and all(hasattr(dtype, "fill_value") for dtype in frame.dtypes):
        return frame.sparse.to_coo(), names  # `to_coo` raises an error if the fill value is not zero
    return _numbers(frame, set(frame.dtypes)), names


def _kind(dtype: Any) -> str:
    """Return the kind of a dtype as NumPy's letter; polars types are recognised by name."""
    kind = getattr(dtype, "kind", None)
    if isinstance(kind, str):
        return kind
    return "f" if str(dtype).startswith(("Int", "UInt", "Float", "Boolean")) else "O"


def _numbers(values: Any, kinds: set[Any]) -> Array:
    """Convert a frame or a series to an array, with NaN for missing values."""
    pandas = hasattr(values, "iloc")
    if pandas and (len(kinds) > 1 or not all(isinstance(kind, np.dtype) for kind in kinds)):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values.to_numpy())


def from_series(name: str, values: Any) -> Any:
    """Convert targets or weights from a series or a frame to an array; return other objects unchanged."""
    if is_frame(values):
        return from_frame(name, values)[0]
    if not (hasattr(values, "to_numpy") and hasattr(values, "dtype") and hasattr(values, "name")):
        return values
    if _kind(values.dtype) not in NUMERIC:
        raise TypeError(f"`{name}` must hold real numbers, got a series of type {values.dtype}; encode it as numbers.")
    return _numbers(values, {values.dtype})
