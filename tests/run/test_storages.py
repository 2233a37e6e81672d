"""What a run certifies verifies on every storage and order of the same rows, and what was tampered with on none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    FrankWolfe,
    Huber,
    Logistic,
    LpBall,
    Objective,
    Quantile,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
    minimize,
    path,
)
from projfree.sets import Weighted

ORDER = np.random.default_rng(5).permutation(60)


def permuted(a):
    return None if a is None else a[ORDER]


STORAGES = {
    "C": lambda X, y, s: (X, y, s),
    "Fortran": lambda X, y, s: (np.asfortranarray(X), y, s),
    "CSR": lambda X, y, s: (sp.csr_array(X), y, s),
    "CSC": lambda X, y, s: (sp.csc_array(X), y, s),
    "permuted": lambda X, y, s: (X[ORDER], y[ORDER], permuted(s)),
    "permuted CSR": lambda X, y, s: (sp.csr_array(X[ORDER]), y[ORDER], permuted(s)),
    "reversed": lambda X, y, s: (X[::-1], y[::-1], None if s is None else s[::-1]),
    "weights in other units": lambda X, y, s: (X, y, np.full(60, 3.0) if s is None else 3.0 * s),
    "wide": lambda X, y, s: (X.astype(np.float64), y, s),
}
NOISES = (0.0, 1e-8, 1e-5, 1e-2, 1.0)
BALLS = (LpBall(2, 100.0), LpBall(1.5, 1.0))


def table(seed, noise, loss, *, dtype=np.float64, scale=1.0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((60, 4)) * np.array([1.0, scale, 1.0, 1.0])).astype(dtype)
    y = X @ (rng.standard_normal(4) / np.array([1.0, scale, 1.0, 1.0])) + noise * rng.standard_normal(60)
    if isinstance(loss, Softmax):
        return X, np.digitize(y, np.quantile(y, [0.3, 0.6])).astype(int)
    # Some labels are wrong, so that an intercept has a finite best value.
    return X, np.where(rng.uniform(size=60) < 0.1, -1.0, 1.0) * np.sign(y) if loss.labels else y


def assert_verified_everywhere(certificate, X, y, s=None):
    for name, storage in STORAGES.items():
        found = certificate.verify(*storage(X, y, s))
        assert found.ok, (name, found, certificate)


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_squares(ball, noise, intercept):
    for seed in range(6):
        X, y = table(seed, noise, Squared())
        f = Objective(Squared(), as_data(X, y), fit_intercept=intercept)
        assert_verified_everywhere(minimize(f, ball).certificate, X, y)
        assert_verified_everywhere(path(f, ball, [ball.radius]).results[0].certificate, X, y)


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("loss", [Logistic(), Huber(0.3), Quantile(0.3), Softmax(), SquaredSigmoid()], ids=repr)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_other_losses(ball, loss, intercept):
    for seed, noise in enumerate(NOISES):
        X, y = table(seed, noise, loss)
        f = Objective(loss, as_data(X, y), fit_intercept=intercept)
        assert_verified_everywhere(minimize(f, ball, max_iter=200).certificate, X, y)


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_single_precision_and_large_offsets(loss, dtype, intercept):
    for seed, noise in enumerate(NOISES):
        X, y = table(seed, noise, loss, dtype=dtype)
        s = np.random.default_rng(seed).uniform(0.1, 5.0, 60)
        X = X + dtype(100.0)
        f = Objective(loss, as_data(X, y, s), fit_intercept=intercept)
        assert_verified_everywhere(minimize(f, BALLS[0], max_iter=100).certificate, X, y, s)


def intercept_moved(b, by):
    return None if b is None else b + by * (1.0 + np.abs(b))


#: The smallest changes that can be told from rounding where the relative gap is about 1e-6: a part in ten million of
#: the value, half of the gap.
TAMPERED = {
    "a lower value": lambda c: replace(c, value=c.value * (1.0 - 1e-7)),
    "a higher value": lambda c: replace(c, value=c.value * (1.0 + 1e-7)),
    "a lower value and gap": lambda c: replace(c, value=c.value * (1.0 - 1e-7), gap=c.gap - 1e-7 * c.value),
    "a higher bound": lambda c: replace(c, bound=c.bound + 1e-7 * c.value),
    "a higher bound and smaller gap": lambda c: replace(c, bound=c.bound + 1e-7 * c.value, gap=c.gap - 1e-7 * c.value),
    "half of the gap": lambda c: replace(c, gap=c.gap / 2.0),
    "half of the gap, no tolerance": lambda c: replace(c, gap=c.gap / 2.0, tolerance=0.0),
    "a gap of zero": lambda c: replace(c, gap=0.0),
    "another point": lambda c: replace(c, w=c.w * (1.0 - 1e-6)),
    "another witness": lambda c: replace(c, witness=c.witness * 0.9),
    "another intercept of the witness": lambda c: replace(
        c, witness_intercept=intercept_moved(c.witness_intercept, 1e-7)
    ),
    "another intercept": lambda c: replace(c, intercept=intercept_moved(c.intercept, 1e-2)),
}


@pytest.mark.parametrize("how", TAMPERED)
@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.3)], ids=repr)
def test_tampering_shows_on_every_storage(loss, intercept, how):
    if "intercept" in how and not intercept:
        pytest.skip("there is no intercept")
    X, y = table(3, 1.0, loss)
    f = Objective(loss, as_data(X, y), fit_intercept=intercept)
    # A run that ends early, with a gap far above rounding.
    certificate = minimize(f, BALLS[1], FrankWolfe(), tol=1e-3).certificate
    assert_verified_everywhere(certificate, X, y)
    for name, storage in STORAGES.items():
        assert not TAMPERED[how](certificate).verify(*storage(X, y, None)).ok, name


@pytest.mark.parametrize("noise", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
def test_other_targets_show(noise, intercept):
    X, y = table(3, noise, Squared())
    f = Objective(Squared(), as_data(X, y), fit_intercept=intercept)
    certificate = minimize(f, BALLS[0]).certificate
    for change in (1e-3 * noise, noise, 1.0):
        other = y.copy()
        other[7] += change
        assert not certificate.verify(X, other).ok, change


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.3)], ids=repr)
def test_the_price_of_an_intercept_for_other_data_is_no_rounding(loss):
    """The allowance of the tangent holds that price; a witness whose intercept is off must not pass because of it."""
    X, y = table(3, 1.0, loss)
    certificate = minimize(Objective(loss, as_data(X, y), fit_intercept=True), BALLS[0], tol=1e-4).certificate
    for by in (1e-7, 1e-4, 1.0):
        moved = replace(certificate, witness_intercept=certificate.witness_intercept + by)
        assert not moved.verify(X, y).ok, by
    other = y.copy()
    other[7] = -other[7]
    assert not certificate.verify(X, other).ok


def test_the_witness_of_a_path_has_its_own_intercept():
    X, y = table(3, 1.0, Squared())
    f = Objective(Squared(), as_data(X, y), fit_intercept=True)
    for result in path(f, BALLS[0], [0.1, 1.0, 100.0]).results:
        certificate = result.certificate
        found = f.evaluate(f.point(certificate.witness))
        np.testing.assert_allclose(certificate.witness_intercept, found.intercept, rtol=1e-12)
        assert certificate.verify(X, y).ok
        for by in (1e-7, 1.0):
            moved = replace(certificate, witness_intercept=certificate.witness_intercept + by)
            assert not moved.verify(X, y).ok


def test_columns_of_different_scales_leave_no_room_for_tampering():
    """Bounded by norms, predictions would be a million times larger than they are, and so would their rounding."""
    X, y = table(3, 1.0, Squared(), scale=1e-6)
    ball = Weighted(LpBall(2, 100.0), weights=[1.0, 1e-6, 1.0, 1.0])
    certificate = minimize(Objective(Squared(), as_data(X, y)), ball, tol=1e-4).certificate
    assert_verified_everywhere(certificate, X, y)
    for how in ("a lower value", "a higher bound"):
        assert not TAMPERED[how](certificate).verify(X, y).ok, how
