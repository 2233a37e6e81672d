"""Scores of linear models, on arrays and on `Data` whose rows are stored elsewhere."""

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
    """Return whether the score of a loss is D2, as for the losses with a log link, else R2."""
    return not math.isfinite(loss.smoothness)


def deviance_terms(loss: Loss, u: Array, y: Array, mean: Array) -> tuple[Array, Array, Array]:
    """Return for each row the loss of the prediction, the loss of the mean target, and a bound on their rounding.

    The loss is the deviance for Poisson and Gamma losses, else the squared error.
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
    r"""Return D2 for Poisson and Gamma losses, else R2: one minus the ratio of the loss to that of the mean target.

    The same as `d2_tweedie_score` and `r2_score` of scikit-learn, for each of m models: ``u`` has shape (n, m) or (n,
    m, k). With several outputs, the score is their mean.
    """
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    losses = deviance_terms(loss, u, y[:, None], np.average(y, axis=0, weights=weight))
    parts = explained_fraction(*(np.tensordot(share, each, axes=1) for each in losses))
    return parts if y.ndim == 1 else parts.mean(axis=1)


def explained_fraction(own: Array, null: Array, rounding: Array) -> Array:
    """Return one minus the ratio of two losses; losses below their rounding error count as zero.

    If the targets are constant, the score is 1 for perfect predictions and 0 otherwise, as in `r2_score` of
    scikit-learn.
    """
    own, null = np.where(own > rounding, own, 0.0), np.where(null > rounding, null, 0.0)
    return np.asarray(1.0 - np.divide(own, null, out=np.where(own > 0.0, 1.0, 0.0), where=null > 0.0))


def predicted_classes(u: Array) -> Array:
    """Return the index of the class with the largest score; a single column separates two classes by its sign."""
    return (u > 0).astype(np.intp) if u.ndim == 1 else u.argmax(axis=1)


# ---------------------------------------------------------------------- rows outside memory


@dataclass(frozen=True, eq=False)
class CorrectWeight(Step):
    """Step that sums the weights of correctly classified rows."""

    classes: Array
    b: Array

    def block(self, rows: Rows, *predictions: Array) -> tuple[Array | None, Array]:
        guess = self.classes[predicted_classes(predictions[0] + self.b)]
        return None, np.array([weigh((guess == rows.y).astype(np.float64), rows.s).sum()])


@dataclass(frozen=True, eq=False)
class DevianceSums(Step):
    """Step that sums the outputs of `deviance_terms` with the weights of the rows, for each output."""

    loss: Loss
    b: Array
    mean: Array

    def block(self, rows: Rows, *predictions: Array) -> tuple[Array | None, Array]:
        losses = np.broadcast_arrays(*deviance_terms(self.loss, predictions[0] + self.b, rows.y, self.mean))
        return None, np.ravel([np.atleast_1d(weigh(each, rows.s).sum(axis=0)) for each in losses])


def prediction_sums(data: Data, step: Step, coef: Array) -> Array:
    """Run a step on the predictions of some coefficients, where the rows are stored."""
    return np.asarray(data.open().fold(step, (Point(frozen(np.array(coef.T, dtype=np.float64))),)))
