"""Observed entries row by row and column by column, for a ridge regression of each of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from projfree.checks import Array
from projfree.data.entries import FactoredEntriesData
from projfree.data.rows import Rows, Step
from projfree.runtime import over_rows

#: From so many entries on the regressions are in single precision: what they leave is far above its rounding.
SINGLE = 50_000


def precision_of(n: int) -> np.dtype[Any]:
    """That of the regressions on so many entries."""
    return np.dtype(np.float32 if n >= SINGLE else np.float64)


@dataclass(frozen=True, eq=False)
class Lines:
    """Entries in the order of rows or columns, with targets and weights; whoever regresses on them sees none.

    Attributes
    ----------
    indptr, indices : ndarray
        Line i has the places ``indices[indptr[i]:indptr[i + 1]]`` of the other side.
    target, weight : ndarray
        A number for each entry, in the precision of the regressions; no weights where all are one.
    """

    indptr: Array
    indices: Array
    target: Array
    weight: Array

    @property
    def kind(self) -> np.dtype[Any]:
        """The precision of the regressions."""
        return self.target.dtype

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def over(self, work: Callable[[int, int], None]) -> None:
        """Call ``work(start, stop)`` for ranges of lines, on several threads."""
        over_rows(work, self.indptr)

    def sums(self, table: Array, out: Array, start: int, stop: int) -> None:
        """For some lines the sum of the rows of a table at their places."""
        from projfree.completion.ridge_kernels import sums_of_rows

        sums_of_rows(self.indptr, self.indices, table, out, start, stop)

    def offsets(self, base: float, theirs: Array, ridge: float, out: Array, start: int, stop: int) -> None:
        """The regressions of some lines on a constant, with a penalty of its square."""
        from projfree.completion.ridge_kernels import offsets_of_rows

        offsets_of_rows(self.indptr, self.indices, self.target, base, theirs, self.weight, ridge, out, start, stop)

    def ridge(self, base: Any, theirs: Array, table: Array, *given: Any) -> None:
        """The regressions of some lines; ``given`` is as for `projfree.completion.ridge_kernels.ridge_rows`."""
        from projfree.completion.ridge_kernels import ridge_rows

        ridge_rows(self.indptr, self.indices, self.target, base, theirs, self.weight, table, *given)


#: The lines of data whose targets are those of the regressions, by side.
_PLAIN: WeakKeyDictionary[FactoredEntriesData, dict[int, Lines]] = WeakKeyDictionary()


def entry_lines(
    data: FactoredEntriesData, side: int, step: Step | None = None, w: Any = None, scale: float = 1.0
) -> Lines:
    """The entries by rows (``side`` 0) or columns (1), with weights times ``scale``.

    The targets are the residuals that ``step`` makes of the image of ``w``, or without a step those of the data.
    """
    if data.place is not None:
        raise TypeError("Regressions of rows and columns need one entry a place; merge entries at the same place.")
    known = _PLAIN.setdefault(data, {})
    if step is None and scale == 1.0 and side in known:
        return known[side]
    at, kind = data.pattern, precision_of(data.n)
    indptr, indices, order = (at.indptr, at.indices, slice(None)) if side == 0 else at.by_column
    target: Array | None = data.y
    if step is not None:
        target = step.block(Rows(data.y, data.weights(slice(None)), data.places), data.image(w))[0]
    weight = None if data.weight is None else data.weight * (data.n * scale)
    if weight is None and scale != 1.0:
        weight = np.full(data.n, scale)
    parts = [np.zeros(0, kind) if part is None else part[order].astype(kind) for part in (target, weight)]
    lines = Lines(indptr, indices, *parts)
    if step is None and scale == 1.0:
        known[side] = lines
    return lines
