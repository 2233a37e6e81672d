"""The linear map and the targets."""

from projfree.data.base import Data
from projfree.data.chunked import ChunkedData
from projfree.data.convert import as_data
from projfree.data.dense import DenseData
from projfree.data.entries import Entries, EntriesData
from projfree.data.gram import Gram
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
    "NpySource",
    "ParquetSource",
    "SliceSource",
    "Source",
    "SparseData",
    "Standardized",
    "as_data",
    "csv_to_parquet",
]
