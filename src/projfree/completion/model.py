"""The fitted model: factors and offsets, and what is expected of users and items without ratings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.algebra import LowRank, Point
from projfree.algebra.lowrank import Factor
from projfree.checks import Array
from projfree.completion.features import FeatureTable
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.spectra import singular_values

if TYPE_CHECKING:
    from projfree.completion.problem import CompletionProblem

#: The penalty of a slope, in lines for each feature: features are taken to explain about a tenth of the differences.
FEATURE_RIDGE = 10.0


@dataclass(frozen=True)
class Factors:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j``; ``sigma`` are the weighted singular values.

    With side information these are of the larger matrix ``lefts @ rights.T``, of which ``left`` and ``right`` are the
    factors of the ratings, and ``below`` and ``beside`` the further ones.
    """

    lefts: Array
    rights: Array
    rows: Array
    cols: Array
    shift: float
    base: float
    sigma: Array

    @classmethod
    def zero(cls, f: CompletionProblem, offsets: Array | None = None) -> Factors:
        """The model without a matrix, with some offsets or none."""
        b = np.zeros(1 + sum(f.entries.pattern.shape)) if offsets is None else offsets
        return cls.of(f, np.zeros((f.shape[0], 1)), np.zeros((f.shape[1], 1)), b, np.zeros(1))

    @classmethod
    def of(cls, f: CompletionProblem, lefts: Array, rights: Array, b: Array, sigma: Array) -> Factors:
        """From the factors of the larger matrix and the offsets of all, of rows and of columns."""
        m = f.entries.pattern.shape[0]
        return cls(lefts, rights, b[1 : 1 + m], b[1 + m :], float(b[0]), f.entries.base, sigma)

    @classmethod
    def of_point(cls, f: CompletionProblem, x: Point, sigma: Array | None = None) -> Factors:
        """From a point of the problem; without ``sigma`` both factors get the roots of its singular values."""
        w: Any = x.w
        low = w.low if w.low is not None else LowRank(w.shape, ())
        if sigma is None:
            left, sigma, right = low.truncated(1e-9)[:3]
            low = LowRank.of(left * np.sqrt(sigma), right * np.sqrt(sigma))
        lefts, rights = low.factors()
        b = np.zeros(1 + sum(f.entries.pattern.shape)) if x.intercept is None else x.intercept
        rows, cols = (weights.astype(lefts.dtype)[:, None] for weights in (f.rows, f.cols))
        return cls.of(f, lefts / rows, rights / cols, b, sigma)

    def point(self, f: CompletionProblem) -> Point:
        """The point of a problem, with factors in the precision that they have here."""
        rows, cols = (weights.astype(self.lefts.dtype)[:, None] for weights in (f.rows, f.cols))
        lefts, rights = self.lefts * rows, self.rights * cols
        terms = ((1.0, Factor(lefts, rights)),) if lefts.shape[1] else ()
        return f.point(LowRank((len(lefts), len(rights)), terms), self.offsets)

    @property
    def offsets(self) -> Array:
        """All offsets as one vector: of all, of rows, of columns."""
        return np.concatenate([[self.shift], self.rows, self.cols])

    @property
    def left(self) -> Array:
        """The factors of users."""
        return self.lefts[: len(self.rows)]

    @property
    def left_extra(self) -> Array:
        """The factors of the rows below the ratings."""
        return self.lefts[len(self.rows) :]

    @property
    def right(self) -> Array:
        """The factors of items."""
        return self.rights[: len(self.cols)]

    @property
    def right_extra(self) -> Array:
        """The factors of the columns beside the ratings."""
        return self.rights[len(self.cols) :]

    def cast(self, kind: Any) -> Factors:
        """The same model with factors in a precision."""
        return replace(self, lefts=self.lefts.astype(kind, copy=False), rights=self.rights.astype(kind, copy=False))

    def with_exact_sigma(self, f: CompletionProblem) -> Factors:
        """The model in double precision, with its singular values to this precision: sweeps know them to their own."""
        now = self.cast(np.float64)
        sides = (now.lefts * f.rows[:, None], now.rights * f.cols[:, None])
        left, right = (np.asarray(np.linalg.qr(side, mode="r")) for side in sides)
        return replace(now, sigma=singular_values(left @ right.T))

    def with_offsets(self, b: Array) -> Factors:
        """The same matrix with other offsets."""
        m = len(self.rows)
        return replace(self, shift=float(b[0]), rows=b[1 : 1 + m], cols=b[1 + m :])

    def norm(self, p: float) -> float:
        """The weighted Schatten norm."""
        return lp_norm(self.sigma, p)

    def scaled_into_ball(self, p: float, radius: float) -> Factors:
        """The model with its matrix scaled into the ball."""
        by = radius / max(self.norm(p), radius)
        return self if by == 1.0 else replace(self, lefts=self.lefts * by, sigma=self.sigma * by)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places of the matrix."""
        u = self.base + self.shift + self.rows[rows] + self.cols[cols]
        return np.asarray(u + LowRank.of(self.left, self.right).of_pairs(rows, cols))


# ---------------------------------------------------------------- users and items without ratings


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
        b, m = f.entries.offsets_only, f.entries.pattern.shape[0]
        return cls(b[1 : 1 + m], b[1 + m :], float(b[0]), *f.counts)


@dataclass(frozen=True)
class ColdStartFactors:
    """Users, or items: offsets and factors in which those without ratings (``cold``) have what is expected of them.

    ``plain`` are the factors without what features say. ``regression`` is that of offsets and factors on features, with
    what it says of the mean line.
    """

    cold: Array
    offsets: Array
    factors: Array
    plain: Array
    regression: tuple[Any, Array] | None = None

    @classmethod
    def of(
        cls,
        offsets: Array,
        factors: Array,
        offsets_only: Array,
        counts: Array,
        table: FeatureTable | None,
        ridge: float,
    ) -> Self:
        """All lines of a model, and behind them, with the index -1, somebody who was never seen."""
        trust = counts / (counts + ridge)  # how far the ratings of each determine its offset
        total, cold = max(float(trust.sum()), 1e-300), np.append(counts == 0, True)
        plain = np.vstack([factors, trust @ factors / total])
        plain[cold] = plain[-1]
        lines = cls(cold, np.append(offsets_only, 0.0), plain, plain)
        if table is None:
            return lines
        from sklearn.linear_model import Ridge

        targets = np.column_stack([offsets, factors])
        penalty = FEATURE_RIDGE * table.shape[1] * total / max(int(np.count_nonzero(trust)), 1)
        regression = Ridge(alpha=penalty, tol=1e-9).fit(table.matrix, targets, sample_weight=trust)
        lines = replace(lines, regression=(regression, trust @ targets / total), factors=plain.copy())
        if cold[:-1].any():
            more = lines.predict_cold(table)
            known = np.flatnonzero(cold[:-1])
            lines.offsets[known], lines.factors[known] = more.offsets[known], more.factors[known]
        return lines

    def predict_cold(self, table: FeatureTable | None) -> ColdStartFactors:
        """What is expected of lines without ratings, for each row of features, or of one without features."""
        n, offsets, mean = 1 if table is None else table.shape[0], np.zeros(1), self.plain[-1]
        more = np.zeros((n, len(mean)))
        if table is not None and self.regression is not None:
            regression, centre = self.regression
            found = np.reshape(regression.predict(table.matrix), (n, -1)) - centre
            offsets, more = found[:, 0], found[:, 1:]
        return ColdStartFactors(np.ones(n, dtype=bool), offsets, mean + more, np.tile(mean, (n, 1)))


@dataclass(frozen=True, eq=False)
class ColdStartModel:
    """Predictions of all pairs.

    Pairs of a user and an item with ratings have the value of the factors. These are of no use if one of the two has no
    ratings: the matrix has taken up a part of the offsets, and its row or column is missing. Its mean row would not do
    either, because users rate what they like, and the mean of a column over its raters is not that over all users.
    There the best offsets without a matrix are taken, and what features change of offset and factors is added.
    """

    model: Factors
    offsets: OffsetModel
    users: ColdStartFactors
    items: ColdStartFactors

    @classmethod
    def of(
        cls, model: Factors, offsets: OffsetModel, tables: tuple[FeatureTable | None, FeatureTable | None], ridge: float
    ) -> Self:
        """From a model and features of users and items."""
        users = ColdStartFactors.of(model.rows, model.left, offsets.rows, offsets.row_counts, tables[0], ridge)
        items = ColdStartFactors.of(model.cols, model.right, offsets.cols, offsets.col_counts, tables[1], ridge)
        return cls(model, offsets, users, items)

    def margin(self, rows: Array, cols: Array) -> Array:
        """The model at places, -1 standing for what was never seen."""
        one, other = self.users, self.items
        cold, u = one.cold[rows] | other.cold[cols], np.empty(len(rows))
        u[~cold] = self.model.margin(rows[~cold], cols[~cold])
        i, j = rows[cold], cols[cold]
        change = LowRank.of(one.factors, other.factors).of_pairs(i, j) - LowRank.of(one.plain, other.plain).of_pairs(
            i, j
        )
        u[cold] = self.model.base + self.offsets.shift + one.offsets[i] + other.offsets[j] + change
        return u

    def margins(self, rows: Array, cols: Array) -> Array:
        """All pairs of users and items of which at least one has no ratings."""
        one, other = self.users, self.items
        u: Array = one.factors[rows] @ other.factors[cols].T - one.plain[rows] @ other.plain[cols].T
        u += self.model.base + self.offsets.shift + one.offsets[rows][:, None] + other.offsets[cols]
        return u
