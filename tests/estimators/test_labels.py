"""Which labels a classifier takes: what scikit-learn's own check refuses or warns of, whatever type they have."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from projfree import ConstrainedClassifier, ConstrainedClassifierCV, ConstrainedRegressor, ConstrainedRegressorCV

X = np.random.default_rng(4).standard_normal((30, 2))
SIDES = X[:, 0] > 0


@pytest.mark.parametrize("kind", [ConstrainedClassifier, ConstrainedClassifierCV, ConstrainedRegressor])
@pytest.mark.parametrize("gone", [pd.NA, pd.NaT, None, math.nan], ids=repr)
def test_missing_targets_are_refused(kind, gone):
    sentence = rf"^`y` must hold a target for each row, got {gone} at index 7; drop or impute such rows first\.$"
    numbers, words = [int(side) for side in SIDES], ["ab"[int(side)] for side in SIDES]
    for y in (numbers, words)[: 1 if kind is ConstrainedRegressor else 2]:
        y[7] = gone
        for form in (y, np.array(y, dtype=object), pd.Series(y, dtype=object)):
            with pytest.raises(ValueError, match=sentence):
                kind().fit(X, form)


@pytest.mark.parametrize("kind", [ConstrainedClassifier, ConstrainedRegressor, ConstrainedRegressorCV])
def test_targets_that_are_missing_as_a_whole_are_refused(kind):
    with pytest.raises(ValueError, match=r"^`y` must hold a target for each row, got <NA>; drop or impute"):
        kind().fit(X, pd.NA)


def fit(y):
    return ConstrainedClassifier(tol=1e-2).fit(X, y)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32, np.float64, str, object])
def test_labels_of_every_type(kind):
    y = (SIDES.astype(str) if kind is object else SIDES).astype(kind)
    model = fit(y)
    assert model.classes_.dtype == y.dtype
    assert model.score(X, y) > 0.8
