"""Folds of least squares: one read of the table gives the moments of every block, and their sums those of folds."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data import as_data
from projfree.data.gram import Gram
from projfree.estimators.table import Table
from projfree.losses.squared import Squared
from projfree.numerics.lp_quadratic import minimise_path
from projfree.objectives import Objective
from projfree.objectives.quadratic import QuadraticForm, gram_form
from projfree.run import Result
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import GapBound

FoldRows = tuple[Array, Array]

#: Moments about the mean that are a smaller part than this of those about the centre of the sums are too inexact.
LEAST_VARIATION = 1e-8
#: A relative gap is measured by the value, but by no less than this part of the value at zero.
LEAST_VALUE = 1e-6


def fold_grams(table: Table, folds: list[FoldRows]) -> tuple[Gram, list[Gram]]:
    """The moments of all rows, and those of the training rows of each fold.

    Where rows are held out at most once and train all other folds, each row is multiplied once: a fold is the sum of
    the blocks that the others hold out. Nothing is subtracted, so that nothing cancels.
    """
    if not _complementary(len(table.y), folds):
        return _gram(table), [_gram(table.part(rows)) for rows, _ in folds]
    parts = [held for _, held in folds]
    rest = np.ones(len(table.y), dtype=bool)
    rest[np.concatenate(parts)] = False
    if rest.any():
        parts.append(np.flatnonzero(rest))
    first = _gram(table.part(parts[0]))
    blocks = [first, *(_gram(table.part(rows), first) for rows in parts[1:])]
    return _sums(blocks, len(folds))


def _gram(table: Table, like: Gram | None = None) -> Gram:
    """The moments of a table, about the same centre as others if there are any."""
    data = as_data(table.X, table.y, table.weight)
    gram: Gram = data.gram() if like is None else Gram(like.d, like.outputs, like.shift).include(data)
    return gram


def _sums(blocks: list[Gram], folds: int) -> tuple[Gram, list[Gram]]:
    """The sum of all blocks, and the sums without each of the first ones."""
    behind = list(accumulate(reversed(blocks), _plus))
    whole, without = behind.pop(), []
    ahead: Gram | None = None
    for block in blocks[:folds]:
        after = behind.pop() if behind else None
        without.append(_plus(ahead, after))
        ahead = _plus(ahead, block)
    return whole, without


def _plus(one: Gram | None, other: Gram | None) -> Gram:
    """The moments of the rows of both, of which there may be none in one."""
    if one is None or other is None:
        only = one or other
        assert only is not None
        return only
    return copy(one).merge(other)


def _complementary(n: int, folds: list[FoldRows]) -> bool:
    """Whether each fold trains on the rows that it does not hold out, and no row is held out twice."""
    times = np.zeros(n, dtype=np.intp)
    for rows, held in folds:
        inside = np.ones(n, dtype=bool)
        inside[held] = False
        times[held] += 1
        if len(np.unique(held)) != len(held) or not np.array_equal(np.flatnonzero(inside), np.sort(rows)):
            return False
    return bool(times.max(initial=0) <= 1)


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """Least squares on some rows, ready to be solved for any radius.

    Attributes
    ----------
    gram : Gram
        Of the features in their own units.
    scaling : tuple of ndarray of shape (d,)
        What the features are shifted and divided by.
    form : QuadraticForm
        The mean squared error in the coefficients of the divided features.
    intercept : bool
        Whether one is minimised out.
    """

    gram: Gram
    scaling: tuple[Array, Array]
    form: QuadraticForm
    intercept: bool
    #: Of the divided features.
    scaled: Gram

    @classmethod
    def of(cls, gram: Gram, *, intercept: bool, standardize: bool) -> FoldMoments | None:
        """None where deviations drown in the rounding of the sums."""
        shift, scale, scaled = np.zeros(gram.d), np.ones(gram.d), gram
        if standardize:
            about = np.diag(gram.moment(gram.mean))
            if np.any(about <= LEAST_VARIATION * np.diag(gram.moment(gram.shift[: gram.d]))):
                return None
            scale = np.sqrt(about)
            shift = gram.mean if intercept else shift
            scaled = gram.standardized(shift, scale)
        return cls(gram, (shift, scale), gram_form(scaled, intercept), intercept, scaled)

    def solve(self, p: float, radii: Array) -> Solutions:
        """The minimisers over the l_p balls of these radii, in the units of the features."""
        f = self.form
        path = minimise_path(f.H, f.b, p, radii)
        w = np.stack([one.w for one in path])
        flat, images = w.reshape(len(radii), -1), np.moveaxis(np.tensordot(f.H, w, axes=(1, 1)), 0, 1)
        values = np.einsum("mi,mi->m", (0.5 * images - f.b).reshape(flat.shape), flat) + f.c
        # Once for the value and once for the bound that it is compared with, as in the tangents of the form.
        rounding = 2.0 * f.errors[0] + f.errors[1] * np.square(flat).sum(axis=1)
        scale = np.maximum(values, LEAST_VALUE * abs(f.c))
        # Squares are not negative: no gap is larger than the value.
        gaps = np.minimum([max(one.gap, 0.0) for one in path], np.maximum(values, 0.0))
        gaps = (gaps + rounding) / np.where(scale > 0.0, scale, 1.0)  # constant targets leave nothing to explain
        coefs, b = zip(*(self.raw(one, None) for one in w), strict=True)
        multipliers = np.array([one.multiplier for one in path])
        return Solutions(w, np.stack(coefs), np.stack(b), multipliers, values, gaps)

    def raw(self, w: Array, _: Any) -> tuple[Array, Array]:
        """Coefficients and intercept in the units of the features."""
        coef = w / self.scaling[1].reshape(-1, *[1] * (w.ndim - 1))
        return coef, self.gram.intercept(coef) if self.intercept else np.zeros(w.shape[1:])

    def of_rows(self, result: Result) -> Result:
        """A result on the form as one on the rows, with its intercept, which `verify` checks on them."""
        own = result.certificate
        b = self.scaled.intercept if self.intercept else _none
        certificate = replace(
            own, loss=Squared(), intercept=b(own.w), witness_intercept=None if own.witness is None else b(own.witness)
        )
        return replace(result, intercept=b(result.w), certificate=certificate)


def gap_on_rows(f: Objective, ball: ConstraintSet, w: Array) -> float:
    """The relative gap of a point from one read of the rows, whose squares are not negative."""
    here = f.evaluate(f.point(w))
    bound, centre = max(GapBound.of(ball, here).bound, 0.0), f(f.point(np.zeros(f.shape)))
    gap = max(here.value - bound, 0.0)
    return gap / max(here.value, LEAST_VALUE * centre) if gap > 0.0 else 0.0


def _none(_: Array) -> None:
    return None


@dataclass(frozen=True, eq=False)
class Solutions:
    """Minimisers for many radii along the first axis: as solved for, and in the units of the features."""

    w: Array
    coefs: Array
    intercepts: Array
    multipliers: Array
    values: Array
    gaps: Array

    def predict(self, X: Array) -> Array:
        """Predictions, of shape (n, m) or (n, m, k)."""
        m, d = self.coefs.shape[:2]
        flat = np.moveaxis(self.coefs, 1, 0).reshape(d, -1)
        return np.asarray(X @ flat).reshape(X.shape[0], m, *self.coefs.shape[2:]) + self.intercepts
