"""Which source is behind what the user gave, and the targets and weights that may be columns of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from projfree.data.sources.base import Source, existing
from projfree.data.sources.npy import NpySource
from projfree.data.sources.parquet import ParquetSource
from projfree.data.sources.slices import SliceSource


def opened(X: Any, y: Any, sample_weight: Any, columns: Sequence[str] | None) -> tuple[Source, Any, Any] | None:
    """The source, targets and weights; None where X is in memory."""
    if isinstance(X, str | os.PathLike) and _is_parquet(existing(X)):
        return _parquet(X, y, sample_weight, columns)
    source = _source(X)
    if source is None:
        return None
    if columns is not None or isinstance(y, str) or isinstance(sample_weight, str):
        raise ValueError(f"{source.name} has no names of columns; these are for Parquet files.")
    return source, y, sample_weight


def _source(X: Any) -> Source | None:
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        return NpySource(X)
    if isinstance(X, np.memmap):
        return NpySource.mapped(X) or SliceSource(X)
    return SliceSource(X) if _has_row_slices(X) else None


def _has_row_slices(X: Any) -> bool:
    """Whether X is a table outside memory: arrays in memory share it with others, sparse ones and frames are known."""
    shares = ("__array_interface__", "__dlpack__", "__dataframe__", "__dask_graph__", "tocsr")
    has = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return has and len(X.shape) == 2 and not any(hasattr(X, name) for name in shares)


def _is_parquet(path: Path) -> bool:
    if path.suffix in (".csv", ".gz", ".tsv", ".txt"):
        raise ValueError(
            f"{path} is text, which would be parsed in every pass; turn it into Parquet once with "
            "`projfree.data.csv_to_parquet`."
        )
    return path.is_dir() or path.suffix not in (".npy", ".npz")


def _parquet(
    X: str | os.PathLike[str], y: Any, sample_weight: Any, columns: Sequence[str] | None
) -> tuple[Source, Any, Any]:
    targets = [y] if isinstance(y, str) else list(y) if _names(y) else []
    weights = [sample_weight] if isinstance(sample_weight, str) else []
    source = ParquetSource(X, columns, [name for name in targets + weights if name not in (columns or ())])
    if targets:
        found = [source.vector(name) for name in targets]
        y = found[0] if isinstance(y, str) else np.stack(found, axis=1)
    return source, y, source.vector(weights[0]) if weights else sample_weight


def _names(y: Any) -> bool:
    return isinstance(y, list | tuple) and len(y) > 0 and all(isinstance(name, str) for name in y)
