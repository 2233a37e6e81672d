"""UCI Adult: whether a person earns more than 50,000 dollars a year."""

from __future__ import annotations

import numpy as np

from projfree.datasets.base import Dataset, standardize_columns
from projfree.datasets.sources import load_packaged

#: The columns of the original files, in their order.
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
]
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = tuple(name for name in COLUMNS if name not in NUMERIC)
N_TRAIN = 32_561


def load_adult() -> Dataset:
    """Load all 48,842 rows of Adult: first those of ``adult.data``, then those of ``adult.test``.

    ``y`` is +1 for ``>50K`` and -1 otherwise. X has 108 columns: the 6 numeric ones, standardised over all rows, and
    the one-hot encoding of the others, with 102 levels in alphabetical order. Missing entries (``?``) are a level.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.X.shape, adult.feature_names[0], adult.feature_names[-1]
    ((48842, 108), 'age', 'native-country=Yugoslavia')
    """
    arrays = load_packaged("adult.npz")
    levels = {name: arrays["levels " + name] for name in CATEGORICAL}
    names = [*NUMERIC, *(f"{name}={level}" for name in CATEGORICAL for level in levels[name])]
    X = np.zeros((len(arrays["label"]), len(names)))
    X[:, : len(NUMERIC)] = standardize_columns(np.column_stack([arrays[name] for name in NUMERIC]).astype(np.float64))
    first = len(NUMERIC)
    for name in CATEGORICAL:
        X[np.arange(len(X)), first + arrays[name].astype(np.intp)] = 1.0
        first += len(levels[name])
    return Dataset(
        X=X,
        y=np.where(arrays["label"], 1.0, -1.0),
        feature_names=tuple(names),
        name="Adult",
        description=f"UCI Adult (Census Income), 48,842 rows, one-hot encoding with {X.shape[1]} columns.",
        licence="CC BY 4.0; Becker and Kohavi, UCI Machine Learning Repository, doi:10.24432/C5XW20",
        n_train=N_TRAIN,
    )
