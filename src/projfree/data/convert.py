"""`as_data`: one door for every kind of data."""

from __future__ import annotations

from typing import Any

from projfree.data.base import Data
from projfree.data.dense import DenseData
from projfree.data.entries import Entries, EntriesData


def as_data(X: Any, y: Any, sample_weight: Any = None) -> Data:
    """The data behind an objective.

    Parameters
    ----------
    X : array of shape (n, d) or Entries
        A table of features, or the places of the observed entries of a matrix.
    y : array of shape (n,) or (n, k)
        Targets; with two dimensions the parameter is a matrix of shape ``(d, k)``.
    sample_weight : array of shape (n,), optional
        Non-negative weights; the objective is the weighted mean over rows.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Entries, as_data
    >>> as_data(np.eye(3), [1, 2, 3]).n
    3
    >>> as_data(Entries([0, 1], [1, 0], shape=(2, 2)), [4.0, 5.0]).n
    2
    """
    if isinstance(X, Data):
        raise TypeError("`as_data` takes an array or Entries; this is data already, pass it to the objective as it is.")
    if isinstance(X, Entries):
        return EntriesData(X, y, sample_weight)
    return DenseData(X, y, sample_weight)
