"""Observed entries of a matrix that is never formed: images by factors, adjoints on the pattern."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import OnPattern, Pattern, is_structured
from projfree.algebra.hashing import short_hash
from projfree.checks import Array
from projfree.data.entries import Entries, ObservedEntries, one_target
from projfree.data.lines import Lines
from projfree.data.local import checked_weights
from projfree.data.rows import Step


class FactoredEntriesData(ObservedEntries):
    """Targets at observed entries; the parameter is a matrix in factors or on the pattern.

    Rows of the data are the entries in the order of their places; entries at one place are rows of their own.

    Attributes
    ----------
    place : ndarray of int or None
        Where in the pattern each entry is; None where they are those of the pattern.
    """

    pattern: Pattern
    place: Array | None
    adjoint_reads = False
    block_rows = 1 << 16

    def __init__(self, entries: Entries, y: Array, sample_weight: Array | None = None) -> None:
        y, weight = one_target(y, len(entries.rows)), checked_weights(sample_weight, len(entries.rows))
        self.pattern, order, self.place = Pattern.of(entries.rows, entries.cols, entries.shape)
        self.n, self.sides = len(order), self.pattern.shape
        self.y, self.weight = y[order], None if weight is None else weight[order]

    def image(self, w: Any) -> Array:
        if not is_structured(w):
            return np.asarray(w[self.places])
        if self.n < self.pattern.count:  # a sample
            sampled: Array = w.of_pairs(*self.places)
            return sampled
        values = np.zeros(self.pattern.count)
        for part in w.parts():
            values = values + part.on_places(self.pattern)
        return values if self.place is None else values[self.place]

    @cached_property
    def places(self) -> tuple[Array, Array]:  # type: ignore[override]  # read-only here: formed when first asked for
        at = self.pattern
        return (at.rows, at.indices) if self.place is None else (at.rows[self.place], at.indices[self.place])

    def most_in_line(self) -> int:
        """The most entries in one row or one column of the matrix."""
        return max(int(np.bincount(index).max()) for index in self.places)

    def scatter(self, r: Array) -> Any:
        if self.place is not None:
            r = np.bincount(self.place, weights=r, minlength=self.pattern.count)
        return OnPattern(self.pattern, r)

    def most_at_a_place(self) -> int:
        return 1 if self.place is None else int(np.bincount(self.place).max())

    def lines(self, side: int, step: Step | None = None, w: Any = None, curvature: float = 1.0) -> Lines:
        """The entries row by row (``side`` 0) or column by column (1), for a regression of each of these.

        Parameters
        ----------
        step : Step, optional
            Makes the targets of the image of ``w``, as its residuals; without it they are those of the data.
        curvature : float
            What the weights are multiplied by.
        """
        if self.place is not None:
            raise TypeError("Regressions of rows and columns need one entry a place; merge entries at the same place.")
        if step is not None:
            return Lines.of(self, side, step, self.image(w), curvature)
        if side not in self._lines:
            self._lines[side] = Lines.of(self, side, None, None, curvature)
        return self._lines[side]

    def size_of_targets(self, base: float = 0.0, most: float = np.inf) -> float:
        """The Euclidean norm of the targets, of which none counts as further than ``most`` from ``base``."""
        return float(np.linalg.norm(np.clip(self.y, base - most, base + most)))

    @cached_property
    def _lines(self) -> dict[int, Lines]:
        return {}

    def take(self, rows: Array, weight: Array | None) -> FactoredEntriesData:
        """The given entries, with adjoints on the pattern of all."""
        part = object.__new__(FactoredEntriesData)
        part.pattern, part.place = self.pattern, rows if self.place is None else self.place[rows]
        part.n, part.sides, part.y, part.weight = len(rows), self.sides, self.y[rows], weight
        return part

    def fingerprint(self) -> str:
        parts = (self.pattern.indptr, self.pattern.indices, self.place, self.y, self.weight)
        return short_hash(f"factored entries {tuple(self.pattern.shape)} {self.n}", *parts, absent=b"-")
