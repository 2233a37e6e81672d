"""The compiled losses keep the relative accuracy that certificates charge for."""

import numpy as np
import pytest

from projfree import BiWeight, Huber, Logistic, Squared, SquaredSigmoid
from projfree.data import native

LOSSES = [Squared(), Logistic(), SquaredSigmoid(), BiWeight(0.7), Huber(1.3)]
EPS = np.finfo(float).eps


def compiled(loss, u, y):
    value, slope = np.empty_like(u), np.empty_like(u)
    native.losses(native.CODES[loss.native], loss.parameter, u, y, value, slope)
    return value, slope


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 30.0, 600.0])
def test_relative_accuracy(loss, scale):
    rng = np.random.default_rng(0)
    u = rng.standard_normal(4000) * scale
    y = np.sign(rng.standard_normal(4000)) if loss.labels else rng.standard_normal(4000)
    # Extended precision where the platform has it; the NumPy losses are tested against decimals elsewhere.
    truth = loss.value_and_derivative(u.astype(np.longdouble), y.astype(np.longdouble))
    near = np.abs(u) < 690.0 if loss.labels else np.ones(len(u), bool)  # beyond, the result is held at e^-700
    for found, true in zip(compiled(loss, u, y), truth, strict=True):
        error = np.abs(found - true)[near]
        assert np.all(error <= (loss.rounding * EPS * np.abs(true) + 1e-300)[near]), float(np.max(error))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_extreme_predictions(loss):
    u = np.array([0.0, -0.0, 699.9, 700.1, -700.1, 1e4, -1e4, 1e100, -1e100])
    value, slope = compiled(loss, u, np.ones(len(u)))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    plain = loss.value_and_derivative(u, np.ones(len(u)))
    assert value == pytest.approx(plain[0], rel=1e-14, abs=1e-290)
    assert slope == pytest.approx(plain[1], rel=1e-14, abs=1e-290)


def test_what_is_not_a_number_stays_so():
    u = np.full(5, np.nan)
    for loss in LOSSES:
        assert np.isnan(compiled(loss, u, np.ones(5))[0]).all()
