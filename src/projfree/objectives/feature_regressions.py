"""What features add to the regressions of a sweep: a Gram matrix that rows share, right-hand sides, and further rows.

Weights are those of `Neighbours` times the number of entries: the sweeps minimise sums and not means.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.objectives.neighbours import Neighbours


def feature_gram(near: Neighbours, side: int, far: Array, n: int) -> Array:
    """The Gram matrix that the features of rows (``side`` 0) or columns (1) add, given the factors ``far`` of those."""
    own = far[near.counts[side] :]
    gram: Array = near.weight * n * (own.T @ own)
    return gram


def feature_pull(near: Neighbours, side: int, far: Array, n: int) -> Array:
    """The right-hand sides that they add, one for each row or column; none where there are no features."""
    table = near.features[side]
    if table is None:
        return np.zeros((0, far.shape[1]))
    return near.weight * n * table.times(far[near.counts[side] :])


def feature_factors(near: Neighbours, side: int, own: Array, ridge: Array, n: int) -> Array:
    """The factors of the features of rows or columns themselves, given those of the rows or columns."""
    table, weight = near.features[side], near.weight * n
    if table is None:
        return np.zeros((0, own.shape[1]))
    found: Array = weight * table.transposed_times(own) @ np.linalg.inv(weight * own.T @ own + np.diag(ridge))
    return found


def from_features(pull: Array, gram: Array, ridge: Array, scale: Array) -> Array:
    """The factors of rows of which nothing but features is known; ``scale`` multiplies the ridge of each."""
    out = np.empty(pull.shape)
    for size in np.unique(scale):
        at = scale == size
        out[at] = pull[at] @ np.linalg.inv(gram + size * np.diag(ridge))
    return out
