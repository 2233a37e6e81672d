"""What runs on a worker: partitions are taken onto its shelf, and a round works on those that are there.

A shelf refers to partitions weakly: they are the results of tasks, which Dask owns. Where the futures go, where a
worker is restarted or where Dask moves a partition to the disk, the shelf has it no longer, and the client has it
adopted anew.
"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from projfree.data.dask.inbox import answered
from projfree.data.dask.jobs import Work
from projfree.data.dask.made import made_by
from projfree.data.dask.making import Naming
from projfree.data.dask.partition import Facts, Partition
from projfree.data.dask.tree import Nodes, put
from projfree.runtime import single_blas

#: The partitions of each worker of this process, by the name of the data and their number.
_SHELVES: WeakKeyDictionary[Any, WeakValueDictionary[tuple[str, int], Partition]] = WeakKeyDictionary()


def _shelf() -> tuple[WeakValueDictionary[tuple[str, int], Partition], Any]:
    from distributed import get_worker

    worker = get_worker()
    return _SHELVES.setdefault(worker, WeakValueDictionary()), worker


def adopt(data: str, number: int, rows: Partition | None) -> tuple[str, Facts | None]:
    """Take a partition onto the shelf of this worker; the worker's address and what there is to know about it."""
    shelf, worker = _shelf()
    if rows is None:
        return worker.address, None
    shelf[data, number] = rows
    return worker.address, rows.facts


def adopt_made(sent: bytes) -> bytes:
    """`adopt` for those of some partitions that were made here: the address, and what to know about each by number."""
    shelf, worker = _shelf()
    data, own, topic = pickle.loads(sent)
    found = {number: rows for number, key in own if (rows := made_by(worker).get(key)) is not None}
    for number, rows in found.items():
        shelf[data, number] = rows
    return answered(worker, topic, (worker.address, {number: rows.facts for number, rows in found.items()}))


def moved(rows: Partition | None) -> Partition | None:
    """The partition itself, as the result of a task of its own on another worker."""
    return rows


class Share(NamedTuple):
    """A worker's share of a round: the partitions that it should have, and what is computed of them.

    Places in the tree are those among the partitions that have rows, ``leaves`` of them. Short answers are sent to
    ``topic``.
    """

    data: str
    places: list[int]
    numbers: list[int]
    leaves: int
    job: Work
    topic: str


def adopt_and_work(sent: bytes, rows: Partition | None) -> bytes:
    """A round on one partition, which is at hand and taken onto the shelf: what `adopt` returns, and the result."""
    share, (_, worker) = Share(*pickle.loads(sent)), _shelf()
    (number,) = share.numbers
    address, facts = adopt(share.data, number, rows)
    value = None
    if rows is not None:
        with single_blas():
            value = _on(rows, share.job, worker)
    return answered(worker, share.topic, (address, facts, value))


def _on(rows: Partition, job: Work, worker: Any) -> Any:
    with Naming(rows.facts.number), rows.in_use():
        return job.on(rows, max(1, worker.state.nthreads))


def work(sent: bytes) -> bytes:
    """One round on this worker: the roots of its complete subtrees, and the places of partitions that are not here.

    It never fetches anything: the client decides where partitions are.
    """
    shelf, worker = _shelf()
    data, places, numbers, count, job, topic = pickle.loads(sent)
    nodes: Nodes = {}
    missing = []
    with single_blas():
        for place, number in zip(places, numbers, strict=True):
            rows = shelf.get((data, number))
            if rows is None:
                missing.append(place)
                continue
            put(nodes, (0, place), _on(rows, job, worker), count, job.add)
    return answered(worker, topic, (nodes, missing))
