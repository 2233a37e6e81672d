"""Integer weights equal repeated rows: in means and deviations, in scales of residuals, and in the radius chosen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from projfree import ConstrainedClassifier, ConstrainedRegressor

RNG = np.random.default_rng(7)
N = 40
X = RNG.standard_normal((N, 3)) * [1.0, 5.0, 0.2] + [0.0, 2.0, -1.0]
Y = X @ [1.0, -0.5, 3.0] + RNG.standard_t(3, N) + 2.0
TIMES = RNG.integers(1, 5, N)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(task=np.arange(N) % 2)
LABELS = np.where(np.median(Y) < Y, "high", "low")
THREE = np.array(["a", "b", "c"])[np.digitize(Y, [0.0, 4.0])]

CASES = {
    "squares": (ConstrainedRegressor(radius=1.0, tol=1e-10), X, Y),
    "scaled": (ConstrainedRegressor(radius=1.0, standardize=True, tol=1e-10), X, Y),
    "auto": (ConstrainedRegressor(radius="auto", tol=1e-10), X, Y),
    "auto, scaled": (ConstrainedRegressor(radius="auto", standardize=True, tol=1e-10), X, Y),
    "huber": (ConstrainedRegressor("huber", radius=2.0, tol=1e-10), X, Y),
    "biweight": (ConstrainedRegressor("biweight", radius=2.0, tol=1e-10), X, Y),
    "free": (ConstrainedRegressor(radius=1.0, free=[1], tol=1e-10), X, Y),
    "outputs": (ConstrainedRegressor(norm="group", radius=1.0, tol=1e-10), X, np.column_stack([Y, Y**2])),
    "tasks": (ConstrainedRegressor(norm="group", radius=1.0, task="task", tol=1e-10), FRAME, Y),
    "tasks, scaled": (
        ConstrainedRegressor(norm="group", radius=1.0, task="task", standardize=True, tol=1e-10),
        FRAME,
        Y,
    ),
    "logistic": (ConstrainedClassifier(radius=1.0, tol=1e-10), X, LABELS),
    "logistic, auto": (ConstrainedClassifier(radius="auto", standardize=True, tol=1e-10), X, LABELS),
    "softmax": (ConstrainedClassifier(radius=1.0, tol=1e-10), X, THREE),
    "balanced": (ConstrainedClassifier(radius=1.0, class_weight="balanced", tol=1e-10), X, THREE),
}


@pytest.mark.parametrize(("model", "X", "y"), CASES.values(), ids=CASES)
def test_integer_weights_equal_repeated_rows(model, X, y):
    rows = np.repeat(np.arange(N), TIMES)
    repeated = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    weighted = type(model)(**model.get_params()).fit(X, y, sample_weight=TIMES.astype(float))
    many = type(model)(**model.get_params()).fit(repeated, y[rows])
    plain = type(model)(**model.get_params()).fit(X, y)
    assert weighted.radius_ == pytest.approx(many.radius_, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, many.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weighted.intercept_, many.intercept_, rtol=1e-4, atol=1e-4)
    assert not np.allclose(plain.coef_, many.coef_, rtol=1e-3)  # the weights matter here
