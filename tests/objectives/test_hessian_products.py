"""Products with a Hessian are those of the matrix that `hessian` forms, for one read each, wherever the rows lie."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Objective,
    Perturbed,
    Poisson,
    QuadraticForm,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
    as_data,
)
from projfree.testing import SealedData

N, D, K = 83, 5, 3
LOSSES = [
    (Squared(), 0),
    (Squared(), K),
    (Logistic(), 0),
    (Logistic(), K),
    (Huber(0.7), 0),
    (SquaredSigmoid(), 0),
    (BiWeight(1.0), 0),
    (SquaredHinge(), 0),
    (Poisson(), K),
    (Gamma(), 0),
    (Softmax(), K),
]


def table(loss, outputs, seed):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, D)) + 1.5) * (rng.random((N, D)) < 0.6)
    u = X @ rng.standard_normal((D, max(1, outputs))) + rng.standard_normal((N, max(1, outputs)))
    if loss.coupled:
        return X, np.concatenate([np.arange(K), u.argmax(axis=1)[K:]]), rng.uniform(0.1, 1.0, N)
    y = np.where(u > np.median(u, axis=0), 1.0, -1.0) if loss.labels else u
    y = np.exp(0.5 * u) if isinstance(loss, Poisson | Gamma) else y
    return X, y if outputs else y[:, 0], rng.uniform(0.1, 1.0, N)


def agree(f, g, seed):
    """Products of ``f`` are those of the Hessian of ``g``, the same function."""
    rng = np.random.default_rng(seed)
    x, v = f.point(0.4 * rng.standard_normal(f.shape)), rng.standard_normal(f.shape)
    H = g.hessian(g.point(x.w)).matrix
    products = f.hessian(x)
    for direction in (v, -3.0 * v, np.eye(1, v.size, v.size - 1).reshape(f.shape)):
        due = (H @ direction.ravel()).reshape(f.shape)
        atol = 1e-11 * float(np.abs(H).max()) * max(1.0, float(np.abs(direction).max()))
        np.testing.assert_allclose(products.times(direction), due, rtol=0, atol=atol)
    points = tuple(f.point(each) for each in rng.standard_normal((4, *f.shape)))
    V = np.stack([p.w.ravel() for p in points])
    found, due = products.products(points[:2], points[2:]), V[:2] @ H @ V.T
    np.testing.assert_allclose(found, due, rtol=0, atol=1e-11 * np.abs(due).max() + 1e-14)


BACKENDS = {
    "dense": as_data,
    "sparse": lambda X, y, s: as_data(sp.csr_array(X), y, s),
    "standardized": lambda X, y, s: as_data(X, y, s, centre=True, scale=True),
    "sparse, standardized": lambda X, y, s: as_data(sp.csr_array(X), y, s, centre=True, scale=True),
    "sealed": SealedData,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=repr)
def test_products_are_those_of_the_hessian(loss, outputs, intercept, backend):
    X, y, s = table(loss, outputs, 0)
    f = Objective(loss, BACKENDS[backend](X, y, s), intercept)
    agree(f, f.open(), 3)


def test_products_of_a_form_and_of_a_perturbed_function():
    A = np.random.default_rng(0).standard_normal((6, 4))
    form = QuadraticForm(A.T @ A, np.ones((4, 2)))
    agree(form, form, 1)
    X, y, s = table(Logistic(), 0, 1)
    f = Perturbed(Objective(Logistic(), as_data(X, y, s), True), 0.3, np.ones(D))
    agree(f, f, 1)


@pytest.mark.parametrize(
    ("loss", "outputs", "intercept", "first", "each"),
    [
        (Squared(), 0, True, 0, 1),
        (Logistic(), 0, False, 0, 1),
        (Logistic(), 0, True, 1, 1),
        (Softmax(), K, False, 0, 1),
        (Softmax(), K, True, 0, 2),
    ],
)
def test_reads(loss, outputs, intercept, first, each):
    X, y, s = table(loss, outputs, 0)
    f = Objective(loss, as_data(X, y, s), intercept)
    x = f.evaluate(f.point(np.full(f.shape, 0.1)), keep=True).point
    before = f.passes
    H = f.hessian(x)
    assert f.passes == before, "nothing is read before it is needed"
    for k in range(3):
        H.times(np.full(f.shape, 1.0 + k))
    assert f.passes - before == first + 3 * each


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "outputs"), LOSSES, ids=repr)
def test_the_diagonal_is_of_the_right_size(loss, outputs, intercept):
    X, y, s = table(loss, outputs, 0)
    f = Objective(loss, as_data(X, y, s), intercept)
    x = f.point(np.full(f.shape, 0.05))
    found, due = f.hessian(x).diagonal(), np.diag(f.hessian(x).matrix).reshape(f.shape)
    assert found.shape == f.shape
    assert np.all(found <= 20.0 * due)
    assert np.all(due <= 20.0 * found)
