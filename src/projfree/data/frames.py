"""Data frames: numeric columns as an array, told by what they can do; neither pandas nor polars is imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from projfree.checks import Array, shown

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


def from_frame(name: str, frame: Any, *, missing: bool = False) -> tuple[Any, tuple[str, ...]]:
    """The table and the names of its columns.

    A frame whose columns are one block of float32 or float64 is not copied (pandas keeps it so where the frame was made
    from an array; polars where its columns lie behind each other). A pandas frame of sparse columns stays sparse.
    Other frames become one float64 array. Columns that are not numbers are refused, and so are missing values, unless
    ``missing`` says that NaN, and infinity, are for whoever asks.
    """
    names = tuple(str(column) for column in frame.columns)
    for column, dtype in zip(names, frame.dtypes, strict=True):
        if _kind(dtype) not in NUMERIC:
            raise TypeError(
                f"`{name}` must have numeric columns, got column {column!r} of type {dtype}; encode it as numbers, or "
                "leave it out."
            )
    if all(hasattr(dtype, "fill_value") for dtype in frame.dtypes) and len(names):
        return _sparse(name, frame), names
    table = _table(frame)
    for j, column in enumerate(names if not missing else ()):
        _refuse_missing(name, f" in column {column!r}", table[:, j])
    return table, names


def _kind(dtype: Any) -> str:
    """The kind of numbers, in NumPy's letters; polars types go by their names."""
    kind = getattr(dtype, "kind", None)
    if isinstance(kind, str):
        return kind
    text = str(dtype)
    return "f" if text.startswith(("Int", "UInt", "Float", "Boolean")) else "O"


def _table(frame: Any) -> Array:
    kinds = set(frame.dtypes)
    if not hasattr(frame, "iloc") or (len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype)):
        return np.asarray(frame.to_numpy())  # one type: a view where the frame has it as one block
    table = np.empty(frame.shape, order="F")
    for j in range(frame.shape[1]):
        table[:, j] = _numbers(frame.iloc[:, j])
    return table


def _numbers(series: Any) -> Array:
    """A column as floats, with NaN where a value is missing."""
    if isinstance(series.dtype, np.dtype) or not hasattr(series, "iloc"):
        return np.asarray(series.to_numpy())
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _sparse(name: str, frame: Any) -> Any:
    for column, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if dtype.fill_value != 0:
            raise ValueError(
                f"`{name}` has the sparse column {str(column)!r} with fill value {shown(dtype.fill_value)}; only 0 "
                "stays sparse, use `frame.sparse.to_dense()`."
            )
    return frame.sparse.to_coo()


def _refuse_missing(name: str, where: str, column: Array) -> None:
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(
            f"`{name}` must be finite, got {shown(column[row])}{where} at row {row}; drop or impute such entries first."
        )


def from_series(name: str, values: Any) -> Any:
    """Targets or weights from a series or a frame; anything else is handed through."""
    if values is None or isinstance(values, np.ndarray):
        return values
    if is_frame(values):
        return from_frame(name, values)[0]
    if not (hasattr(values, "to_numpy") and hasattr(values, "dtype") and hasattr(values, "name")):
        return values
    if _kind(values.dtype) not in NUMERIC:
        raise TypeError(f"`{name}` must hold real numbers, got a series of type {values.dtype}; encode it as numbers.")
    column = _numbers(values)
    _refuse_missing(name, "", column)
    return column
