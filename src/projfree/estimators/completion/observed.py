"""Ratings by their places in the matrix, of each pair the last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.algebra import Pattern
from projfree.checks import Array


def last_of_each(rows: Array, cols: Array, width: int) -> Array:
    """The places of the pairs that no later pair repeats, in order: a later rating replaces an earlier one."""
    order, new = Pattern.sorted_pairs(rows, cols, (int(rows.max(initial=-1)) + 1, width))
    kept = np.zeros(len(order), dtype=bool)
    kept[order[np.append(new[1:], True)[: len(order)]]] = True
    return np.flatnonzero(kept)


def _short(places: Array) -> Array:
    """Places as integers of 32 bits where these are enough: there are as many as ratings."""
    return places.astype(np.int32, copy=False) if places.max(initial=0) < 2**31 else places


@dataclass(frozen=True, eq=False)
class Observed:
    """Ratings by their places: rows and columns of the matrix, values, and weights where there are some."""

    rows: Array
    cols: Array
    values: Array
    weight: Array | None

    @classmethod
    def latest(cls, rows: Array, cols: Array, values: Array, weight: Array | None, width: int) -> Observed:
        """Of each pair the last rating."""
        rows, cols = (_short(side) for side in (rows, cols))
        every, kept = cls(rows, cols, values, weight), last_of_each(rows, cols, width)
        return every if len(kept) == len(values) else every.part(kept)

    @cached_property
    def _by_row(self) -> tuple[Array, Array]:
        """Rows in order, and the columns along with them; made once, so that no user is looked for in all ratings."""
        order = np.argsort(self.rows, kind="stable")
        return self.rows[order], self.cols[order]

    def of_rows(self, rows: Array) -> tuple[Array, Array]:
        """Which of the rows, and which columns, of all ratings in these rows."""
        every, cols = self._by_row
        begin, end = np.searchsorted(every, rows), np.searchsorted(every, rows, side="right")
        counts = end - begin
        at = np.arange(int(counts.sum())) + np.repeat(begin - np.cumsum(counts) + counts, counts)
        return np.repeat(np.arange(len(rows)), counts), cols[at]

    def part(self, at: Any) -> Observed:
        """Some of the ratings."""
        weight = None if self.weight is None else self.weight[at]
        return Observed(self.rows[at], self.cols[at], self.values[at], weight)

    def __len__(self) -> int:
        return len(self.values)
