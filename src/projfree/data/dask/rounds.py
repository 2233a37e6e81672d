"""Rounds over partitions, and those without a cluster: blocks are computed here, one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from projfree.data.dask.jobs import Work
from projfree.data.dask.making import Naming
from projfree.data.dask.meeting import MEETING
from projfree.data.dask.partition import Facts, Partition
from projfree.data.dask.tree import Nodes, put, total
from projfree.data.sources import ChangedError
from projfree.runtime import default_threads


class Rounds(ABC):
    """The partitions of a table, wherever they are, and the one way to have something done with each.

    Attributes
    ----------
    facts : list of Facts
        Of the partitions that have rows, in order.
    """

    facts: list[Facts]

    def run(self, job: Work) -> Any:
        """The results of a job for all partitions, put together in the fixed tree over their numbers."""
        meeting = MEETING.get()
        return self.at_once(job) if meeting is None or meeting.rounds is not self else meeting.ask(job)

    @abstractmethod
    def at_once(self, job: Work) -> Any:
        """The same in a round of its own."""

    def check(self, place: int, now: Facts | None) -> None:
        """Refuse a partition that was computed again to other numbers: bounds over data that move are none."""
        then, checksum = self.facts[place], "of no rows" if now is None else now.checksum
        if then.checksum != checksum:
            raise ChangedError(
                f"partition {then.number} of the data was computed again to other numbers (checksum {checksum}, "
                f"{then.checksum} before); sums over two versions of the data mean nothing, so make its source "
                "reproducible (seeds, files that do not change), or persist the collection first."
            )


class LocalRounds(Rounds):
    """Rounds on this machine: each block is computed when it is needed.

    Parameters
    ----------
    blocks : sequence of delayed
        The partitions.
    memory : int
        Bytes of partitions that are kept for the next round, the ones used most recently.
    """

    def __init__(self, blocks: Sequence[Any], memory: int) -> None:
        self._memory, self._kept = memory, dict[int, Partition]()
        self._blocks, self.facts = list(blocks), []
        found = [(block, rows.facts) for block, rows in zip(blocks, self._all(), strict=True) if rows is not None]
        self._blocks, self.facts = [block for block, _ in found], [facts for _, facts in found]
        self._kept = {}  # by other places than those that count now

    def at_once(self, job: Work) -> Any:
        nodes: Nodes = {}
        count, threads = len(self._blocks), default_threads()
        for place, rows in enumerate(self._all()):
            assert rows is not None
            with Naming(rows.facts.number):
                put(nodes, (0, place), job.on(rows, threads), count, job.add)
        return total(nodes)

    def _all(self) -> Iterator[Partition | None]:
        for place in range(len(self._blocks)):
            yield self._partition(place)

    def _partition(self, place: int) -> Partition | None:
        if place in self._kept:
            return self._kept[place]
        rows: Partition | None = self._blocks[place].compute()
        if self.facts:
            self.check(place, None if rows is None else rows.facts)
        if rows is None:
            return None
        if rows.facts.nbytes + sum(other.facts.nbytes for other in self._kept.values()) <= self._memory:
            self._kept[place] = rows
        return rows
