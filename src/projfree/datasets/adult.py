"""UCI Adult: whether a person earns more than 50,000 dollars a year."""

from __future__ import annotations

from typing import Literal

import numpy as np

from projfree.checks import Array, shown
from projfree.datasets.base import Dataset, standardized
from projfree.datasets.sources import packaged

#: The columns of the original files, in their order.
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
]
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = tuple(name for name in COLUMNS if name not in NUMERIC)
N_TRAIN = 32_561


def load_adult(encoding: Literal["onehot", "raw"] = "onehot") -> Dataset:
    """Load all 48,842 rows of Adult: first those of ``adult.data``, then those of ``adult.test``.

    The packaged copy reproduces both original files to the byte. ``y`` is +1 for ``>50K`` and -1 otherwise.

    Parameters
    ----------
    encoding : {"onehot", "raw"}
        ``"onehot"``: 108 float64 columns, the 6 numeric ones standardised (over all rows), then one for each of
        the 102 levels, where ``?`` (unknown) is a level of its own. ``"raw"``: the 14 original fields in an
        object array, int for numeric and str for categorical ones.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.X.shape, adult.feature_names[0], adult.feature_names[-1]
    ((48842, 108), 'age', 'native-country=Yugoslavia')
    """
    if encoding not in ("onehot", "raw"):
        raise ValueError(f"`load_adult(encoding=...)` must be 'onehot' or 'raw', got {shown(encoding)}.")
    arrays = packaged("adult.npz")
    X, names = _onehot(arrays) if encoding == "onehot" else _raw(arrays)
    return Dataset(
        X=X,
        y=np.where(arrays["label"], 1.0, -1.0),
        feature_names=tuple(names),
        name="Adult",
        description=f"UCI Adult (Census Income), 48,842 rows, {encoding} encoding with {X.shape[1]} columns.",
        licence="CC BY 4.0; Becker and Kohavi, UCI Machine Learning Repository, doi:10.24432/C5XW20",
        n_train=N_TRAIN,
    )


def _onehot(arrays: dict[str, Array]) -> tuple[Array, list[str]]:
    """The numeric columns, standardised, then the levels of each categorical one in alphabetical order."""
    levels = {name: arrays["levels " + name] for name in CATEGORICAL}
    names = [*NUMERIC, *(f"{name}={level}" for name in CATEGORICAL for level in levels[name])]
    X = np.zeros((len(arrays["label"]), len(names)))
    X[:, : len(NUMERIC)] = standardized(np.column_stack([arrays[name] for name in NUMERIC]).astype(np.float64))
    first = len(NUMERIC)
    for name in CATEGORICAL:
        X[np.arange(len(X)), first + arrays[name].astype(np.intp)] = 1.0
        first += len(levels[name])
    return X, names


def _raw(arrays: dict[str, Array]) -> tuple[Array, list[str]]:
    X = np.empty((len(arrays["label"]), len(COLUMNS)), dtype=object)
    for j, name in enumerate(COLUMNS):
        if name in NUMERIC:
            X[:, j] = arrays[name].tolist()
        else:
            X[:, j] = arrays["levels " + name].astype(object)[arrays[name]]
    return X, COLUMNS
