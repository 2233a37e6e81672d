"""What features add to the regressions of a sweep: a Gram matrix that rows share, right-hand sides, and further rows.

Weights are those of `Neighbours` times the number of entries: the sweeps minimise sums and not means. In regressions of
rows, which share their Gram matrix, a missing feature is what the factors say of it: these squares lie above those
without it, and touch them there. The factors of features are found without it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from projfree.checks import Array
from projfree.completion.ridge_inverse import ridge_inverse
from projfree.completion.side_information import Missing, Neighbours


def feature_gram(near: Neighbours, side: int, far: Array, n: int) -> Array:
    """The Gram matrix that the features of rows (``side`` 0) or columns (1) add, given the factors ``far`` of those."""
    own = far[near.counts[side] :]
    gram: Array = near.weight * n * (own.T @ own)
    return gram


def feature_pull(near: Neighbours, side: int, own: Array, far: Array, n: int) -> Array:
    """The right-hand sides that they add, one for each row or column; none where there are no features."""
    table, far, missing = near.features[side], far[near.counts[side] :], near.missing[side]
    if table is None:
        return np.zeros((0, far.shape[1]))
    return near.weight * n * missing.filled(table, missing.predicted(own, far)).times(far)


def feature_factors(near: Neighbours, side: int, own: Array, ridge: Array, n: int) -> Array:
    """The factors of the features of rows or columns themselves, given those of the rows or columns."""
    table, weight = near.features[side], near.weight * n
    if table is None:
        return np.zeros((0, own.shape[1]))
    pull = weight * table.transposed_times(own)
    found: Array = pull @ ridge_inverse(weight * own.T @ own, ridge)
    for column, gram in _grams(near.missing[side], own):
        found[column] = ridge_inverse(weight * gram, ridge) @ pull[column]
    return found


def _grams(missing: Missing, own: Array) -> Iterator[tuple[int, Array]]:
    """Features that are missing somewhere, and the Gram matrix of the factors where they are not."""
    if not len(missing.places):
        return
    own = own.astype(np.float64)  # what is taken off may be nearly all
    whole, order = own.T @ own, np.argsort(missing.columns, kind="stable")
    columns, begin = np.unique(missing.columns[order], return_index=True)
    for column, lines in zip(columns, np.split(missing.lines[order], begin[1:]), strict=True):
        without = own[lines]
        yield int(column), whole - without.T @ without


def from_features(pull: Array, gram: Array, ridge: Array, scale: Array) -> Array:
    """The factors of rows of which nothing but features is known; ``scale`` multiplies the ridge of each."""
    out = np.empty(pull.shape)
    for size in np.unique(scale):
        at = scale == size
        out[at] = pull[at] @ ridge_inverse(gram, size * ridge)
    return out
