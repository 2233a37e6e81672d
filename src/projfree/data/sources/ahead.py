"""Reading ahead: the next chunk in the background while the current one is used."""

from __future__ import annotations

from threading import Thread

from projfree.checks import Array
from projfree.data.sources.base import Source


class Ahead(Thread):
    """One read in the background; what goes wrong there is raised where the rows are asked for.

    A thread for each read, because a pool would have to be closed on every way out of a pass; starting one costs a few
    hundredths of reading a chunk.
    """

    def __init__(self, source: Source, bounds: tuple[int, int], out: Array) -> None:
        super().__init__(name="projfree-reader", daemon=True)
        self.source, self.bounds, self.out = source, bounds, out
        self.found: Array | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.found = self.source.read(*self.bounds, self.out)
        except BaseException as error:
            self.error = error

    def table(self) -> Array:
        """The rows, as soon as they are there."""
        self.join()
        if self.error is not None:
            raise self.error
        assert self.found is not None
        return self.found
