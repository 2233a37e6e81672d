"""`as_data`: one door for every kind of data; neither pandas nor polars is imported for frames."""

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
    """The data behind an objective.

    Parameters
    ----------
    X : array of shape (n, d), SciPy sparse, data frame, Entries, path or source
        A table of features, or the places of the observed entries of a matrix. Arrays and CSR are not copied, unless
        their byte order is not that of this machine; masked entries are refused like NaN. Frames of pandas and polars
        must have numeric columns, whose names become ``feature_names``. Tables outside memory are the path of a .npy
        file, a Parquet file or a folder of those, a memory map, or anything with row slices, such as a data set of h5py
        or an array of Zarr. Dask arrays and data frames, and lists of delayed or future blocks, stay where they are:
        see "Beyond one machine" in the documentation.
    y : array of shape (n,) or (n, k), str or list of str
        Targets; with two dimensions the parameter is a matrix of shape ``(d, k)``. With Parquet also the name of a
        column, or several.
    sample_weight : array of shape (n,) or str, optional
        Non-negative weights; the objective is the weighted mean over rows. With Parquet also the name of a column.
    centre, scale : bool or array of shape (d,)
        Whether features are centred by their weighted means and divided by their weighted standard deviations (1 for
        constant columns), or the numbers to use. Nothing is copied.
    columns : sequence of str, optional
        With Parquet, the columns that are features; by default all that are neither targets nor weights.
    memory : int
        Bytes that a pass over a table outside memory may use for buffers.
    threads : int, optional
        Threads of a pass; as many as there are cores by default.
    client : distributed.Client, optional
        The cluster of Dask collections, and of Parquet folders that it is to read; by default the active client for
        collections. Without a client their blocks are computed here, one after the other.
    patience : float
        Seconds that a round waits while the cluster has no worker.

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
        if type(X) is np.ndarray and columns is None:  # by far the most frequent
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
    """The data that is no array."""
    # What arrays do without is imported where it is used, here as elsewhere.
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
        from projfree.data.sparse import SparseData  # brings in SciPy, which dense data do without

        return SparseData(X, y, sample_weight, threads, names)
    return DenseData(X, y, sample_weight, threads, names)


NUMERIC = "fiub"


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection, or a list of delayed or future blocks; told without importing Dask."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    return hasattr(first, "__dask_graph__") or _is_future(first)


def is_dask_block(X: Any) -> bool:
    """Whether X is a single block, delayed or future; told without importing Dask."""
    delayed = sys.modules.get("dask.delayed")
    return _is_future(X) or (delayed is not None and isinstance(X, delayed.Delayed))


def _is_future(X: Any) -> bool:
    return type(X).__name__ == "Future" and hasattr(X, "key")


def is_frame(X: Any) -> bool:
    """Whether this is a table with named columns of their own types: pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "to_numpy")


def from_frame(name: str, frame: Any) -> tuple[Any, tuple[str, ...]]:
    """The table and the names of its columns; columns that are not numbers are refused, and missing values are NaN.

    A frame whose columns are one block of float32 or float64 is not copied (pandas keeps it so where the frame was made
    from an array; polars where its columns lie behind each other). A pandas frame of sparse columns stays sparse.
    """
    names = tuple(str(column) for column in frame.columns)
    for column, dtype in zip(names, frame.dtypes, strict=True):
        if _kind(dtype) not in NUMERIC:
            raise TypeError(
                f"`{name}` must have numeric columns, got column {column!r} of type {dtype}; encode it as numbers, or "
                "leave it out."
            )
    if names and all(hasattr(dtype, "fill_value") for dtype in frame.dtypes):
        return frame.sparse.to_coo(), names  # which refuses other values than zero for what is not stored
    return _numbers(frame, set(frame.dtypes)), names


def _kind(dtype: Any) -> str:
    """The kind of numbers, in NumPy's letters; polars types go by their names."""
    kind = getattr(dtype, "kind", None)
    if isinstance(kind, str):
        return kind
    return "f" if str(dtype).startswith(("Int", "UInt", "Float", "Boolean")) else "O"


def _numbers(values: Any, kinds: set[Any]) -> Array:
    """A frame or a series as an array, with NaN where a value is missing."""
    pandas = hasattr(values, "iloc")
    if pandas and (len(kinds) > 1 or not all(isinstance(kind, np.dtype) for kind in kinds)):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values.to_numpy())


def from_series(name: str, values: Any) -> Any:
    """Targets or weights from a series or a frame; anything else is handed through."""
    if is_frame(values):
        return from_frame(name, values)[0]
    if not (hasattr(values, "to_numpy") and hasattr(values, "dtype") and hasattr(values, "name")):
        return values
    if _kind(values.dtype) not in NUMERIC:
        raise TypeError(f"`{name}` must hold real numbers, got a series of type {values.dtype}; encode it as numbers.")
    return _numbers(values, {values.dtype})
