"""Reading ahead: the next chunk in the background while the current one is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import SimpleQueue
from threading import Thread

import numpy as np

from projfree.checks import Array
from projfree.data.sources.base import Source


class Ahead:
    """The chunks of one pass, read by a thread of its own into two buffers that take turns.

    What goes wrong there is raised where the rows are asked for. `close` ends the thread, however far the pass came.
    """

    def __init__(self, source: Source, bounds: Sequence[tuple[int, int]], pair: tuple[Array, Array]) -> None:
        self.source, self.bounds = source, bounds
        self._free: SimpleQueue[Array] = SimpleQueue()
        self._ready: SimpleQueue[tuple[Array, Array] | BaseException] = SimpleQueue()
        self._closed = False
        for buffer in pair:
            self._free.put(buffer)
        self._thread = Thread(target=self._read, name="projfree-reader", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for start, stop in self.bounds:
                buffer = self._free.get()
                if self._closed:
                    return
                self._ready.put((buffer, self.source.read(start, stop, buffer)))
        except BaseException as error:
            self._ready.put(error)

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        """First row and table of each chunk; a table is good until the next is asked for."""
        for start, _ in self.bounds:
            found = self._ready.get()
            if isinstance(found, BaseException):
                raise found
            yield start, found[1]
            self._free.put(found[0])

    def close(self) -> None:
        """End the thread, after the read that it may be at."""
        self._closed = True
        self._free.put(np.empty(0))
        self._thread.join()
