"""Rounds: a function of every partition, whose results are combined in a fixed binary tree over their numbers."""

from __future__ import annotations

import asyncio
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from contextlib import suppress
from typing import Any

from projfree.data.base import RowsLostError
from projfree.data.dask.partition import Facts, Partition, naming
from projfree.data.sources.base import ChangedError
from projfree.deadline import stopper
from projfree.runtime import default_threads, single_blas

#: Seconds between two looks at the cluster while a round waits.
POLL = 0.5
#: Smaller partitions take less time than Dask's bookkeeping of a task, about a millisecond.
SMALL_BYTES, FEW = 1 << 20, 8
#: The share of a worker's memory that Dask fills before it moves results to the disk (its default).
SPILL = 0.6
#: The share of a worker's memory that the partitions of one task take: they are in memory at the same time.
TASK_SHARE = 0.25

#: Node ``(l, i)`` of the tree stands for the partitions ``i 2^l`` to ``(i + 1) 2^l - 1``.
Nodes = dict[tuple[int, int], Any]
Combine = Callable[[Any, Any], Any]
#: From a partition and a number of threads to a result.
Work = Callable[[Partition, int], Any]


class Rounds(ABC):
    """The partitions of a table, and the one way to compute something from each.

    Attributes
    ----------
    facts : list of Facts
        Of the partitions that have rows, in order.
    """

    facts: list[Facts]
    _count: int

    @abstractmethod
    def run(self, name: str, function: Work, combine: Combine) -> Any:
        """The results of a function for all partitions, combined pair by pair; ``name`` appears in the dashboard."""

    def _total(self, parts: Iterable[Nodes], combine: Combine) -> Any:
        """The root of the tree from the nodes that are known; partitions without rows contribute nothing."""
        nodes: Nodes = {}
        for number in set(range(self._count)) - {facts.number for facts in self.facts}:
            put(nodes, (0, number), None, self._count, combine)
        for part in parts:
            for node, value in part.items():
                put(nodes, node, value, self._count, combine)
        (root,) = nodes.values()
        return root


class LocalRounds(Rounds):
    """Rounds without a cluster: each block is computed on this machine when it is needed, one at a time.

    Parameters
    ----------
    blocks : sequence of delayed
        The partitions.
    memory : int
        Bytes of partitions that are kept for the next round.
    """

    def __init__(self, blocks: Sequence[Any], memory: int) -> None:
        self._blocks, self._memory, self._kept = list(blocks), memory, dict[int, Partition]()
        self._count = len(self._blocks)
        found = (self._partition(number) for number in range(self._count))
        self.facts = [rows.facts for rows in found if rows is not None]

    def run(self, name: str, function: Work, combine: Combine) -> Any:
        threads = default_threads()
        leaves = ({(0, one.number): leaf(one, function, self._partition(one.number), threads)} for one in self.facts)
        return self._total(leaves, combine)

    def _partition(self, number: int) -> Partition | None:
        rows = self._kept.get(number)
        if rows is None:
            rows = self._blocks[number].compute()
            used = sum(other.facts.nbytes for other in self._kept.values())
            if rows is not None and used + rows.facts.nbytes <= self._memory:
                self._kept[number] = rows
        return rows


