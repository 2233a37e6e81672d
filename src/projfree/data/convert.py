"""`as_data`: one door for every kind of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from projfree.checks import is_sparse
from projfree.data.base import Data
from projfree.data.blocks import MEMORY
from projfree.data.dense import DenseData
from projfree.data.frames import from_frame, from_series, is_dask, is_frame
from projfree.data.local import LocalData


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
        constant columns), or the numbers to use. Nothing is copied: see `Standardized`.
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

        there = from_dask(X, y, sample_weight, client, patience, columns, memory)
        return there if centre is False and scale is False else _standardized(there, centre, scale)
    if not isinstance(y, np.ndarray):
        y = from_series("y", y)
    if sample_weight is not None:
        sample_weight = from_series("sample_weight", sample_weight)
    if type(X) is np.ndarray and columns is None:  # by far the most frequent
        data: LocalData = DenseData(X, y, sample_weight, threads)
    else:
        data, sample_weight = _opened(X, y, sample_weight, columns, memory, threads)
    if sample_weight is not None and data.places is None:  # rows that are appended later count in these units
        with np.errstate(over="ignore"):
            data.total_weight = float(min(np.sum(sample_weight, dtype=np.float64), np.finfo(np.float64).max))
    return data if centre is False and scale is False else _standardized(data, centre, scale)


def _opened(
    X: Any, y: Any, sample_weight: Any, columns: Sequence[str] | None, memory: int, threads: int | None
) -> tuple[LocalData, Any]:
    """The data that is no array, and its weights as they were given."""
    # What arrays do without is imported where it is used, here as elsewhere.
    from projfree.data.chunked import ChunkedData
    from projfree.data.entries import Entries, EntriesData
    from projfree.data.factored_entries import FactoredEntriesData
    from projfree.data.sources import open_source

    if isinstance(X, Entries):
        entries: LocalData = (FactoredEntriesData if X.factored else EntriesData)(X, y, sample_weight)
        return entries, sample_weight
    outside = None if is_frame(X) else open_source(X, y, sample_weight, columns)
    if outside is not None:
        return ChunkedData(*outside, memory=memory, threads=threads), outside[2]
    if columns is not None:
        raise ValueError("`columns` is for Parquet files; choose the columns of `X` itself.")
    X, names = from_frame("X", X) if is_frame(X) else (X, None)
    if is_sparse(X):
        from projfree.data.sparse import SparseData  # brings in SciPy, which dense data do without

        data: LocalData = SparseData(X, y, sample_weight, threads)
    else:
        data = DenseData(X, y, sample_weight, threads)
    data.feature_names = names
    return data, sample_weight


def _standardized(data: Data, centre: Any, scale: Any) -> Data:
    from projfree.data.standardized import column_numbers

    own = data.column_stats
    shift = own.mean if centre is True else np.zeros(data.shape(())) if centre is False else centre
    by = (
        own.deviation(data.rounding_units, 1.0)
        if scale is True
        else np.ones(data.shape(()))
        if scale is False
        else scale
    )
    return data.standardized(column_numbers("centre", shift, data), by)
