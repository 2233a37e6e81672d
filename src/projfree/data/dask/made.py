"""Partitions that tasks have made on the workers of this process, so that they are found without being depended on."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from projfree.data.dask.partition import Partition

#: Partitions by the keys of their tasks, for each worker; weakly, because Dask owns them.
_MADE: WeakKeyDictionary[Any, WeakValueDictionary[str, Partition]] = WeakKeyDictionary()


def noted(rows: Partition) -> Partition:
    """The partition, which the task that runs has made, noted with the worker that runs it, if there is one."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # blocks may be computed without a cluster
            worker = get_worker()
            made_by(worker)[worker.get_current_task()] = rows
    return rows


def made_by(worker: Any) -> WeakValueDictionary[str, Partition]:
    """What tasks of a worker have made and Dask still keeps in its memory."""
    return _MADE.setdefault(worker, WeakValueDictionary())
