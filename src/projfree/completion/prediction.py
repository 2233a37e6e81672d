"""Predictions of a model in which nobody is missing: the factors, and what is expected without ratings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.completion.factors import Factors
from projfree.completion.features import FeatureTable
from projfree.completion.problem import CompletionProblem

#: The penalty of a slope, in lines for each feature: features are taken to explain about a tenth of the differences.
DOUBT = 10.0
#: Pairs whose factors are held at once.
BLOCK = 1 << 16


@dataclass(frozen=True)
class OffsetModel:
    """The best offsets without a matrix, and how many ratings each user and each item has."""

    rows: Array
    cols: Array
    shift: float
    row_counts: Array
    col_counts: Array

    @classmethod
    def of(cls, f: CompletionProblem) -> OffsetModel:
        """The offsets of some ratings."""
        b, m = f.entries.offsets_alone, f.entries.pattern.shape[0]
        return cls(b[1 : 1 + m], b[1 + m :], float(b[0]), *f.counts)


class Lines:
    """Users, or items: offsets and factors in which those without ratings have what is expected of them.

    The last line, with the index -1, is that of somebody who was never seen.

    Attributes
    ----------
    cold : ndarray of bool
        Which have no ratings.
    offsets : ndarray
        The best offsets without a matrix, and what features say.
    factors, plain : ndarray
        The factors, and these without what features say.
    """

    def __init__(
        self, offsets: Array, factors: Array, alone: Array, counts: Array, table: FeatureTable | None, ridge: float
    ) -> None:
        trust = counts / (counts + ridge)  # how far the ratings of each determine its offset
        self._mean = trust @ factors / max(float(trust.sum()), 1e-300)
        self._regression: Any = None
        if table is not None:
            from sklearn.linear_model import Ridge

            penalty = DOUBT * table.shape[1] * float(trust.sum()) / max(int(np.count_nonzero(trust)), 1)
            targets = np.column_stack([offsets, factors])
            self._centre = trust @ targets / float(trust.sum())
            self._regression = Ridge(alpha=penalty, tol=1e-9).fit(table.matrix, targets, sample_weight=trust)
        self.cold = np.append(counts == 0, True)
        self.offsets = np.append(alone, 0.0)
        self.factors = self.plain = np.vstack([factors, self._mean])
        at = np.flatnonzero(self.cold[:-1])
        if len(at):
            self.plain = self.factors.copy()
            self.plain[at] = self._mean
            self.factors = self.plain.copy()
            if table is not None:
                self.offsets[at], self.factors[at] = self.expected(table, at)

    def expected(self, table: FeatureTable | None, at: Array) -> tuple[Array, Array]:
        """Offsets and factors that are expected of some lines of a table, or of so many without features."""
        if table is None or self._regression is None:
            return np.zeros(len(at)), np.tile(self._mean, (len(at), 1))
        more = self._regression.predict(table.matrix[at]) - self._centre
        return more[:, 0], self._mean + more[:, 1:]


@dataclass(frozen=True, eq=False)
class Completed:
    """Predictions of all pairs.

    Pairs of a user and an item with ratings have the value of the factors. These are of no use if one of the two has no
    ratings: the matrix has taken up a part of the offsets, and its row or column is missing. Its mean row would not do
    either, because users rate what they like, and the mean of a column over its raters is not that over all users.
    There the best offsets without a matrix are taken, and what features change of offset and factors is added.
    """

    model: Factors
    offsets: OffsetModel
    tables: tuple[FeatureTable | None, FeatureTable | None]
    ridge: float

    @cached_property
    def users(self) -> Lines:
        """The users."""
        one, other = self.model, self.offsets
        return Lines(one.rows, one.left, other.rows, other.row_counts, self.tables[0], self.ridge)

    @cached_property
    def items(self) -> Lines:
        """The items."""
        one, other = self.model, self.offsets
        return Lines(one.cols, one.right, other.cols, other.col_counts, self.tables[1], self.ridge)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places, -1 standing for what was never seen."""
        cold, u = self.users.cold[rows] | self.items.cold[cols], np.empty(len(rows))
        u[~cold] = self.model.margin(rows[~cold], cols[~cold])
        every = np.flatnonzero(cold)
        for start in range(0, len(every), BLOCK):
            at = every[start : start + BLOCK]
            i, j, one, other = rows[at], cols[at], self.users, self.items
            change = np.sum(one.factors[i] * other.factors[j] - one.plain[i] * other.plain[j], axis=1)
            u[at] = self._level + one.offsets[i] + other.offsets[j] + change
        return u

    def across(self, rows: Array, cols: Array) -> Array:
        """All pairs of users and items of which at least one has no ratings."""
        users = self.users
        return self.new_users(users.offsets[rows], users.factors[rows], users.plain[rows], cols)

    def new_users(self, offsets: Array, factors: Array, plain: Array, cols: Array) -> Array:
        """All pairs of new users, given by their offsets and factors, and items; one of the two without ratings."""
        u: Array = factors @ self.items.factors[cols].T - plain @ self.items.plain[cols].T
        u += self._level + offsets[:, None] + self.items.offsets[cols]
        return u

    @property
    def _level(self) -> float:
        return self.model.base + self.offsets.shift
