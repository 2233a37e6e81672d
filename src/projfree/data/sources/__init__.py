"""Rows outside memory: .npy files, Parquet files, anything with row slices, and CSV turned into Parquet once."""

from projfree.data.sources.base import ChangedError, Source
from projfree.data.sources.csv import csv_to_parquet
from projfree.data.sources.npy import NpySource
from projfree.data.sources.parquet import ParquetSource
from projfree.data.sources.slices import SliceSource

__all__ = ["ChangedError", "NpySource", "ParquetSource", "SliceSource", "Source", "csv_to_parquet"]
