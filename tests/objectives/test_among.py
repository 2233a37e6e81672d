"""The curvature among points is that of the Hessian, for every loss, storage and intercept, in one read."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BiWeight,
    BlackBox,
    Huber,
    Logistic,
    Objective,
    Perturbed,
    QuadraticForm,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
)
from projfree.testing import SealedData

RNG = np.random.default_rng(8)
X = np.where(RNG.random((50, 5)) < 0.7, RNG.standard_normal((50, 5)), 0.0) + 0.3 * (np.arange(5) == 1)
Y = X @ np.arange(5.0) + RNG.standard_normal(50)
MANY = np.column_stack([Y, -Y, np.sin(Y)])
WEIGHT = RNG.uniform(0.5, 2.0, 50)
LOSSES = {
    "squares": (Squared(), Y),
    "outputs": (Squared(), MANY),
    "logistic": (Logistic(), np.sign(Y)),
    "huber": (Huber(1.0), Y),
    "softmax": (Softmax(), np.arange(50) % 3),
    "biweight": (BiWeight(), Y),
    "sigmoid": (SquaredSigmoid(), np.sign(Y)),
}
STORAGE = {
    "dense": lambda y: as_data(X, y, WEIGHT),
    "sparse": lambda y: as_data(sp.csr_array(X), y, WEIGHT),
    "scaled": lambda y: as_data(X, y, WEIGHT, centre=True, scale=True),
    "sealed": lambda y: SealedData(X, y, WEIGHT),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_that_of_the_hessian(name, storage, intercept, sparse):
    loss, y = LOSSES[name]
    f = Objective(loss, STORAGE[storage](y), fit_intercept=intercept)
    x = f.evaluate(f.point(0.3 * RNG.standard_normal(f.shape)), keep=True).point
    ways = RNG.standard_normal((7, *f.shape))
    if sparse:  # which are read together where the table is sparse
        ways = ways * (RNG.random(ways.shape) < 0.2)
    points = tuple(f.point(v) for v in ways)
    before = f.passes
    K = f.hessian(x).products(points[:3], points[3:])
    assert f.passes - before <= 1.0
    V = ways.reshape(7, -1)
    expected = V[:3] @ f.hessian(x).matrix @ V.T
    np.testing.assert_allclose(K, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max() + 1e-14)


@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_forms_and_what_is_perturbed(shape):
    A = RNG.standard_normal((6, 4))
    form = QuadraticForm(A.T @ A, RNG.standard_normal(shape))
    points = tuple(form.point(v) for v in RNG.standard_normal((3, *shape)))
    H = form.hessian(points[0]).matrix
    V = np.stack([p.w.ravel() for p in points])
    for f in (form, Perturbed(form, 0.1, np.ones(shape))):
        np.testing.assert_allclose(f.hessian(points[0]).products(points[:1], points[1:]), V[:1] @ H @ V[[0, 1, 2]].T)


def test_calls_have_none():
    f = BlackBox(lambda w: (w @ w, 2 * w), 2, convex=True)
    assert f.hessian(f.point(np.ones(2))) is None
