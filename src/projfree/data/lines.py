"""`Lines`: the observed entries of a matrix row by row, or column by column, for a regression of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.runtime import over_rows

if TYPE_CHECKING:
    from projfree.data.factored_entries import FactoredEntriesData

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

    @classmethod
    def of(cls, data: FactoredEntriesData, side: int, step: Step | None, w: Any, curvature: float) -> Lines:
        """The lines of rows (``side`` 0) or columns (1), see `FactoredEntriesData.lines`."""
        at, kind = data.pattern, precision_of(data.n)
        indptr, indices, order = (at.indptr, at.indices, slice(None)) if side == 0 else at.by_column
        target = data.y if step is None else step.block(Rows(data.y, data.weights(slice(None)), data.places), w)[0]
        assert target is not None
        weight = None if data.weight is None else data.weight * (data.n * curvature)
        if weight is None and curvature != 1.0:
            weight = np.full(data.n, curvature)
        parts = [np.zeros(0, kind) if part is None else part[order].astype(kind) for part in (target, weight)]
        return cls(indptr, indices, *parts)

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
        from projfree.numerics.ridge_kernels import sums_of_rows

        sums_of_rows(self.indptr, self.indices, table, out, start, stop)

    def offsets(self, base: float, theirs: Array, ridge: float, out: Array, start: int, stop: int) -> None:
        """The regressions of some lines on a constant, with a penalty of its square."""
        from projfree.numerics.ridge_kernels import offsets_of_rows

        offsets_of_rows(self.indptr, self.indices, self.target, base, theirs, self.weight, ridge, out, start, stop)

    def ridge(self, base: Any, theirs: Array, table: Array, *given: Any) -> None:
        """The regressions of some lines; ``given`` is as for `projfree.numerics.ridge_kernels.ridge_rows`."""
        from projfree.numerics.ridge_kernels import ridge_rows

        ridge_rows(self.indptr, self.indices, self.target, base, theirs, self.weight, table, *given)
