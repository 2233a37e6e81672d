"""What a loader returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from projfree.checks import Array


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and targets, and where they come from.

    Parameters
    ----------
    X, y : ndarray
        A row of features for each sample, and its target.
    feature_names : tuple of str
        The names of the columns of X.
    name, description, licence : str
        What the data are, and under which terms they may be used.
    n_train : int, optional
        Rows of the training part, which come first; the rest is the test part. None where the source has no split.
    task : ndarray, optional
        The task of each row, 0-based, where the data are multi-task.

    Examples
    --------
    >>> from projfree.datasets import load_year_sample
    >>> load_year_sample()
    Dataset(name='YearPredictionMSD sample', ..., n_train=5000)
    """

    X: Array = field(repr=False)
    y: Array = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    name: str
    description: str
    licence: str
    n_train: int | None = None
    task: Array | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Observed entries of a matrix: ``values[k]`` stands at ``(rows[k], cols[k])``, all in the file's order.

    Parameters
    ----------
    rows, cols, values : ndarray
        The places of the entries, 0-based, and what stands there.
    shape : tuple of int
        The numbers of rows and columns of the matrix.
    row_ids, col_ids : ndarray
        The original ids: row ``i`` is user ``row_ids[i]``, column ``j`` is item ``col_ids[j]``; both increase.
    name, description, licence : str
        What the data are, and under which terms they may be used.

    Examples
    --------
    >>> from projfree.datasets import movielens_stand_in
    >>> movielens_stand_in("100k")
    Ratings(shape=(943, 1682), name='stand-in for MovieLens 100K', ...)
    """

    rows: Array = field(repr=False)
    cols: Array = field(repr=False)
    values: Array = field(repr=False)
    shape: tuple[int, int]
    row_ids: Array = field(repr=False)
    col_ids: Array = field(repr=False)
    name: str
    description: str
    licence: str


def standardize_columns(X: Array) -> Array:
    """Centre and scale the columns of ``X`` in place, by all rows and with divisor n; no copy of ``X`` is made."""
    X -= X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    scale = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(scale > 0, scale, 1)
    return X