class ClusterRounds(Rounds):
    """Rounds on a cluster: one task for each worker, which depends on the partitions that the worker holds.

    Partitions are results of pure tasks, which the client keeps references to. Dask makes them again where a worker
    dies, and runs a task of a round wherever its partitions are: nothing is scattered or pinned to a worker.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.
    blocks : sequence of delayed
        Tasks that build the partitions.
    patience : float
        Seconds that a round waits while the cluster has no worker.
    """

    def __init__(self, client: Any, blocks: Sequence[Any], patience: float) -> None:
        self._client, self._patience, self._count = client, patience, len(blocks)
        self._futures = list(client.compute(list(blocks)))
        try:
            found = self._results(client.map(_facts, self._futures, key="projfree-facts", pure=False))
        except BaseException:
            for future in self._futures:  # a traceback that somebody keeps would keep the tasks
                future.release()
            raise
        self.facts = [facts for facts in found if facts is not None]
        limits = self._memory_limits()
        self._task_bytes = TASK_SHARE * min(limits) if limits else float("inf")
        if self.facts:
            self._warn_about_sizes(limits)

    def __getstate__(self) -> Any:
        raise TypeError(
            "Dask data cannot be pickled, because their rows belong to a client; pickle the fitted estimator, or make "
            "the data where they are needed, with `as_data`."
        )

    def run(self, name: str, function: Work, combine: Combine) -> Any:
        self._refuse_without_scheduler()
        groups = self._groups()
        rows = [[self._futures[facts.number] for facts in group] for group in groups]
        keys = [f"projfree-{name}-{uuid.uuid4().hex}" for _ in groups]
        settings = {"function": function, "combine": combine, "count": self._count}
        tasks = self._client.map(run_task, groups, rows, key=keys, pure=False, **settings)
        return self._total(self._results(tasks), combine)

    def _groups(self) -> list[list[Facts]]:
        """The partitions of each task: those of a worker, as far as they fit into its memory together.

        Which partitions share a task never changes a digit. A partition that is being made again has a task of its own.
        """
        held = self._client.who_has(self._futures)
        groups: dict[str, list[list[Facts]]] = {}
        for facts in self.facts:
            key = self._futures[facts.number].key
            own = groups.setdefault(min(held.get(key) or (key,)), [[]])
            if own[-1] and sum(one.nbytes for one in own[-1]) + facts.nbytes > self._task_bytes:
                own.append([])
            own[-1].append(facts)
        return [group for own in groups.values() for group in own]

    def _results(self, tasks: list[Any]) -> list[Any]:
        """The results of tasks. An error, an interrupt or a deadline leaves no task behind."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        gather = self._client.gather(tasks, asynchronous=True)
        gathering = asyncio.run_coroutine_threadsafe(gather, self._client.loop.asyncio_loop)
        try:
            self._wait(gathering)
            found: list[Any] = gathering.result()
            return found
        except BaseException as error:
            gathering.cancel()
            if self._client.status == "running":
                self._client.cancel(tasks, force=True)
            if isinstance(error, KilledWorker):
                raise RowsLostError(
                    f"{error} Workers die so where memory is short: start workers with more memory or cut the data "
                    "into smaller partitions, make the data again with `as_data`, and go on from the checkpoint."
                ) from error
            if isinstance(error, CancelledError | asyncio.CancelledError | futures.CancelledError | CommClosedError):
                self._refuse_without_scheduler()
                raise RowsLostError(
                    "tasks of a round were cancelled, by somebody else or because the scheduler has gone; make the "
                    "data again with `as_data`, and go on from the checkpoint."
                ) from error
            raise

    def _wait(self, gathering: futures.Future[Any]) -> None:
        """Wait for results, but only so long without a worker."""
        stop, seen = stopper(), time.monotonic()
        while not futures.wait([gathering], timeout=POLL).done:
            stop()
            self._refuse_without_scheduler()
            with suppress(OSError):  # the scheduler has gone, as the status of the client says a moment later
                if self._client.nthreads():
                    seen = time.monotonic()
            if time.monotonic() - seen >= self._patience:
                raise RowsLostError(
                    f"no worker of {self._client.scheduler.address} was there for {self._patience:g} seconds "
                    "(`patience`), so that the rows are out of reach; start some, and go on from the checkpoint."
                )

    def _refuse_without_scheduler(self) -> None:
        if self._client.status != "running":
            raise RowsLostError(
                "the client is closed or has lost its scheduler, and the rows with it; connect anew, make the data "
                "again with `as_data`, and go on from the checkpoint."
            )

    def _memory_limits(self) -> list[int]:
        """Bytes of the workers that have a limit."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return [int(about["memory_limit"]) for about in workers if about.get("memory_limit")]

    def _warn_about_sizes(self, limits: list[int]) -> None:
        """Warn where partitions are tiny, or do not fit into the memory of the workers."""
        size, workers = sum(one.nbytes for one in self.facts), max(1, len(self._client.nthreads()))
        rows = max(1, sum(one.n for one in self.facts) // (4 * workers))
        way = f"rechunk, e.g. `X.rechunk(({rows}, -1))` or `X.repartition(npartitions={4 * workers})`"
        if len(self.facts) > FEW * workers and size < SMALL_BYTES * len(self.facts):
            mean = size / len(self.facts) / 1e3
            _warn(f"the {len(self.facts)} partitions have {mean:,.0f} kB on average, which is little for a task; {way}")
        largest = max(self.facts, key=lambda one: one.nbytes)
        if limits and largest.nbytes > min(limits):
            took, most = largest.nbytes / 1e6, min(limits) / 1e6
            _warn(f"partition {largest.number} takes {took:,.1f} MB, and a worker has {most:,.1f} MB of memory; {way}")
        elif limits and size > SPILL * sum(limits):
            _warn(
                f"the partitions take {size / 1e6:,.1f} MB, and Dask keeps about {SPILL * sum(limits) / 1e6:,.1f} MB "
                "in the memory of the workers, so that every round reads from the disk; start more workers"
            )


def _warn(text: str) -> None:
    warnings.warn(f"Dask data: {text}.", UserWarning, stacklevel=5)


def _facts(rows: Partition | None) -> Facts | None:
    return None if rows is None else rows.facts


def run_task(
    group: list[Facts], rows: list[Partition | None], *, function: Work, combine: Combine, count: int
) -> Nodes:
    """What runs on a worker: the roots of the subtrees that some partitions complete."""
    from distributed import get_worker

    threads, nodes = max(1, get_worker().state.nthreads), Nodes()
    with single_blas():
        for facts, own in zip(group, rows, strict=True):
            put(nodes, (0, facts.number), leaf(facts, function, own, threads), count, combine)
    return nodes


def leaf(facts: Facts, function: Work, rows: Partition | None, threads: int) -> Any:
    """The result of one partition, after a check that it has the same numbers as before."""
    checksum = "of no rows" if rows is None else rows.facts.checksum
    if rows is None or checksum != facts.checksum:
        raise ChangedError(
            f"partition {facts.number} of the data was computed again to other numbers (checksum {checksum}, "
            f"{facts.checksum} before); sums over two versions of the data mean nothing, so make its source "
            "reproducible (seeds, files that do not change), or persist the collection first."
        )
    with naming(facts.number):
        return function(rows, threads)


def put(nodes: Nodes, node: tuple[int, int], value: Any, count: int, combine: Combine) -> None:
    """Add a node of the tree over ``count`` partitions, and combine it with its neighbours as far as they are there.

    A node whose right neighbour would begin beyond the last partition is its parent. A node has the same bits whoever
    combines it and in whatever order; None is a node without rows.

    Examples
    --------
    >>> from projfree.data.dask.rounds import put
    >>> nodes = {}
    >>> for place, name in [(3, "d"), (1, "b"), (0, "a")]:
    ...     put(nodes, (0, place), name, 4, lambda a, b: f"({a}{b})")
    >>> nodes
    {(0, 3): 'd', (1, 0): '(ab)'}
    """
    level, place = node
    while True:
        last, other = -(-count >> level), (level, place ^ 1)  # `last` is the number of nodes of this level
        if other in nodes:
            left, right = (nodes.pop(other), value) if place % 2 else (value, nodes.pop(other))
            value = right if left is None else left if right is None else combine(left, right)
        elif place % 2 or not place + 1 >= last > 1:
            break
        level, place = level + 1, place // 2
    nodes[level, place] = value
