"""The fitted model: factors and offsets, and predictions for users and items without ratings."""

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

#: Ridge of the regression on features, in users (or items) per feature. It assumes that features explain about a tenth
#: of the variance.
FEATURE_RIDGE = 10.0


@dataclass(frozen=True)
class Factors:
    """The model ``base + shift + rows_i + cols_j + left_i @ right_j``.

    ``sigma`` are the singular values of the weighted matrix. With side information, ``lefts @ rights.T`` is the matrix
    extended by the blocks of side information: ``left`` and ``right`` are the factors of users and items,
    ``left_extra`` and ``right_extra`` those of the further rows and columns.
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
        """Return the model with a zero matrix and the given offsets, by default zero."""
        b = np.zeros(1 + sum(f.entries.pattern.shape)) if offsets is None else offsets
        return cls.of(f, np.zeros((f.shape[0], 1)), np.zeros((f.shape[1], 1)), b, np.zeros(1))

    @classmethod
    def of(cls, f: CompletionProblem, lefts: Array, rights: Array, b: Array, sigma: Array) -> Factors:
        """Build a model from the factors of the extended matrix and the vector of offsets."""
        m = f.entries.pattern.shape[0]
        return cls(lefts, rights, b[1 : 1 + m], b[1 + m :], float(b[0]), f.entries.base, sigma)

    @classmethod
    def of_point(cls, f: CompletionProblem, x: Point, sigma: Array | None = None) -> Factors:
        """Build a model from a point of the problem; without ``sigma``, the factors are balanced by an SVD."""
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
        """Return the point of a problem; the factors keep their floating-point type."""
        rows, cols = (weights.astype(self.lefts.dtype)[:, None] for weights in (f.rows, f.cols))
        lefts, rights = self.lefts * rows, self.rights * cols
        terms = ((1.0, Factor(lefts, rights)),) if lefts.shape[1] else ()
        return f.point(LowRank((len(lefts), len(rights)), terms), self.offsets)

    @property
    def offsets(self) -> Array:
        """The offsets as one vector: the common offset, row offsets, column offsets."""
        return np.concatenate([[self.shift], self.rows, self.cols])

    @property
    def left(self) -> Array:
        """The factors of users."""
        return self.lefts[: len(self.rows)]

    @property
    def left_extra(self) -> Array:
        """The factors of the rows of side information."""
        return self.lefts[len(self.rows) :]

    @property
    def right(self) -> Array:
        """The factors of items."""
        return self.rights[: len(self.cols)]

    @property
    def right_extra(self) -> Array:
        """The factors of the columns of side information."""
        return self.rights[len(self.cols) :]

    def cast(self, kind: Any) -> Factors:
        """Convert the factors to another floating-point type."""
        return replace(self, lefts=self.lefts.astype(kind, copy=False), rights=self.rights.astype(kind, copy=False))

    def with_exact_sigma(self, f: CompletionProblem) -> Factors:
        """Return the model in double precision, with singular values recomputed in double precision."""
        now = self.cast(np.float64)
        sides = (now.lefts * f.rows[:, None], now.rights * f.cols[:, None])
        left, right = (np.asarray(np.linalg.qr(side, mode="r")) for side in sides)
        return replace(now, sigma=singular_values(left @ right.T))

    def with_offsets(self, b: Array) -> Factors:
        """Replace the offsets."""
        m = len(self.rows)
        return replace(self, shift=float(b[0]), rows=b[1 : 1 + m], cols=b[1 + m :])

    def norm(self, p: float) -> float:
        """Return the weighted Schatten norm."""
        return lp_norm(self.sigma, p)

    def scaled_into_ball(self, p: float, radius: float) -> Factors:
        """Scale the matrix so that its norm is at most ``radius``."""
        by = radius / max(self.norm(p), radius)
        return self if by == 1.0 else replace(self, lefts=self.lefts * by, sigma=self.sigma * by)

    def margin(self, rows: Array, cols: Array) -> Array:
        """Evaluate the model at entries (row, column)."""
        u = self.base + self.shift + self.rows[rows] + self.cols[cols]
        return np.asarray(u + LowRank.of(self.left, self.right).of_pairs(rows, cols))


# ---------------------------------------------------------------- users and items without ratings


@dataclass(frozen=True)
class OffsetModel:
    """Optimal offsets with a zero matrix, and the number of ratings of each user and item."""

    rows: Array
    cols: Array
    shift: float
    row_counts: Array
    col_counts: Array

    @classmethod
    def of(cls, f: CompletionProblem) -> OffsetModel:
        """Fit the offsets to the ratings of a problem."""
        b, m = f.entries.offsets_only, f.entries.pattern.shape[0]
        return cls(b[1 : 1 + m], b[1 + m :], float(b[0]), *f.counts)


@dataclass(frozen=True)
class ColdStartFactors:
    """Offsets and factors of users (or items), completed for those without ratings (``cold``).

    ``plain`` are the factors without the contribution of features. ``regression`` is a fitted ridge regression of
    offsets and factors on features, and its prediction at the mean.
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
        """Complete the offsets and factors of a model; the last row stands for an unknown user or item."""
        trust = counts / (counts + ridge)  # shrinkage of an offset towards zero
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
        """Predict offsets and factors without ratings, for each row of features, or for one without features."""
        n, offsets, mean = 1 if table is None else table.shape[0], np.zeros(1), self.plain[-1]
        more = np.zeros((n, len(mean)))
        if table is not None and self.regression is not None:
            regression, centre = self.regression
            predicted = np.reshape(regression.predict(table.matrix), (n, -1)) - centre
            offsets, more = predicted[:, 0], predicted[:, 1:]
        return ColdStartFactors(np.ones(n, dtype=bool), offsets, mean + more, np.tile(mean, (n, 1)))


@dataclass(frozen=True, eq=False)
class ColdStartModel:
    """Predictions for all pairs, including users and items without ratings.

    If both have ratings, the factors are used. Otherwise the factors would be biased: the matrix absorbs a part of the
    offsets, and users rate what they like, so that the mean of a column over its raters is not the mean over all users.
    Then the prediction uses the optimal offsets with a zero matrix, plus the contribution of features to offset and
    factors.
    """

    model: Factors
    offsets: OffsetModel
    users: ColdStartFactors
    items: ColdStartFactors

    @classmethod
    def of(
        cls, model: Factors, offsets: OffsetModel, tables: tuple[FeatureTable | None, FeatureTable | None], ridge: float
    ) -> Self:
        """Build it from a fitted model and the features of users and items."""
        users = ColdStartFactors.of(model.rows, model.left, offsets.rows, offsets.row_counts, tables[0], ridge)
        items = ColdStartFactors.of(model.cols, model.right, offsets.cols, offsets.col_counts, tables[1], ridge)
        return cls(model, offsets, users, items)

    def margin(self, rows: Array, cols: Array) -> Array:
        """Evaluate the model at entries; the index -1 stands for an unknown user or item."""
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
        """Evaluate all pairs of these rows and columns, assuming that one of each pair has no ratings."""
        one, other = self.users, self.items
        u: Array = one.factors[rows] @ other.factors[cols].T - one.plain[rows] @ other.plain[cols].T
        u += self.model.base + self.offsets.shift + one.offsets[rows][:, None] + other.offsets[cols]
        return u
