"""Estimators refuse masked entries: scikit-learn's own checks look at the numbers below the mask."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    MatrixCompletion,
    MatrixCompletionCV,
)

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((30, 3)), np.arange(30) % 2
LINEAR = [ConstrainedRegressor(), ConstrainedClassifier(), ConstrainedRegressorCV(), ConstrainedClassifierCV()]
RATINGS = np.column_stack([np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6), RNG.standard_normal(30)])


def masked(array, at):
    out = np.ma.array(array)
    out[at] = np.ma.masked
    return out


def refused(name, at):
    return pytest.raises(ValueError, match=f"`{name}` must not have masked entries, got 1, the first at index {at};")


@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
def test_linear(model):
    for name, at, given in [
        ("X", r"\(4, 1\)", (masked(X, (4, 1)), Y)),
        ("y", "5", (X, masked(Y, 5))),
        ("sample_weight", "6", (X, Y, masked(np.ones(30), 6))),
    ]:
        with refused(name, at):
            model.fit(*given)


@pytest.mark.parametrize("model", [MatrixCompletion(), MatrixCompletionCV()], ids=lambda model: type(model).__name__)
def test_completion(model):
    users, items, values = RATINGS[:, 0].astype(int), RATINGS[:, 1].astype(int), RATINGS[:, 2]
    for name, at, given in [
        ("X", r"\(4, 2\)", (masked(RATINGS, (4, 2)),)),
        ("users", "3", ((masked(users, 3), items, values),)),
        ("ratings", "5", ((users, items), masked(values, 5))),
        ("sample_weight", "6", (RATINGS, None, masked(np.ones(30), 6))),
    ]:
        with refused(name, at):
            model.fit(*given)


def test_more_ratings():
    model = MatrixCompletion().fit(RATINGS, sample_weight=np.ones(30))
    with refused("sample_weight", "2"):
        model.partial_fit(RATINGS[:3], sample_weight=masked(np.ones(3), 2))
