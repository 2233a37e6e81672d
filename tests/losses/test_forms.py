"""The compiled forms of losses, as plain Python and compiled, keep the accuracy that certificates charge for."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from numba import njit

from projfree.data.kernels import loss_kernel, loss_parameters
from projfree.losses import LOSSES, BiWeight, Gamma, Huber, Poisson, Quantile, Softmax
from projfree.losses.base import LogLinkLoss

ELEMENTWISE = [*(loss() for loss in LOSSES if not loss.coupled), BiWeight(0.7), Huber(1.3), Quantile(0.7, 0.4)]
EPS = np.finfo(float).eps


@pytest.fixture(scope="module", params=["plain", "compiled"])
def tile_of(request):
    if request.param == "plain":
        return lambda loss: loss.kernel

    def call(kernel, *arguments):
        kernel(*arguments)

    compiled = njit(call)
    return lambda loss: partial(compiled, loss_kernel(loss.kernel))


def both(tile, loss, u, y):
    value, slope = np.empty_like(u), np.empty_like(u)
    tile(loss_parameters(loss), u, y, value, slope)
    return value, slope


@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 30.0, 600.0])
def test_relative_accuracy(tile_of, loss, scale):
    rng = np.random.default_rng(0)
    u = rng.standard_normal(1000) * scale
    y = np.sign(rng.standard_normal(1000)) if loss.labels else rng.standard_normal(1000)
    y = np.exp(5.0 * y) if isinstance(loss, Poisson | Gamma) else y
    # Extended precision where the platform has it; the NumPy losses are tested against decimals elsewhere.
    wide = u.astype(np.longdouble), y.astype(np.longdouble)
    truth, sizes = (loss.value(*wide), loss.derivative(*wide)), [0.0, 0.0]
    if isinstance(loss, LogLinkLoss):
        sizes = [loss.floor(wide[1]), loss.second(*wide)]
    near = np.abs(u) < 690.0 if loss.labels else np.ones(len(u), bool)  # beyond, the result is held at e^-700
    for found, true, size in zip(both(tile_of(loss), loss, u, y), truth, sizes, strict=True):
        error = np.abs(found - true)[near]
        assert np.all(error <= (loss.rounding * EPS * (np.abs(true) + size) + 1e-300)[near]), float(np.max(error))


@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_extreme_predictions(tile_of, loss):
    u = np.array([0.0, -0.0, 699.9, 700.1, -700.1, 1e4, -1e4, 1e100, -1e100])
    value, slope = both(tile_of(loss), loss, u, np.ones(len(u)))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    plain = [method(u, np.ones(len(u))) for method in (loss.value, loss.derivative)]
    assert value == pytest.approx(plain[0], rel=1e-14, abs=1e-290)
    assert slope == pytest.approx(plain[1], rel=1e-14, abs=1e-290)


@pytest.mark.parametrize("loss", ELEMENTWISE, ids=repr)
def test_what_is_not_a_number_stays_so(tile_of, loss):
    assert np.isnan(both(tile_of(loss), loss, np.full(5, np.nan), np.ones(5))[0]).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 100.0, 1e4])
def test_softmax(scale):
    rng = np.random.default_rng(2)
    u, y = rng.standard_normal((200, 4)) * scale, rng.integers(0, 4, 200)
    value, slope = np.empty(200), np.empty((200, 4))
    Softmax.kernel(np.empty(0), u.ravel(), y.astype(float), value, slope.reshape(-1))
    due = Softmax().value(u, y), Softmax().derivative(u, y)
    np.testing.assert_allclose(value, due[0], rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(slope, due[1], rtol=1e-13, atol=1e-300)


def test_losses_do_not_load_a_compiler():
    code = "import sys, projfree.losses, projfree.objectives.row_steps; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
