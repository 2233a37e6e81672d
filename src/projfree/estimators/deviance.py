"""The part of a deviance that a model explains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array
from projfree.losses.base import LogLinkLoss, Loss
from projfree.losses.log_link import log_of


def column_or_outputs(y: Any) -> Array:
    """Targets as an array, one column as a vector."""
    out: Array = np.asarray(y, dtype=np.float64)
    return out[:, 0] if out.ndim == 2 and out.shape[1] == 1 else out


def has_deviance(loss: Loss) -> bool:
    """Whether models of a loss are scored by their deviance: those of means on a logarithmic scale."""
    return not math.isfinite(loss.smoothness)


def explained_deviance(loss: Loss, y: Array, u: Array, weight: Array | None = None) -> float:
    r"""D2: one less the deviance of the linear predictions ``u`` over that of the mean of the targets.

    As in scikit-learn's `PoissonRegressor` and `GammaRegressor`; the mean over outputs where there are several.
    """
    terms = deviances(loss, u, y, np.average(y, axis=0, weights=weight))
    return explained_part(*(np.average(each, axis=0, weights=weight) for each in terms))


def deviances(loss: Loss, u: Array, y: Array, mean: Array) -> tuple[Array, Array, Array]:
    """For each row the deviance of a linear prediction, that of the mean of the targets, and the rounding of both."""
    null = np.broadcast_to(log_of(mean), u.shape)
    floor = loss.floor(y) if isinstance(loss, LogLinkLoss) else np.zeros(u.shape)
    return loss.value(u, y), np.where(mean > 0.0, loss.value(null, y), 0.0), 2.0 * UNIT * loss.rounding * floor


def explained_part(own: Array, null: Array, rounding: Array | float = 0.0) -> float:
    """One less the ratio of two losses, the mean over outputs; what is no more than rounding counts as zero.

    Constant targets leave nothing to explain: as for `r2_score` of scikit-learn, the part is 1 where all of them are
    predicted, and 0 elsewhere.
    """
    own, null = np.where(own > rounding, own, 0.0), np.where(null > rounding, null, 0.0)
    ratio = np.divide(own, null, out=np.where(own > 0.0, 1.0, 0.0), where=null > 0.0)
    return float(np.mean(1.0 - ratio))
