"""Calls of functions on workers, with patience: what died with its worker is called again under a new key."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from projfree.data.base import RowsLostError
from projfree.data.dask.inbox import inbox_of
from projfree.data.dask.releasing import Releasing
from projfree.data.dask.standstill import Standstill
from projfree.deadline import stopper

#: Seconds between two looks at whether there are workers, while a round waits.
POLL = 0.5
#: Seconds between two questions who is there, where rounds are shorter: each is two messages of the dozen of a round.
JOINING = 0.25
#: How often a call is made again that is said to have killed its workers.
RETRIES = 5
#: Tasks are drawn before those of others that wait: a round is short, and many are to come.
PRIORITY = 10


def _nothing() -> None:
    return None


class Call(NamedTuple):
    """A call of a function on a worker.

    Attributes
    ----------
    arguments : callable
        Gives the arguments, when the task is made.
    worker : str or None
        The worker where it should run.
    renew : callable
        What is done before it is called again after a death.
    """

    arguments: Callable[[], tuple[Any, ...]]
    worker: str | None = None
    renew: Callable[[], None] = _nothing


class Caller:
    """Makes calls on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.
    patience : float
        Seconds that calls wait while there is no worker at all, or all are paused.

    Attributes
    ----------
    workers : list of str
        The addresses of the workers that there were when it was last asked who is there.
    """

    def __init__(self, client: Any, patience: float) -> None:
        self.client, self.patience = client, patience
        self.workers, self._asked = list[str](), -math.inf
        self.inbox, self.releasing = inbox_of(client), Releasing(client)

    async def look_for_workers(self) -> None:
        """Ask who is there, unless that was done a moment ago."""
        if time.monotonic() - self._asked < JOINING:
            return
        self.workers = []
        with suppress(OSError):  # the scheduler has gone, which the status of the client says a moment later
            self.workers = sorted(await self.client.nthreads())
        self._asked = time.monotonic()

    def answers(self, name: str, function: Callable[..., Any], calls: list[Call]) -> list[Any]:
        """The answers to some calls of a function, in tasks with this name.

        An interrupt, an error or a deadline leaves no task behind. Where there is no worker for ``patience`` seconds,
        or no scheduler, `RowsLostError` is raised.
        """
        waiting = Waiting(self, name, function, calls)
        try:
            while waiting.open:
                waiting.look()
        except BaseException:
            if self.client.status == "running":
                self.client.sync(waiting.cancel)
            raise
        return [waiting.found[i] for i in range(len(calls))]


class Waiting:
    """Calls that were made, and the answers so far.

    What talks to the scheduler in an ordinary round is one function on the loop of the client: tasks that are submitted
    there travel in one message, and Dask sends the next one only 10 ms later.
    """

    def __init__(self, caller: Caller, name: str, function: Callable[..., Any], calls: list[Call]) -> None:
        self.caller, self.client = caller, caller.client
        self.name, self.function = name, function
        self.calls, self.found = list(calls), dict[int, Any]()
        self.deaths = dict.fromkeys(range(len(calls)), 0)
        self.open, self.futures = set(self.deaths), dict[int, Any]()
        self.alone: float | None = None
        self.standstill = Standstill(caller.client, caller.patience)
        self.stop = stopper()

    def look(self) -> None:
        """Make calls that are to be made, wait for a while, take in what has come, and see what has died."""
        self._refuse_without_scheduler()
        self.client.sync(self._look)
        self.stop()
        self._refuse_errors()
        if self.open:
            self._refuse_without_scheduler()
            self._look_around()

    async def _look(self) -> None:
        from distributed import CancelledError, wait

        self._submit(sorted(self.open - self.futures.keys()))
        await self.caller.look_for_workers()
        with self.client.as_current(), suppress(TimeoutError, CancelledError):
            await wait(list(self.futures.values()), timeout=POLL)
        await self._take_in()

    async def _take_in(self) -> None:
        """Take answers that have come by themselves, and gather what else is finished, all at once."""
        done = {i: future for i, future in self.futures.items() if future.status == "finished"}
        come = {i: self.caller.inbox[future.key] for i, future in done.items()}
        self._note({i: answer for i, answer in come.items() if answer is not None})
        if not (done := {i: future for i, future in done.items() if i in self.open}):
            return
        gathering = asyncio.ensure_future(self.client.gather(done, errors="skip", asynchronous=True))
        while not gathering.done():
            await asyncio.wait([gathering], timeout=POLL)
            # Dask would wait for ever where an answer was lost that is not made again.
            if any(future.status != "finished" for future in done.values()):
                gathering.cancel()
                return
        try:
            self._note({i: answer for i, answer in gathering.result().items() if done[i].status == "finished"})
        except OSError:  # of the connection to the scheduler, whose end the status of the client says a moment later
            await asyncio.sleep(POLL)

    def _note(self, answers: dict[int, Any]) -> None:
        self.found |= answers
        self.open -= answers.keys()
        self.caller.releasing.add([self._without(i) for i in answers])

    def _without(self, i: int) -> Any:
        """The future of a call, which is waited for no longer."""
        self.caller.inbox.forget(self.futures[i].key)
        return self.futures.pop(i)

    def _refuse_errors(self) -> None:
        """Raise the error of a task, unless its workers were killed: it may not be to blame, and is called again."""
        for i, future in list(self.futures.items()):
            if future.status not in ("error", "cancelled", "lost"):
                continue
            error = None
            if future.status == "error":
                with suppress(TimeoutError):  # it waits for the end of a task that is tried again meanwhile
                    error = future.exception(timeout=POLL)
            if future.status in ("pending", "finished"):
                continue
            self.deaths[i] += 1
            if error is not None:
                if type(error).__name__ != "KilledWorker":
                    raise error
                if self.deaths[i] > RETRIES:
                    raise RowsLostError(
                        f"Dask has given up {self.deaths[i]} times on task {future.key!r}, because the workers that "
                        "ran it died, as they do where memory is short; start workers with more memory or cut the data "
                        "into smaller partitions, and go on from the checkpoint."
                    ) from error
            elif self.client.status != "running" or self.deaths[i] > RETRIES:
                raise RowsLostError(
                    "tasks of a round are cancelled again and again, by somebody else or because the scheduler has "
                    "gone; go on from the checkpoint."
                )
            self._again(i)

    def _refuse_without_scheduler(self) -> None:
        if self.client.status != "running":
            raise RowsLostError(
                "the client is closed or has lost its scheduler, and the rows with it; connect anew, make the data "
                "again with `as_data`, and go on from the checkpoint."
            )

    def _look_around(self) -> None:
        """See whether there are workers that take tasks, and whether those are there that are waited for."""
        paused = self.standstill.paused()
        able = [address for address in self.caller.workers if address not in paused]
        if able:
            for i, future in list(self.futures.items()):
                # Where all workers have died, Dask does not start what was to run on one of them.
                if self.calls[i].worker not in (None, *able) and future.status == "pending":
                    self._again(i)
        if able and not paused:
            self.alone = None
            return
        patience, self.alone = self.caller.patience, time.monotonic() if self.alone is None else self.alone
        if time.monotonic() - self.alone >= patience:
            raise RowsLostError(self._out_of_reach(len(paused)))

    def _out_of_reach(self, paused: int) -> str:
        """Why nothing goes on."""
        address, waited = self.client.scheduler.address, f"{self.caller.patience:g} seconds (`patience`)"
        if paused and self.caller.workers:
            return (
                f"nothing went on at {address} for {waited}, because {paused} of its {len(self.caller.workers)} "
                "workers are paused, whose memory is full; start workers with more memory or cut the data into smaller "
                "partitions, and go on from the checkpoint."
            )
        return (
            f"no worker of {address} was there for {waited}, so that the rows are out of reach; start some, and go on "
            "from the checkpoint."
        )

    def _again(self, i: int) -> None:
        """Have a call made anew, on any worker."""
        self.client.cancel([self._without(i)], force=True)
        self.calls[i].renew()
        self.calls[i] = self.calls[i]._replace(worker=None)

    async def cancel(self) -> None:
        """Cancel what was called."""
        await self.client.cancel([self._without(i) for i in list(self.futures)], force=True, asynchronous=True)

    def _submit(self, numbers: list[int]) -> None:
        """Make calls: one graph for those that have a worker and one for others, whatever their number."""
        for placed in (True, False):
            own = [i for i in numbers if (self.calls[i].worker is not None) is placed]
            if own:
                self.futures |= zip(own, self._submitted([self.calls[i] for i in own], placed=placed), strict=True)

    def _submitted(self, calls: list[Call], *, placed: bool) -> list[Any]:
        from dask import annotate

        where = {f"{self.name}-{uuid.uuid4().hex}": [call.worker] for call in calls}
        self.caller.inbox.expect(where)
        arguments = zip(*(call.arguments() for call in calls), strict=True)
        # A method of a dictionary can be pickled, also where this package is not installed.
        with annotate(workers=where.__getitem__, allow_other_workers=True) if placed else nullcontext():
            return list(self.client.map(self.function, *arguments, key=list(where), pure=False, priority=PRIORITY))
