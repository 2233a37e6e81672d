"""Tables on a Dask cluster: the rows stay on the workers, which evaluate functions of them and return sums."""

from __future__ import annotations

from projfree.data.dask.dask_data import DaskData, from_dask

__all__ = ["DaskData", "from_dask"]
