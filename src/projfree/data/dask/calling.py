"""Calls of functions on workers, with patience: what died with its worker is called again under a new key."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from projfree.data.base import RowsLostError
from projfree.deadline import stopper

#: Seconds between two looks at whether there are workers, while a round waits.
POLL = 0.5
#: How often a call is made again that is said to have killed its workers.
RETRIES = 5
#: Seconds that answers may take to arrive before they are asked for again.
GATHER = 60.0
#: Tasks are drawn before those of others that wait: a round is short, and many are to come.
PRIORITY = 10


def _nothing() -> None:
    return None


class Call(NamedTuple):
    """A function to call on a worker.

    Attributes
    ----------
    name : str
        What its task is called in the dashboard.
    function : callable
        What to call.
    arguments : callable
        Gives the arguments, when the task is made.
    worker : str or None
        The worker where it should run.
    renew : callable
        What is done before it is called again after a death.
    """

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    worker: str | None
    renew: Callable[[], None] = _nothing


def called(client: Any, calls: list[Call], patience: float) -> list[Any]:
    """The answers to some calls.

    An interrupt, an error or a deadline leaves no task behind. Where there is no worker for ``patience`` seconds, or no
    scheduler, `RowsLostError` is raised.
    """
    waiting = Waiting(client, calls, patience)
    try:
        while waiting.futures:
            waiting.look()
    except BaseException:
        if client.status == "running":
            client.cancel(list(waiting.futures.values()), force=True)
        raise
    return [waiting.answers[i] for i in range(len(calls))]


class Waiting:
    """Calls that were made, and the answers so far."""

    def __init__(self, client: Any, calls: list[Call], patience: float) -> None:
        self.client, self.calls, self.patience = client, calls, patience
        self.answers: dict[int, Any] = {}
        self.deaths = dict.fromkeys(range(len(calls)), 0)
        self.alone: float | None = None
        self.stop = stopper()
        self.futures = {i: self._submitted(call, call.worker) for i, call in enumerate(calls)}

    def look(self) -> None:
        """Wait for a while, take in what has come, and call again what has died."""
        from distributed import TimeoutError as DaskTimeoutError
        from distributed import wait

        try:
            with self.client.as_current():
                wait(list(self.futures.values()), timeout=POLL)
        except DaskTimeoutError:
            self.stop()
            self._look_around()
        self._refuse_errors()
        self._take_in()

    def _take_in(self) -> None:
        """Gather what is finished, all at once."""
        done = [i for i, future in self.futures.items() if future.status == "finished"]
        own = [self.futures[i] for i in done]

        async def answers() -> Any:
            return await self.client.gather(own, asynchronous=True)

        if own:
            found = self.client.sync(answers, callback_timeout=GATHER)
            for i, answer in zip(done, found, strict=True):
                self.answers[i] = answer
                self.futures.pop(i).release()  # Dask would make a lost one again

    def _refuse_errors(self) -> None:
        """Raise the error of a task, unless its workers were killed: it may not be to blame, and is called again."""
        for i in [i for i, future in self.futures.items() if future.status in ("error", "cancelled", "lost")]:
            self.deaths[i] += 1
            if self.futures[i].status == "error":
                error = self.futures[i].exception()
                if type(error).__name__ != "KilledWorker" or self.deaths[i] > RETRIES:
                    raise error
            elif self.client.status != "running" or self.deaths[i] > RETRIES:
                raise RowsLostError(
                    "tasks of a round are cancelled again and again, by somebody else or because the scheduler has "
                    "gone; go on from the checkpoint."
                )
            self._again(i)

    def _look_around(self) -> None:
        """See whether there are workers at all, and whether those are there that are waited for."""
        if self.client.status != "running":
            raise RowsLostError(
                "the connection to the scheduler is lost, and the rows with it; connect anew, and go on from the "
                "checkpoint."
            )
        workers = self.client.nthreads()
        if workers:
            self.alone = None
            for i in list(self.futures):
                call = self.calls[i]
                # Where all workers have died, Dask does not start what was to run on one of them.
                if call.worker is not None and call.worker not in workers and self.futures[i].status == "pending":
                    self._again(i)
            return
        self.alone = time.monotonic() if self.alone is None else self.alone
        if time.monotonic() - self.alone >= self.patience:
            raise RowsLostError(
                f"no worker of {self.client.scheduler.address} was there for {self.patience:g} seconds (`patience`), "
                "so that the rows are out of reach; start some, and go on from the checkpoint."
            )

    def _again(self, i: int) -> None:
        """Make a call anew, on any worker."""
        self.client.cancel([self.futures[i]], force=True)
        call = self.calls[i]
        call.renew()
        self.calls[i] = call._replace(worker=None)
        self.futures[i] = self._submitted(call, None)

    def _submitted(self, call: Call, worker: str | None) -> Any:
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        key = f"{call.name}-{uuid.uuid4().hex}"
        return self.client.submit(call.function, *call.arguments(), key=key, pure=False, priority=PRIORITY, **where)
