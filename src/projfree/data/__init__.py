"""The linear map and the targets."""

from projfree.data.base import Data
from projfree.data.convert import as_data
from projfree.data.dense import DenseData
from projfree.data.entries import Entries, EntriesData

__all__ = ["Data", "DenseData", "Entries", "EntriesData", "as_data"]
