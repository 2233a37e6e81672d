"""Scores of linear models: on arrays, and on data whose rows are elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, Point, frozen
from projfree.checks import Array
from projfree.data import Data
from projfree.data.rows import Rows, Step
from projfree.losses.base import LogLinkLoss, Loss
from projfree.losses.log_link import log_of
from projfree.objectives.row_steps import weigh


def has_deviance(loss: Loss) -> bool:
    """Whether models of a loss are scored by their deviance: those of means on a logarithmic scale."""
    return not math.isfinite(loss.smoothness)


def deviance_terms(loss: Loss, u: Array, y: Array, mean: Array) -> tuple[Array, Array, Array]:
    """For each row the loss of a linear prediction, that of the mean of the targets, and the rounding of both.

    The loss is the deviance for Poisson and Gamma losses, else the square.
    """
    if not has_deviance(loss):
        return (y - loss.mean(u)) ** 2, (y - mean) ** 2, np.zeros(y.shape)
    null = loss.value(np.broadcast_to(log_of(mean), y.shape), y)
    floor = loss.floor(y) if isinstance(loss, LogLinkLoss) else np.zeros(y.shape)
    return (
        loss.value(u, np.broadcast_to(y, u.shape)),
        np.where(mean > 0.0, null, 0.0),
        2.0 * UNIT * loss.rounding * floor,
    )


def d2_score(loss: Loss, y: Array, u: Array, weight: Array | None = None) -> Array:
    r"""D2 for Poisson and Gamma losses, else R2: one less the loss of ``u`` over that of the mean of the targets.

    As in scikit-learn's `PoissonRegressor` and `r2_score`, of each of m models: ``u`` has the shape (n, m) or
    (n, m, k). The mean over outputs where there are several.
    """
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    losses = deviance_terms(loss, u, y[:, None], np.average(y, axis=0, weights=weight))
    parts = explained_fraction(*(np.tensordot(share, each, axes=1) for each in losses))
    return parts if y.ndim == 1 else parts.mean(axis=1)


def explained_fraction(own: Array, null: Array, rounding: Array) -> Array:
    """One less the ratio of two losses; what is no more than rounding counts as zero.

    Constant targets leave nothing to explain: as for `r2_score` of scikit-learn, the part is 1 where all of them are
    predicted, and 0 elsewhere.
    """
    own, null = np.where(own > rounding, own, 0.0), np.where(null > rounding, null, 0.0)
    return np.asarray(1.0 - np.divide(own, null, out=np.where(own > 0.0, 1.0, 0.0), where=null > 0.0))


def predicted_classes(u: Array) -> Array:
    """The indices of the classes with the largest scores; those of two classes may have one column."""
    return (u > 0).astype(np.intp) if u.ndim == 1 else u.argmax(axis=1)


# ---------------------------------------------------------------------- rows that are elsewhere


@dataclass(frozen=True, eq=False)
class CorrectWeight(Step):
    """The weight of the rows whose label is that of the largest score."""

    classes: Array
    b: Array

    def block(self, rows: Rows, *predictions: Array) -> tuple[Array | None, Array]:
        guess = self.classes[predicted_classes(predictions[0] + self.b)]
        return None, np.array([weigh((guess == rows.y).astype(np.float64), rows.s).sum()])


@dataclass(frozen=True, eq=False)
class DevianceSums(Step):
    """For each output the weighted losses of predictions and of a mean, and their rounding."""

    loss: Loss
    b: Array
    mean: Array

    def block(self, rows: Rows, *predictions: Array) -> tuple[Array | None, Array]:
        losses = np.broadcast_arrays(*deviance_terms(self.loss, predictions[0] + self.b, rows.y, self.mean))
        return None, np.ravel([np.atleast_1d(weigh(each, rows.s).sum(axis=0)) for each in losses])


def prediction_sums(data: Data, step: Step, coef: Array) -> Array:
    """The sums of a step over the predictions of coefficients, formed where the rows are."""
    return np.asarray(data.open().fold(step, (Point(frozen(np.array(coef.T, dtype=np.float64))),)))
