"""Rounds on a cluster of Dask: one task for each worker, sums back, and whatever was lost on the way made again."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from projfree.data.dask.calling import Call, Caller
from projfree.data.dask.jobs import Work
from projfree.data.dask.loading import Adopted, adopted_where_made
from projfree.data.dask.partition import Facts
from projfree.data.dask.placing import Placement
from projfree.data.dask.rounds import Rounds
from projfree.data.dask.shelf import Share, adopt, adopt_and_work, moved, work
from projfree.data.dask.tree import Node, Nodes, put, total


class ClusterRounds(Rounds):
    """The partitions as futures of pure tasks, and the workers that have them.

    Parameters
    ----------
    client : distributed.Client
        The cluster; a synchronous client.
    blocks : sequence of delayed
        Tasks that make the partitions.
    patience : float
        Seconds that a round waits while there is no worker at all.

    Notes
    -----
    Tasks that make partitions run wherever Dask likes. To ask for a worker would be fatal where all workers die: Dask
    does not start such tasks on those that join later.
    """

    def __init__(self, client: Any, blocks: Sequence[Any], patience: float) -> None:
        self.client, self.name = client, uuid.uuid4().hex[:12]
        self._caller = Caller(client, patience)
        self._futures, self._placement = list(client.compute(list(blocks))), Placement()
        self._numbers = list(range(len(blocks)))
        self.facts = []
        try:
            self._load()
        except BaseException:
            for future in self._futures:  # a traceback that somebody keeps would keep the tasks
                future.release()
            raise

    def _load(self) -> None:
        """Wait for the partitions; those without rows have no place."""
        found = self._adopted(self._numbers, adopted_where_made(self._caller, self.name, self._futures))
        self._numbers = [number for number, facts in enumerate(found) if facts is not None]
        self.facts = [facts for facts in found if facts is not None]
        self._placement.renumber(self._numbers)

    def __getstate__(self) -> Any:
        raise TypeError(
            "Dask data cannot be pickled, because their rows belong to a client; pickle the fitted estimator, or make "
            "the data where they are needed, with `as_data`."
        )

    def most_on_one_worker(self) -> int:
        """The most partitions that a worker has."""
        return self._placement.most()

    def limits(self) -> dict[str, int]:
        """The memory of each worker in bytes, zero where it has no limit."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(about.get("memory_limit") or 0) for address, about in workers.items()}

    def at_once(self, job: Work) -> Any:
        self._use_all_workers()
        count, nodes = len(self._numbers), Nodes()
        answers = self._round(job)
        found = [item for part, _ in answers for item in part.items()]
        found += self._with_rows(job, sorted(place for _, missing in answers for place in missing))
        for node, value in found:
            put(nodes, node, value, count, job.add)
        return total(nodes)

    def _round(self, job: Work) -> list[tuple[Nodes, list[int]]]:
        """One task for each worker: the sums that it has formed, and the places of what it does not have."""
        groups = self._placement.groups(range(len(self._numbers)))
        calls = [Call(partial(tuple, (self._share(job, own),)), address) for address, own in groups.items()]
        return [pickle.loads(answer) for answer in self._caller.answers(f"projfree-{job.name}", work, calls)]

    def _with_rows(self, job: Work, places: list[int]) -> list[tuple[Node, Any]]:
        """The leaves of places that were missing: a task for each, which depends on the partition and adopts it.

        So a round also ends where workers have too little memory, and Dask moves their partitions to the disk.
        """
        numbers = [self._numbers[place] for place in places]
        calls = [
            Call(partial(self._working, number, self._share(job, [place])), renew=partial(self._made_again, number))
            for place, number in zip(places, numbers, strict=True)
        ]
        answers = map(pickle.loads, self._caller.answers(f"projfree-{job.name}", adopt_and_work, calls))
        found = []
        for place, (address, facts, value) in zip(places, answers, strict=True):
            self.check(place, facts)
            self._placement.put(place, address)
            found.append(((0, place), value))
        return found

    def _share(self, job: Work, places: list[int]) -> bytes:
        """What a task has to know; as bytes, because Dask looks for tasks inside of all else."""
        from distributed.protocol.pickle import dumps  # takes what the user wrote in a script or notebook, too

        numbers = [self._numbers[place] for place in places]
        topic, leaves = self._caller.inbox.topic, len(self._numbers)
        sent: bytes = dumps(Share(self.name, places, numbers, leaves, job.some(numbers), topic))
        return sent

    def _adopted(self, numbers: list[int], known: dict[int, Adopted] | None = None) -> list[Facts | None]:
        """Have partitions taken onto shelves, but for those that are known, wherever Dask has or makes them."""
        known = {} if known is None else known
        rest = [number for number in numbers if number not in known]
        calls = [Call(partial(self._adopting, number), renew=partial(self._made_again, number)) for number in rest]
        answers = dict(zip(rest, self._caller.answers("projfree-adopt", adopt, calls), strict=True)) | known
        for number in numbers:
            address, facts = answers[number]
            place = self._numbers.index(number)
            if self.facts:
                self.check(place, facts)
            self._placement.put(place, address)
        return [answers[number][1] for number in numbers]

    def _adopting(self, number: int) -> tuple[str, int, Any]:
        return self.name, number, self._futures[number]

    def _working(self, number: int, share: bytes) -> tuple[bytes, Any]:
        return share, self._futures[number]

    def _use_all_workers(self) -> None:
        """Give workers that have joined by the last round a share of the partitions."""
        moves = self._placement.moves(self._caller.workers)
        for place, address in moves.items():
            number = self._numbers[place]
            # As a result of its own, which stays where it is; a mere copy Dask would drop.
            key = f"projfree-move-{uuid.uuid4().hex}"
            where = {"workers": [address], "allow_other_workers": True}
            self._futures[number] = self.client.submit(moved, self._futures[number], key=key, pure=False, **where)
        if moves:
            self._adopted([self._numbers[place] for place in moves])

    def _made_again(self, number: int) -> None:
        """Have a partition made again on which Dask has given up, because workers died with it."""
        if self._futures[number].status == "error":
            with suppress(KeyError):  # of a client that has no futures of what the partition is made of
                self.client.retry([self._futures[number]])
