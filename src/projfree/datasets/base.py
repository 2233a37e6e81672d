"""The data classes that loaders return."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from projfree.checks import Array


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and targets of a data set, with its description.

    Parameters
    ----------
    X, y : ndarray
        The features, one row per sample, and the targets.
    feature_names : tuple of str
        The names of the columns of X.
    name, description, licence : str
        What the data are, and under which terms they may be used.
    n_train : int, optional
        The number of training rows, which come first; None if the source has no test part.
    task : ndarray, optional
        The task of each row, from 0, for multi-task data.

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
    """Observed entries of a matrix, in the order of the file: ``values[k]`` is the entry ``(rows[k], cols[k])``.

    Parameters
    ----------
    rows, cols, values : ndarray
        The indices of the entries, from 0, and their values.
    shape : tuple of int
        The numbers of rows and columns of the matrix.
    row_ids, col_ids : ndarray
        The original ids in increasing order: row ``i`` is user ``row_ids[i]``, column ``j`` is item ``col_ids[j]``.
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
    """Center the columns of ``X`` and scale them to unit variance (divisor n), in place."""
    X -= X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    scale = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))
    X /= np.where(scale > 0, scale, 1)
    return X
