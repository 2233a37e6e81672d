"""Whether a cluster stands still, because workers are paused whose memory is full."""

from __future__ import annotations

import time
from typing import Any

#: Seconds between two questions about it, at most: the answer is long where workers are many.
SELDOM = 5.0
#: The states of tasks that a worker is busy with.
BUSY = ("executing", "long-running", "flight")


class Standstill:
    """Asks now and then, while something is waited for, whether workers are paused and none of them has work at hand.

    Dask pauses a worker whose process has more than a share of its memory limit. It goes on once partitions have been
    moved to the disk. But where what is left does not fit either, it stays paused, and its tasks wait for ever.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.
    patience : float
        Seconds that a standstill may last, which decide how often is asked.
    """

    def __init__(self, client: Any, patience: float) -> None:
        self._client, self._pause = client, min(SELDOM, patience / 4.0)
        self._next, self._paused = time.monotonic() + self._pause, set[str]()

    def paused(self) -> set[str]:
        """The addresses of paused workers where nothing goes on anywhere, as it was when it was last asked."""
        if time.monotonic() >= self._next:
            self._paused = self._ask()
            self._next = time.monotonic() + self._pause
        return self._paused

    def _ask(self) -> set[str]:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        counts = [about.get("metrics", {}).get("task_counts", {}) for about in workers.values()]
        if any(count.get(state) for count in counts for state in BUSY):
            return set()
        return {address for address, about in workers.items() if about.get("status") == "paused"}
