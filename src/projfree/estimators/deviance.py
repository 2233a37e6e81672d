"""The part of a deviance that a model explains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.losses.base import Loss


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
    mean = np.log(np.average(y, axis=0, weights=weight))
    own, null = (np.average(loss.value(v, y), axis=0, weights=weight) for v in (u, np.broadcast_to(mean, y.shape)))
    return float(np.mean(1.0 - own / null))
