"""Scores of many predictions of the same rows at once, equal to those of scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from projfree.checks import Array

Scores = Callable[[Array, Array, Array | None], Array]


def r2_scores(y: Array, guesses: Array, weight: Array | None) -> Array:
    """The coefficient of determination of each of m predictions of shape (n, m) or (n, m, k), averaged over outputs."""
    left = _mean_square(y, guesses, weight)
    mean = np.average(y, axis=0, weights=weight)
    spread = np.average((y - mean) ** 2, axis=0, weights=weight)
    scores = np.where(spread > 0.0, 1.0 - left / np.where(spread > 0.0, spread, 1.0), np.where(left > 0.0, 0.0, 1.0))
    return np.asarray(scores if scores.ndim == 1 else scores.mean(axis=1))


def negative_mean_square(y: Array, guesses: Array, weight: Array | None) -> Array:
    """Minus the mean squared error of each of m predictions, averaged over outputs."""
    left = _mean_square(y, guesses, weight)
    return np.asarray(-left if left.ndim == 1 else -left.mean(axis=1))


def _mean_square(y: Array, guesses: Array, weight: Array | None) -> Array:
    return np.asarray(np.average((guesses - y[:, None]) ** 2, axis=0, weights=weight))


#: By the name that `scoring` has.
AT_ONCE: dict[str | None, Scores] = {
    None: r2_scores,
    "r2": r2_scores,
    "neg_mean_squared_error": negative_mean_square,
}
