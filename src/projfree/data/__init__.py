"""The linear map and the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from projfree.data.base import Data
from projfree.data.chunked import ChunkedData
from projfree.data.convert import as_data
from projfree.data.dense import DenseData
from projfree.data.entries import Entries, EntriesData
from projfree.data.gram import Gram
from projfree.data.local import LocalData
from projfree.data.sources import ChangedError, NpySource, ParquetSource, SliceSource, Source, csv_to_parquet
from projfree.data.standardized import Standardized

if TYPE_CHECKING:
    from projfree.data.sparse import SparseData

__all__ = [
    "ChangedError",
    "ChunkedData",
    "Data",
    "DenseData",
    "Entries",
    "EntriesData",
    "Gram",
    "LocalData",
    "NpySource",
    "ParquetSource",
    "SliceSource",
    "Source",
    "SparseData",
    "Standardized",
    "as_data",
    "csv_to_parquet",
]


def __getattr__(name: str) -> Any:
    if name == "SparseData":  # on first use, because it brings in SciPy
        from projfree.data.sparse import SparseData

        return SparseData
    raise AttributeError(f"module 'projfree.data' has no attribute {name!r}")
