"""The linear map and the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.data.base import Data
from projfree.data.convert import as_data
from projfree.data.dense import DenseData
from projfree.data.gram import Gram
from projfree.data.local import LocalData
from projfree.first_use import on_first_use

if TYPE_CHECKING:
    from projfree.data.chunked import ChunkedData
    from projfree.data.entries import Entries, EntriesData
    from projfree.data.sources import ChangedError, NpySource, ParquetSource, SliceSource, Source, csv_to_parquet
    from projfree.data.sparse import SparseData
    from projfree.data.standardized import Standardized

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

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        ".chunked": ("ChunkedData",),
        ".entries": ("Entries", "EntriesData"),
        ".sources": ("ChangedError", "NpySource", "ParquetSource", "SliceSource", "Source", "csv_to_parquet"),
        ".sparse": ("SparseData",),
        ".standardized": ("Standardized",),
    },
)
