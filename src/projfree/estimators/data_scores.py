"""Scores of a model on a data class: sums over rows that are formed where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from projfree.algebra import Point, frozen
from projfree.checks import Array, shown
from projfree.data import Data, as_data
from projfree.data.convert import is_dask
from projfree.data.rows import Rows, Step
from projfree.estimators.deviance import deviances, explained_part
from projfree.estimators.lazily import refuse_other_columns
from projfree.losses.base import Loss
from projfree.objectives.row_steps import weigh


@dataclass(frozen=True, eq=False)
class Correct(Step):
    """The weight of the rows whose label is that of the largest score."""

    classes: Array
    b: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        u = images[0] + self.b
        guess = self.classes[(u > 0).astype(np.intp) if u.ndim == 1 else u.argmax(axis=1)]
        return None, np.array([weigh((guess == rows.y).astype(np.float64), rows.s).sum()])


@dataclass(frozen=True, eq=False)
class Squares(Step):
    """Weighted squares of what predictions leave, and of what a mean leaves, for each output."""

    loss: Loss
    b: Array
    mean: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        left, spread = (rows.y - guess for guess in (self.loss.mean(images[0] + self.b), self.mean))
        return None, np.ravel([np.atleast_1d(weigh(r**2, rows.s).sum(axis=0)) for r in (left, spread)])


@dataclass(frozen=True, eq=False)
class Deviances(Step):
    """Weighted deviances of predictions and of the mean, and their rounding, for each output."""

    loss: Loss
    b: Array
    mean: Array

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        terms = deviances(self.loss, images[0] + self.b, rows.y, self.mean)
        return None, np.ravel([np.atleast_1d(weigh(each, rows.s).sum(axis=0)) for each in terms])


def scored_data(X: Any, y: Any, sample_weight: Any) -> Data | None:
    """The data that a score is about where rows are not at hand, None where they are."""
    if is_dask(X):
        found: Data = as_data(X, y, sample_weight)
        return found
    return X if isinstance(X, Data) else None


def accuracy(model: Any, data: Data) -> float:
    """The share of the weight of rows whose label is predicted."""
    refuse_other_columns(model, data)
    w, b = _parameters(model, flat=len(model.coef_) == 1)
    return float(_folded(data, Correct(model.classes_, b), w)[0])


def explained(model: Any, data: Data, *, deviance: bool) -> float:
    """The part of the squares, or of the deviance, that predictions explain; the mean over outputs."""
    refuse_other_columns(model, data)
    w, b = _parameters(model, flat=False)
    step = (Deviances if deviance else Squares)(model.loss_, b, data.mean_target())
    return explained_part(*_folded(data, step, w).reshape(3 if deviance else 2, -1))


def _parameters(model: Any, *, flat: bool) -> tuple[Array, Array]:
    coef, b = np.asarray(model.coef_).T, np.asarray(model.intercept_)
    return (coef[:, 0], b[0]) if flat else (coef, b)


def _folded(data: Data, step: Step, w: Array) -> Array:
    return data.open().fold(step, (Point(frozen(np.array(w, dtype=np.float64))),))


def scorer_of(model: Any, scoring: Any) -> Any:
    """What judges a model on a data class: its own score, and nothing that would have to look at single rows."""
    own = "accuracy" if is_classifier(model) else "r2"
    if scoring is not None and scoring != own:
        raise ValueError(
            f"`scoring` must be None or {own!r} where rows are not at hand, got {shown(scoring)}; give arrays."
        )
    return lambda fitted, data: float(fitted.score(data))
