"""UCI YearPredictionMSD: predict the year of a song from 90 audio features."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.datasets.base import Dataset, standardize_columns
from projfree.datasets.sources import SOURCES, check_content, find_file, load_packaged, open_text

FEATURES = tuple([f"timbre_avg_{i}" for i in range(1, 13)] + [f"timbre_cov_{i}" for i in range(1, 79)])
N_ROWS, N_TRAIN = 515_345, 463_715
FIRST_ROW = (2001.0, 49.94357, 21.47114, 73.0775, 8.74861)
LICENCE = "CC BY 4.0; Bertin-Mahieux, UCI Machine Learning Repository, doi:10.24432/C50K61"


def load_year_sample(standardize: bool = True) -> Dataset:
    """Load 7,000 real rows of YearPredictionMSD, equal to the original to the last bit; ``y`` holds the years.

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
    arrays = load_packaged("year_sample.npz")
    X = decode_columns(arrays["planes"], arrays["lowest"])
    return Dataset(
        X=standardize_columns(X) if standardize else X,
        y=arrays["year"].astype(np.float64),
        feature_names=FEATURES,
        name="YearPredictionMSD sample",
        description="7,000 random rows of UCI YearPredictionMSD, 5,000 for training and 2,000 for testing.",
        licence=LICENCE,
        n_train=5_000,
    )


def decode_columns(planes: Array, lowest: Array) -> Array:
    """Decode packed columns: ``planes[k, j, i]`` is byte k of 1e5 times (column j, row i) minus ``lowest[j]``.

    The original text has five decimals, so that dividing the integer by 1e5 gives the same float as reading the text.
    """
    integers = sum(planes[k].astype(np.int64) << (8 * k) for k in range(len(planes))) + lowest[:, None]
    return np.ascontiguousarray(integers.T) / 1e5


def load_year(standardize: bool = True, *, download: bool = True) -> Dataset:
    """Load the original YearPredictionMSD, 515,345 x 90; its shape and its first row are checked.

    Parameters
    ----------
    standardize : bool
        Whether to standardize the columns of X with the statistics of all rows.
    download : bool
        Whether to download the file from the UCI repository (200 MB) if ``YearPredictionMSD.txt``, plain or as .zip or
        .gz, is neither in PROJFREE_DATA nor in the cache.

    Examples
    --------
    >>> try:
    ...     year = load_year(download=False)
    ... except FileNotFoundError:
    ...     year = load_year_sample()
    >>> year.X.shape[1], year.feature_names[0]
    (90, 'timbre_avg_1')
    """
    source = SOURCES["year"]
    path = find_file("load_year()", source, download)
    what = f"{N_ROWS:,} rows of a year and 90 features"
    with check_content("load_year", what, path, source), open_text(path) as text:
        table = np.loadtxt(text, delimiter=",", ndmin=2)
        if table.shape != (N_ROWS, 1 + len(FEATURES)):
            raise ValueError(f"a table of {table.shape[0]:,} x {table.shape[1]} numbers")
        if tuple(table[0, : len(FIRST_ROW)].tolist()) != FIRST_ROW:
            raise ValueError(f"a first row that begins {table[0, : len(FIRST_ROW)].tolist()}")
    X = np.ascontiguousarray(table[:, 1:])
    return Dataset(
        X=standardize_columns(X) if standardize else X,
        y=np.array(table[:, 0]),
        feature_names=FEATURES,
        name="YearPredictionMSD",
        description="UCI YearPredictionMSD, all 515,345 rows; the first 463,715 are the official training part.",
        licence=LICENCE,
        n_train=N_TRAIN,
    )
