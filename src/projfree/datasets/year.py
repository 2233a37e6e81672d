"""UCI YearPredictionMSD: the year of a song from 90 numbers about its sound."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

import numpy as np

from projfree.checks import Array
from projfree.datasets.base import Dataset, standardized
from projfree.datasets.sources import SOURCES, find, open_text, packaged

FEATURES = tuple([f"timbre_avg_{i}" for i in range(1, 13)] + [f"timbre_cov_{i}" for i in range(1, 79)])
N_ROWS, N_TRAIN = 515_345, 463_715
FIRST_ROW = (2001.0, 49.94357, 21.47114, 73.0775, 8.74861)
LICENCE = "CC BY 4.0; Bertin-Mahieux, UCI Machine Learning Repository, doi:10.24432/C50K61"


def load_year_sample(standardize: bool = True) -> Dataset:
    """Load 7,000 real rows of YearPredictionMSD, exact to the last bit; ``y`` holds the years.

    Parameters
    ----------
    standardize : bool
        Centre and scale the columns of X (never y).

    Examples
    --------
    >>> sample = load_year_sample(standardize=False)
    >>> sample.X.shape, float(sample.y[0]), float(sample.X[0, 0])
    ((7000, 90), 1999.0, 47.58427)
    """
    arrays = packaged("year_sample.npz")
    X = decode_columns(arrays["planes"], arrays["lowest"])
    return Dataset(
        X=standardized(X) if standardize else X,
        y=arrays["year"].astype(np.float64),
        feature_names=FEATURES,
        name="YearPredictionMSD sample",
        description="7,000 random rows of UCI YearPredictionMSD, 5,000 for training and 2,000 for testing.",
        licence=LICENCE,
        n_train=5_000,
    )


def decode_columns(planes: Array, lowest: Array) -> Array:
    """Undo the packing: ``planes[k, j, i]`` is byte k of 1e5 times (column j, row i), counted from ``lowest[j]``.

    The original text has five decimals, and dividing the whole number by 1e5 rounds as reading the text does.
    """
    whole = sum(planes[k].astype(np.int64) << (8 * k) for k in range(len(planes))) + lowest[:, None]
    return np.ascontiguousarray(whole.T) / 1e5


def load_year(
    path: str | os.PathLike[str] | None = None, standardize: bool = True, *, download: bool = True
) -> Dataset:
    """Load the original YearPredictionMSD, 515,345 x 90.

    Parameters
    ----------
    path : path-like, optional
        ``YearPredictionMSD.txt``, plain or as .zip or .gz; by default looked for below PROJFREE_DATA and in the cache.
    standardize : bool
        Centre and scale the columns of X by all rows.
    download : bool
        Whether a file that is in neither place is got from the UCI repository (200 MB).

    Raises
    ------
    ValueError
        Where the file is not the original: its shape and its first row are checked.

    Examples
    --------
    >>> try:
    ...     year = load_year(download=False)
    ... except FileNotFoundError:  # neither below PROJFREE_DATA nor in the cache
    ...     year = load_year_sample()
    >>> year.X.shape[1], year.feature_names[0]
    (90, 'timbre_avg_1')
    """
    found = Path(path) if path else find("load_year()", SOURCES["year"], download)
    with open_text(found) as text:
        X, y = parse(text, N_ROWS, str(found))
    return Dataset(
        X=standardized(X) if standardize else X,
        y=y,
        feature_names=FEATURES,
        name="YearPredictionMSD",
        description="UCI YearPredictionMSD, all 515,345 rows; the first 463,715 are the official training part.",
        licence=LICENCE,
        n_train=N_TRAIN,
    )


def parse(text: TextIO, n_rows: int, path: str) -> tuple[Array, Array]:
    """Read exactly ``n_rows`` rows of a year and 90 features, and check that they are the original."""
    try:
        table = np.loadtxt(text, delimiter=",", ndmin=2)
    except ValueError as error:
        raise _not_original(path, n_rows, f"some rows do not fit ({error})") from error
    if table.shape != (n_rows, 1 + len(FEATURES)):
        raise _not_original(path, n_rows, f"its shape is {table.shape}")
    first = tuple(table[0, : len(FIRST_ROW)].tolist())
    if first != FIRST_ROW:
        raise _not_original(path, n_rows, f"its first row begins {first}, not {FIRST_ROW}")
    return np.ascontiguousarray(table[:, 1:]), np.array(table[:, 0])


def _not_original(path: str, n_rows: int, why: str) -> ValueError:
    return ValueError(
        f"`load_year` expects the original YearPredictionMSD.txt with {n_rows:,} rows of 91 numbers, but {path!r} is "
        f"not that: {why}; get it again from {SOURCES['year'].page}."
    )
