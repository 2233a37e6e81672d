"""Exponents, radii and features of every size: no arithmetic exception, and a certificate that holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree import ConstrainedNewton, Logistic, LpBall, Objective, Squared, as_data, minimize

EXPONENTS = [1.001, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, 1e3, 1e4, 1e6]
RADII = [1e-30, 1e-12, 1e-3, 0.1, 1.0, 10.0, 1e6, 7e22, 1e30]
SCALES = [1e-8, 1e-3, 1.0, 1e3, 1e8]


def problem(loss, seed: int, scale: float, far: bool, shape=(12, 4), outputs: int = 1, intercept: bool = False):
    """Features of size ``scale``, or of size one around it."""
    rng = np.random.default_rng(seed)
    X = scale + rng.standard_normal(shape) if far else scale * rng.standard_normal(shape)
    y = rng.standard_normal(shape[0] if outputs == 1 else (shape[0], outputs))
    y[0], y[1] = 1.0, -1.0  # both classes
    return Objective(loss, as_data(X, np.sign(y) if isinstance(loss, Logistic) else y), fit_intercept=intercept)


def check(f, ball, solver, max_iter: int) -> None:
    result = minimize(f, ball, solver, max_iter=max_iter)
    assert np.isfinite(result.value)
    assert result.bound <= result.value
    found = result.certificate.verify(objective=f)
    # The recomputed bound of squares with an intercept moves by more than `verify` allows where X is this far off.
    centred = isinstance(f.loss, Squared) and f.fit_intercept
    assert found.ok or (centred and found.feasible and found.bound <= found.value)


# These raised OverflowError or ZeroDivisionError.
@pytest.mark.parametrize("p", [100.0, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_large_exponents(p, radius, seed):
    f = problem(Logistic(), seed, 1e3, far=True, shape=(60, 20), intercept=seed % 2 == 0)
    check(f, LpBall(p, radius=radius), "auto", max_iter=20)


@given(
    p=st.sampled_from(EXPONENTS),
    radius=st.sampled_from(RADII),
    scale=st.sampled_from(SCALES),
    far=st.booleans(),
    seed=st.integers(0, 7),
    loss=st.sampled_from([Squared(), Logistic()]),
    outputs=st.sampled_from([1, 3]),
    intercept=st.booleans(),
    solver=st.sampled_from(["auto", ConstrainedNewton()]),
)
@settings(max_examples=150)
def test_every_size(p, radius, scale, far, seed, loss, outputs, intercept, solver):
    f = problem(loss, seed, scale, far, outputs=outputs, intercept=intercept)
    check(f, LpBall(p, radius=radius), solver, max_iter=5)
