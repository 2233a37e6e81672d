"""Rounds on a cluster of Dask: one task for each worker, sums back, and whatever was lost on the way made again."""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from projfree.data.base import RowsLostError
from projfree.data.dask.jobs import Job
from projfree.data.dask.partition import Facts
from projfree.data.dask.placing import Placement
from projfree.data.dask.rounds import Rounds
from projfree.data.dask.shelf import adopt, moved, work
from projfree.data.dask.tree import Nodes, joined, total
from projfree.deadline import stopper

#: Seconds between two looks at whether there are workers, while a round waits.
POLL = 0.5
#: How often a task that was said to have killed its workers is tried again, under a new key.
RETRIES = 5
#: Seconds that an answer may take to arrive, at first; a large one may take longer, and is asked for again.
GATHER = 30.0
#: Tasks are drawn before those of others that wait: a round is short, and many are to come.
PRIORITY = 10

#: The name of a task, its function and arguments, and the workers where it should run.
Call = tuple[str, Callable[..., Any], tuple[Any, ...], list[str] | None]


class ClusterRounds(Rounds):
    """The partitions as futures of pure tasks, and the workers that have them.

    Parameters
    ----------
    client : distributed.Client
        The cluster; a synchronous client.
    futures : sequence of Future
        Of the partitions.
    patience : float
        Seconds that a round waits while there is no worker at all.
    """

    def __init__(self, client: Any, futures: Sequence[Any], patience: float) -> None:
        self.client, self.patience, self.name = client, patience, uuid.uuid4().hex[:12]
        self._futures, self.facts = list(futures), []
        self._numbers = list(range(len(futures)))
        self._placement = Placement()
        found = self._adopted(self._numbers)
        # Partitions without rows have no place.
        self._numbers = [number for number, facts in enumerate(found) if facts is not None]
        self.facts = [facts for facts in found if facts is not None]
        self._placement.renumber(self._numbers)

    def most_on_one_worker(self) -> int:
        """The most partitions that a worker has."""
        return self._placement.most()

    def limits(self) -> dict[str, int]:
        """The memory of each worker in bytes, zero where it has no limit."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(about.get("memory_limit") or 0) for address, about in workers.items()}

    def run(self, job: Job) -> Any:
        self._use_all_workers()
        count, nodes = len(self._numbers), Nodes()
        open_places = list(range(count))
        while open_places:
            answers = self._round(job, open_places, count)
            open_places = sorted(place for _, missing in answers for place in missing)
            for part, _ in answers:
                nodes.update(part)
            nodes = joined(nodes, count, job.add)
            if open_places:
                self._adopted([self._numbers[place] for place in open_places])
        return total(nodes, count, job.add)

    def _round(self, job: Job, places: list[int], count: int) -> list[tuple[Nodes, list[int]]]:
        """One task for each worker that has some of the places."""
        calls: list[Call] = []
        for address, own in self._placement.groups(places).items():
            numbers = [self._numbers[place] for place in own]
            sent = pickle.dumps(job.some([self.facts[place].number for place in own]), protocol=5)
            calls.append((f"projfree-{job.name}", work, (self.name, own, numbers, count, sent), [address]))
        return self._called(calls)

    def _adopted(self, numbers: list[int]) -> list[Facts | None]:
        """Have partitions taken onto shelves, wherever Dask has them or makes them again."""
        where = self._placement
        calls: list[Call] = [
            ("projfree-adopt", adopt, (self.name, number, self._futures[number]), where.wish(number))
            for number in numbers
        ]
        found = []
        for number, (address, facts) in zip(numbers, self._called(calls), strict=True):
            if self.facts and facts is not None:
                self.check(self._numbers.index(number), facts)
            place = self._numbers.index(number)
            where.put(place, address)
            found.append(facts)
        return found

    def _use_all_workers(self) -> None:
        """Give workers that have joined a share of the partitions."""
        moves = self._placement.moves(sorted(self.client.nthreads()))
        if not moves:
            return
        numbers = [self._numbers[place] for place in moves]
        for number, address in zip(numbers, moves.values(), strict=True):
            # As a result of its own, which stays where it is; a mere copy Dask would drop.
            self._futures[number] = self._submitted("projfree-move", moved, (self._futures[number],), [address])
            self._placement.wishes[number] = [address]
        self._adopted(numbers)

    # ------------------------------------------------------------------ tasks

    def _submitted(self, name: str, function: Callable[..., Any], arguments: Any, workers: list[str] | None) -> Any:
        where = {} if not workers else {"workers": workers, "allow_other_workers": True}
        key = f"{name}-{uuid.uuid4().hex}"
        return self.client.submit(function, *arguments, key=key, pure=False, priority=PRIORITY, **where)

    def _called(self, calls: list[Call]) -> list[Any]:
        """The results of some calls; those that died with their workers are tried again under new keys."""
        answers: dict[int, Any] = {}
        for attempt in range(RETRIES + 1):
            rest = [i for i in range(len(calls)) if i not in answers]
            if not rest:
                break
            with self._cancelling({i: self._submitted(*calls[i]) for i in rest}) as futures:
                self._patiently(partial(self._settled, list(futures.values())), POLL)
                good = [i for i in rest if futures[i].status == "finished"]
                for i in set(rest) - set(good):
                    self._revive(futures[i], calls[i], last=attempt == RETRIES)
                found = self._patiently(partial(self._gathered, [futures[i] for i in good]), GATHER)
                answers.update(zip(good, found, strict=True))
        return [answers[i] for i in range(len(calls))]

    @contextmanager
    def _cancelling(self, futures: dict[int, Any]) -> Iterator[dict[int, Any]]:
        """Leave no task behind, whatever ends the wait for it."""
        try:
            yield futures
        except BaseException:
            self.client.cancel(list(futures.values()), force=True)
            raise

    def _settled(self, futures: list[Any], seconds: float) -> None:
        from distributed import wait

        with self.client.as_current():
            wait(futures, timeout=seconds)

    def _gathered(self, futures: list[Any], seconds: float) -> Any:
        async def answers() -> Any:
            return await self.client.gather(futures, asynchronous=True)

        return self.client.sync(answers, callback_timeout=seconds)

    def _patiently(self, ask: Callable[[float], Any], seconds: float) -> Any:
        """Ask until there is an answer, unless there is nobody to give one."""
        from distributed import TimeoutError as DaskTimeoutError

        alone, stop = None, stopper()
        while True:
            try:
                return ask(seconds)
            except DaskTimeoutError:
                stop()
            if self.client.status != "running":
                raise RowsLostError(
                    "the connection to the scheduler is lost, and the rows with it; connect anew, and go on from the "
                    "checkpoint."
                )
            if self.client.nthreads():
                alone = None
                continue
            alone = time.monotonic() if alone is None else alone
            if time.monotonic() - alone >= self.patience:
                raise RowsLostError(
                    f"no worker of {self.client.scheduler.address} was there for {self.patience:g} seconds "
                    "(`patience`), so that the rows are out of reach; start some, and go on from the checkpoint."
                )

    def _revive(self, future: Any, call: Call, *, last: bool) -> None:
        """Raise the error of a task, unless its workers were killed: it may not be to blame, and is tried again."""
        if future.status == "cancelled":
            raise RowsLostError(
                "tasks of a round were cancelled, by somebody else or because the scheduler has gone; go on from the "
                "checkpoint."
            )
        error = future.exception()
        if type(error).__name__ != "KilledWorker" or last:
            raise error
        for argument in call[2]:
            if getattr(argument, "status", None) == "error":  # a partition, in the making of which workers died
                self.client.retry([argument])
