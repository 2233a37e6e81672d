"""Tables on a Dask cluster: rows stay on the workers, functions are sent there, and sums come back."""

from __future__ import annotations

from projfree.data.dask.dask_data import DaskData, from_dask

__all__ = ["DaskData", "from_dask"]
