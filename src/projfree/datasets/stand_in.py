"""A stand-in of YearPredictionMSD's full size, for work on speed and scale; it is never called by that name."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from projfree.checks import Array, count
from projfree.datasets.base import Dataset
from projfree.datasets.year import LICENCE, N_ROWS, load_year_sample

#: Standard deviation of the noise in units of the sample's: enough that no two rows are equal, little enough
#: that the skewed shape of the real columns stays.
NOISE = 0.25
_BLOCK = 8_192


def year_stand_in(
    n: int = N_ROWS, seed: int = 0, dtype: DTypeLike = np.float64, *, standardize: bool = True
) -> Dataset:
    r"""Draw ``n`` rows that look like YearPredictionMSD: bootstrapped rows of the real sample plus noise.

    With :math:`s = (x, y)` a random row of the sample, :math:`m` and :math:`\Sigma` its mean and covariance,

    .. math:: s' = m + (s - m + h e) / \sqrt{1 + h^2}, \qquad e \sim N(0, \Sigma), \quad h = 1/4,

    which keeps mean, covariance and thus the least-squares problem of the sample. Years are smoothed too, and
    so are not whole numbers. The first rows do not depend on ``n``. Label every figure made on it "stand-in".

    Parameters
    ----------
    n : int
        Number of rows; the default is that of the original.
    seed : int
        Of the random generator.
    dtype : {float64, float32}
        Of X; y is float64.
    standardize : bool
        Use the standardised columns of the sample.

    Notes
    -----
    Memory: X itself and a few megabytes.
    """
    n, seed = count("year_stand_in(n=...)", n), count("year_stand_in(seed=...)", seed, lowest=0)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"`year_stand_in(dtype=...)` must be float64 or float32, got {np.dtype(dtype)}.")
    source = load_year_sample(standardize)
    centre, rows, factor = _smoothing(np.column_stack([source.X, source.y]))
    X, y = np.empty((n, source.X.shape[1]), dtype), np.empty(n)
    for first in range(0, n, _BLOCK):
        # Whole blocks, each with its own generator: a shorter stand-in is the beginning of a longer one.
        rng = np.random.default_rng([seed, first // _BLOCK])
        drawn = rows[rng.integers(len(rows), size=_BLOCK)]
        drawn += rng.standard_normal(drawn.shape) @ factor
        drawn += centre
        last = min(n, first + _BLOCK)
        X[first:last], y[first:last] = drawn[: last - first, :-1], drawn[: last - first, -1]
    return Dataset(
        X=X,
        y=y,
        feature_names=source.feature_names,
        name="stand-in",
        description=f"stand-in: {n:,} bootstrapped rows of the YearPredictionMSD sample plus noise; not real data.",
        licence=LICENCE,
    )


def _smoothing(sample: Array) -> tuple[Array, Array, Array]:
    """The mean, and the rows and the factor of the covariance that make the sum above."""
    centre = sample.mean(axis=0)
    shrink = 1.0 / np.sqrt(1.0 + NOISE**2)
    rows = (sample - centre) * shrink
    factor = np.linalg.cholesky(np.cov(sample, rowvar=False, ddof=0)).T * (NOISE * shrink)
    return centre, rows, factor
