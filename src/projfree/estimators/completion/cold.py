"""Users and items without ratings: the best offsets of the others, and what features say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from projfree.algebra import OnPattern, Pattern
from projfree.checks import Array
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.from_features import Slopes
from projfree.estimators.completion.offset_model import OffsetModel

#: Pairs whose factors are held at once.
BLOCK = 1 << 16


class ModelLines(NamedTuple):
    """Rows, or columns, of a model: offsets, factors, and factors without what features say."""

    offsets: Array
    factors: Array
    plain: Array

    def at(self, places: Array) -> ModelLines:
        """Some of them."""
        return ModelLines(*(part[places] for part in self))


@dataclass(frozen=True, eq=False)
class Side:
    """Users, or items: their offsets and factors in a model, and what is expected of those without ratings."""

    offsets: Array
    factors: Array
    alone: Array
    counts: Array
    table: OnPattern | None
    ridge: float

    def cold(self, places: Array) -> Array:
        """Which of some places, -1 for what was never seen, have no ratings."""
        known: Array = np.append(self.counts > 0, False)
        return ~known[places]

    @cached_property
    def trust(self) -> Array:
        """How far the ratings of each determine its offset."""
        trust: Array = self.counts / (self.counts + self.ridge) if self.ridge else np.sign(self.counts)
        return trust

    @cached_property
    def mean(self) -> Array:
        """The factors that are expected where there are no features."""
        mean: Array = self.trust @ self.factors / max(float(self.trust.sum()), 1e-300)
        return mean

    @cached_property
    def slopes(self) -> Slopes | None:
        """What features change of offset and factors."""
        if self.table is None:
            return None
        return Slopes.of(self.table, self.trust, np.column_stack([self.offsets, self.factors]))

    def expected(self, table: OnPattern | None, count: int) -> ModelLines:
        """So many lines without ratings, with features or none."""
        plain = np.tile(self.mean, (count, 1))
        if table is None or self.slopes is None:
            return ModelLines(np.zeros(count), plain, plain)
        more = self.slopes.times(table)
        return ModelLines(more[:, 0], plain + more[:, 1:], plain)

    def lines(self, places: Array) -> ModelLines:
        """The lines at some places: with ratings as they are, without ratings as they are expected to be."""
        cold, unseen = self.cold(places), places < 0
        found = ModelLines(self.alone[places], self.factors[places], self.factors[places].copy())
        for part, there in ((unseen, None), (cold & ~unseen, self.table)):
            if part.any():
                rows = None if there is None else _rows(there, places[part])
                for old, new in zip(found, self.expected(rows, int(part.sum())), strict=True):
                    old[part] = new
        return found


def _rows(table: OnPattern, places: Array) -> OnPattern:
    """Some rows of a table."""
    at = table.pattern
    lengths = np.diff(at.indptr)[places]
    indptr = np.append(0, np.cumsum(lengths))
    inside = np.repeat(at.indptr[places] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return OnPattern(Pattern(indptr, at.indices[inside], (len(places), table.shape[1])), table.values[inside])


@dataclass(frozen=True, eq=False)
class Completed:
    """A model in which nobody is missing.

    Pairs of a user and an item with ratings have the value of the factors. These are of no use where one of the two has
    no ratings: the matrix has taken up a part of the offsets, and its row or column is missing. Its mean row would not
    do either, because users rate what they like, and the mean of a column over its raters is not that over all users.
    There the best offsets without a matrix are taken, and what features change of offset and factors is added.
    """

    model: Factors
    offsets: OffsetModel
    users: Side
    items: Side

    @classmethod
    def of(
        cls, model: Factors, offsets: OffsetModel, tables: tuple[OnPattern | None, OnPattern | None], ridge: float
    ) -> Completed:
        """The model, with features of users and items."""
        users = Side(model.rows, model.left, offsets.rows, offsets.row_counts, tables[0], ridge)
        items = Side(model.cols, model.right, offsets.cols, offsets.col_counts, tables[1], ridge)
        return cls(model, offsets, users, items)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places, -1 standing for what was never seen."""
        cold = np.flatnonzero(self.users.cold(rows) | self.items.cold(cols))
        u = self.model.margin(rows, cols)
        for start in range(0, len(cold), BLOCK):
            at = cold[start : start + BLOCK]
            one, other = self.users.lines(rows[at]), self.items.lines(cols[at])
            change = np.sum(one.factors * other.factors - one.plain * other.plain, axis=1)
            u[at] = self.level + one.offsets + other.offsets + change
        return u

    @property
    def level(self) -> float:
        """What pairs without ratings have in common."""
        return self.model.base + self.offsets.shift

    def block(self, rows: Array) -> Array:
        """The model in some rows, all columns."""
        model, cold = self.model, np.flatnonzero(self.users.cold(rows))
        u: Array = model.left[rows] @ model.right.T
        u += (model.base + model.shift) + model.rows[rows, None] + model.cols
        columns = np.flatnonzero(self.items.counts == 0)
        if len(columns):
            u[:, columns] = self.across(self.users.lines(rows), columns)
        if len(cold):
            u[cold] = self.across(self.users.lines(rows[cold]), np.arange(len(model.cols)))
        return u

    def across(self, users: ModelLines, columns: Array) -> Array:
        """Users and columns of which at least one has no ratings."""
        items = self.items.lines(columns)
        u: Array = users.factors @ items.factors.T - users.plain @ items.plain.T
        u += self.level + users.offsets[:, None] + items.offsets
        return u
