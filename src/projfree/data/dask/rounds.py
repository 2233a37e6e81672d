"""Rounds: evaluate a function on every partition and combine the results in a fixed binary tree over their numbers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from contextlib import suppress
from typing import Any

from projfree.data.base import RowsLostError
from projfree.data.dask.partition import Facts, Partition, naming
from projfree.data.sources import ChangedError
from projfree.deadline import Expired, expired
from projfree.runtime import default_threads, single_blas_thread

#: Node ``(l, i)`` of the tree covers the partitions ``i 2^l`` to ``(i + 1) 2^l - 1``.
Nodes = dict[tuple[int, int], Any]
Combine = Callable[[Any, Any], Any]
#: Function of a partition and a number of threads.
Work = Callable[[Partition, int], Any]


class LocalRounds:
    """Rounds without a cluster: this machine computes each block when it is needed, one at a time.

    ``facts`` are the metadata of the non-empty partitions, in order. Partitions are cached up to ``memory`` bytes.
    """

    def __init__(self, blocks: Sequence[Any], memory: int) -> None:
        self._blocks, self._memory, self._kept = list(blocks), memory, dict[int, Partition]()
        found = (self._partition(number) for number in range(len(blocks)))
        self.facts = [rows.facts for rows in found if rows is not None]

    def run(self, name: str, function: Work, combine: Combine) -> Any:
        """Evaluate a function on all partitions and combine the results pairwise."""
        nodes, threads = Nodes(), default_threads()
        for one in self.facts:
            value = leaf(one.number, one.checksum, function, self._partition(one.number), threads)
            put(nodes, (0, one.number), value, len(self._blocks), combine)
        return total([nodes], self.facts, len(self._blocks), combine)

    def _partition(self, number: int) -> Partition | None:
        rows = self._kept.get(number)
        if rows is None:
            rows = self._blocks[number].compute()
            used = sum(other.facts.nbytes for other in self._kept.values())
            if rows is not None and used + rows.facts.nbytes <= self._memory:
                self._kept[number] = rows
        return rows


class ClusterRounds:
    """Rounds on a cluster: one task for each worker, which depends on the partitions stored there.

    Partitions are results of pure tasks, to which the client keeps references. Dask recomputes them if a worker dies,
    and runs a task of a round where its partitions are: nothing is scattered or pinned to a worker. If there is no
    worker, a round waits for ``patience`` seconds.
    """

    def __init__(self, client: Any, blocks: Sequence[Any], patience: float) -> None:
        self._client, self._patience = client, patience
        self._refuse_without_scheduler()
        self._futures = list(client.compute(list(blocks)))
        try:
            tasks = client.map(lambda rows: rows and rows.facts, self._futures, key="projfree-facts", pure=False)
            found = self._results(tasks)
        except BaseException:
            for future in self._futures:  # otherwise a reference to the traceback would keep the tasks alive
                future.release()
            raise
        self.facts = [facts for facts in found if facts is not None]
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [about["memory_limit"] for about in workers if about.get("memory_limit")]
        self._task_bytes = min(limits, default=float("inf")) / 4  # leaves memory for copies and for Dask

    def __getstate__(self) -> Any:
        raise TypeError(
            "Dask data cannot be pickled, because their rows belong to a client; pickle the fitted estimator, or make "
            "the data where they are needed, with `as_data`."
        )

    def run(self, name: str, function: Work, combine: Combine) -> Any:
        """Evaluate a function on all partitions and combine the results pairwise; the dashboard shows ``name``."""
        self._refuse_without_scheduler()
        groups, count = self._groups(), len(self._futures)
        rows = [[self._futures[number] for number in checksums] for checksums in groups]
        keys = [f"projfree-{name}-{uuid.uuid4().hex}" for _ in groups]
        settings = {"function": function, "combine": combine, "count": count}
        tasks = self._client.map(run_task, groups, rows, key=keys, pure=False, **settings)
        return total(self._results(tasks), self.facts, count, combine)

    def _groups(self) -> list[dict[int, str]]:
        """Return, for each task, the checksums of its partitions by partition number.

        A task has the partitions of one worker that fit into its memory together; a partition that is being recomputed
        has a separate task. The grouping does not change the results.
        """
        held, groups = self._client.who_has(self._futures), dict[tuple[str, int], dict[int, str]]()
        size: dict[str, int] = {}
        for facts in self.facts:
            key = self._futures[facts.number].key
            worker = min(held.get(key) or (key,))
            size[worker] = size.get(worker, 0) + facts.nbytes
            groups.setdefault((worker, int(size[worker] / self._task_bytes)), {})[facts.number] = facts.checksum
        return list(groups.values())

    def _results(self, tasks: list[Any]) -> list[Any]:
        """Wait for tasks and return their results; cancel them after an error, an interrupt or a deadline."""
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
            if isinstance(error, KilledWorker | CancelledError | futures.CancelledError | CommClosedError):
                self._refuse_without_scheduler()
                raise RowsLostError(
                    f"tasks of a round were given up or cancelled ({error}), because workers died, as they do where "
                    "memory is short, or by somebody else; start workers with more memory or cut the data into smaller "
                    "partitions, make the data again with `as_data`, and go on from the checkpoint."
                ) from error
            raise

    def _wait(self, gathering: futures.Future[Any]) -> None:
        """Wait for results; raise RowsLostError if there is no worker for too long."""
        seen = time.monotonic()
        while not futures.wait([gathering], timeout=0.5).done:
            if expired():
                raise Expired
            self._refuse_without_scheduler()
            with suppress(OSError):  # the scheduler is lost; the status of the client shows it a moment later
                seen = time.monotonic() if self._client.nthreads() else seen
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


def run_task(
    checksums: dict[int, str], rows: list[Partition | None], *, function: Work, combine: Combine, count: int
) -> Nodes:
    """Evaluate a function on some partitions on a worker; return the roots of the subtrees that these complete."""
    from distributed import get_worker

    threads, nodes = max(1, get_worker().state.nthreads), Nodes()
    with single_blas_thread():
        for (number, checksum), own in zip(checksums.items(), rows, strict=True):
            put(nodes, (0, number), leaf(number, checksum, function, own, threads), count, combine)
    return nodes


def leaf(number: int, checksum: str, function: Work, rows: Partition | None, threads: int) -> Any:
    """Evaluate a function on one partition, after checking that its contents have not changed."""
    now = "of no rows" if rows is None else rows.facts.checksum
    if rows is None or now != checksum:
        raise ChangedError(
            f"partition {number} of the data was computed again to other numbers (checksum {now}, {checksum} before); "
            "sums over two versions of the data mean nothing, so make its source reproducible (seeds, files that do "
            "not change), or persist the collection first."
        )
    with naming(number):
        return function(rows, threads)


def total(parts: Iterable[Nodes], facts: Sequence[Facts], count: int, combine: Combine) -> Any:
    """Return the root of the tree, combined from parts; empty ones of the ``count`` partitions contribute nothing."""
    nodes: Nodes = {}
    for number in set(range(count)) - {one.number for one in facts}:
        put(nodes, (0, number), None, count, combine)
    for part in parts:
        for node, value in part.items():
            put(nodes, node, value, count, combine)
    (root,) = nodes.values()
    return root


def put(nodes: Nodes, node: tuple[int, int], value: Any, count: int, combine: Combine) -> None:
    """Add a node to the tree over ``count`` partitions, and combine it with its neighbours that are already there.

    A node whose right neighbour would begin after the last partition is promoted to its parent. The value of a node
    does not depend on the order of combination; None is a node without rows.
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
