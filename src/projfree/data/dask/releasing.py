"""Futures that are released together, so that what is said about old answers does not hold up the next round."""

from __future__ import annotations

from typing import Any

#: Seconds between an answer and the release of its future.
MOMENT = 0.1


class Releasing:
    """Futures whose answers have arrived.

    They must go, because Dask would make an answer again that is lost with its worker. But a client sends at most one
    message in 10 ms: a release at once would delay the tasks of the next round by as much.
    """

    def __init__(self, client: Any) -> None:
        self._loop, self._futures = client.loop, list[Any]()

    def add(self, futures: list[Any]) -> None:
        """Release some futures a moment later; to be called on the loop of the client."""
        if not self._futures:
            self._loop.call_later(MOMENT, self._release)
        self._futures.extend(futures)

    def _release(self) -> None:
        futures, self._futures = self._futures, []
        for future in futures:
            future.release()
