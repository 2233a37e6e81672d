"""Tables on a cluster of Dask: the rows stay where they are, steps travel there, and sums come back."""

from __future__ import annotations

from projfree.data.dask.collections import from_dask
from projfree.data.dask.dask_data import DaskData

__all__ = ["DaskData", "from_dask"]
