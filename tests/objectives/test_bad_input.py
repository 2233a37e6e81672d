"""Parameters and targets that an objective refuses, each with one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import Logistic, Objective, Softmax, Squared, SquaredSigmoid, as_data


def test_parameters_are_checked(build):
    f = build(Squared()).f
    with pytest.raises(ValueError, match=r"`w` must have the shape \(4,\) of the objective's parameter, got \(3,\)\."):
        f.point(np.zeros(3))
    with pytest.raises(ValueError, match=r"`w` must be finite, got nan at index 1"):
        f.point([0.0, np.nan, 0.0, 0.0])
    with pytest.raises(TypeError, match=r"`w` must hold real numbers, got dtype object"):
        f.point(np.zeros(4, dtype=object))
    assert f.point([1, 0, 0, 0]).w.dtype == np.float64
    with pytest.raises(TypeError, match=r"^`fit_intercept` must be True or False, got 'no'\.$"):
        Objective(Squared(), f.data, fit_intercept="no")


WRONG_TARGETS = {
    "0/1": (Logistic(), [0, 1, 1], ValueError, r"labels -1 and \+1, got 0\.0 at index 0; encode 0/1 labels as `2 \* y"),
    "text": (Logistic(), ["a", "b", "b"], TypeError, r"`y` must hold real numbers, got dtype <U1"),
    "three": (SquaredSigmoid(), [1, -1, 3], ValueError, r"labels -1 and \+1, got 3\.0 at index 2; encode other"),
    "negative": (Softmax(), [0, 1, -1], ValueError, r"class indices 0, \.\.\., k - 1, got -1\.0 at index 2; encode"),
    "fraction": (Softmax(), [0, 1, 0.5], ValueError, r"class indices 0, \.\.\., k - 1, got 0\.5 at index 2; encode"),
    "one class": (Softmax(), [0, 0, 0], ValueError, r"at least two classes, got the index 0 only; give `Softmax\("),
    "too many": (Softmax(classes=2), [0, 1, 2], ValueError, r"class indices 0, \.\.\., 2 - 1, got 2\.0 at index 2"),
    "one-hot": (Softmax(), np.eye(3), ValueError, r"one class index a sample, got an array of shape \(3, 3\); turn"),
}


@pytest.mark.parametrize(("loss", "y", "error", "sentence"), WRONG_TARGETS.values(), ids=WRONG_TARGETS)
def test_wrong_labels(loss, y, error, sentence):
    with pytest.raises(error, match=sentence):
        Objective(loss, as_data(np.ones((3, 2)), y))
