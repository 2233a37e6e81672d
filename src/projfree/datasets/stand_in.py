"""Generated replacements (stand-ins) for data that are not available, of the same shape and similar statistics."""

from __future__ import annotations

from typing import Literal

import numpy as np

from projfree.checks import Array, count, shown
from projfree.datasets.base import Dataset, Ratings
from projfree.datasets.year import LICENCE, N_ROWS, load_year_sample

#: Standard deviation of the noise relative to the sample; small enough to keep the columns skewed.
NOISE = 0.25
_BLOCK = 8_192
#: Shape and number of ratings of MovieLens, and rank of the generated matrix.
SHAPES = {"100k": ((943, 1_682), 100_000), "1m": ((6_040, 3_706), 1_000_209)}
FACTORS = 10


def year_stand_in(n: int = N_ROWS, seed: int = 0, *, standardize: bool = True) -> Dataset:
    r"""Generate ``n`` rows similar to YearPredictionMSD: bootstrapped rows of the real sample plus noise.

    With :math:`s = (x, y)` a random row of the sample, :math:`m` and :math:`\Sigma` its mean and covariance,

    .. math:: s' = m + (s - m + h e) / \sqrt{1 + h^2}, \qquad e \sim N(0, \Sigma), \quad h = 1/4,

    which preserves mean and covariance, and so the least-squares problem of the sample. Years become real numbers. The
    first rows do not depend on ``n``. Label every figure that uses these data "stand-in".

    Parameters
    ----------
    n : int
        Number of rows; the default is that of the original.
    seed : int
        Of the random generator.
    standardize : bool
        Use the standardised columns of the sample.

    Examples
    --------
    >>> data = year_stand_in(1_000)
    >>> data.name, data.X.shape, data.y.shape
    ('stand-in', (1000, 90), (1000,))
    """
    n, seed = count("year_stand_in(n=...)", n), count("year_stand_in(seed=...)", seed, lowest=0)
    source = load_year_sample(standardize)
    sample = np.column_stack([source.X, source.y])
    centre, shrink = sample.mean(axis=0), 1.0 / np.sqrt(1.0 + NOISE**2)
    rows = (sample - centre) * shrink
    factor = np.linalg.cholesky(np.cov(sample, rowvar=False, ddof=0)).T * (NOISE * shrink)
    X, y = np.empty((n, source.X.shape[1])), np.empty(n)
    for first in range(0, n, _BLOCK):
        # Each block has its own generator, so that a shorter stand-in is the beginning of a longer one.
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


def movielens_stand_in(size: Literal["100k", "1m"] = "100k", seed: int = 0) -> Ratings:
    r"""Generate ratings with the shape, the number and roughly the statistics of those of MovieLens.

    .. math:: m_{ij} = \mathrm{round}(3.53 + a_i + b_j + \langle u_i, v_j\rangle + e_{ij}), \quad 1 \le m_{ij} \le 5,

    with ten factors. Entries are drawn so that the popularity of users and films varies as in real data; each user and
    each film has a rating. Label every figure that uses these data "stand-in".

    Parameters
    ----------
    size : {"100k", "1m"}
        The data set to replace.
    seed : int
        Of the random generator.

    Examples
    --------
    >>> ratings = movielens_stand_in("100k")
    >>> ratings.shape, len(ratings.values), float(ratings.values.min()), float(ratings.values.max())
    ((943, 1682), 100000, 1.0, 5.0)
    """
    if size not in SHAPES:
        raise ValueError(f"`movielens_stand_in(size=...)` must be '100k' or '1m', got {shown(size)}.")
    (m, n), total = SHAPES[size]
    rng = np.random.default_rng((count("movielens_stand_in(seed=...)", seed, lowest=0), total))
    rows, cols = _draw_entries(m, n, total, rng)
    users, films = rng.standard_normal((m, FACTORS)), rng.standard_normal((n, FACTORS))
    taste = np.einsum("ij,ij->i", users[rows], films[cols]) * (0.55 / np.sqrt(FACTORS))
    bias = 0.42 * rng.standard_normal(m)[rows] + 0.48 * rng.standard_normal(n)[cols]
    values = np.clip(np.rint(3.53 + bias + taste + 0.75 * rng.standard_normal(total)), 1.0, 5.0)
    return Ratings(
        rows=rows,
        cols=cols,
        values=values,
        shape=(m, n),
        row_ids=np.arange(1, m + 1),
        col_ids=np.arange(1, n + 1),
        name=f"stand-in for MovieLens {size.upper()}",
        description=f"stand-in: {total:,} generated ratings of {m:,} users and {n:,} films; not real data.",
        licence="generated; no licence needed",
    )


def _draw_entries(m: int, n: int, total: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw distinct entries in random order, at least one per row and column, more in popular ones."""
    needed = np.concatenate([np.arange(m) * n + rng.integers(0, n, m), rng.integers(0, m, n) * n + np.arange(n)])
    popular_rows, popular_cols = (rng.lognormal(0.0, spread, size) for spread, size in ((1.0, m), (1.4, n)))
    p, q = popular_rows / popular_rows.sum(), popular_cols / popular_cols.sum()
    flat = np.unique(needed)
    while len(flat) < total:
        more = rng.choice(m, total, p=p) * n + rng.choice(n, total, p=q)
        new = np.setdiff1d(more, flat)
        flat = np.concatenate([flat, rng.permutation(new)[: total - len(flat)]])
    flat = rng.permutation(flat)
    return flat // n, flat % n
