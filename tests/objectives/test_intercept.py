"""The intercept is the minimiser of the mean loss in b, also for images that make it hard, or an error says why not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from projfree import (
    BiWeight,
    Huber,
    Logistic,
    LpBall,
    Objective,
    Poisson,
    Softmax,
    Squared,
    SquaredSigmoid,
    as_data,
    minimize,
)
from projfree.algebra import Point
from projfree.objectives.intercept import search

CONVEX = [
    (Squared(), 0),
    (Squared(), 2),
    (Huber(0.7), 0),
    (Huber(0.7), 2),
    (Logistic(), 0),
    (Logistic(), 2),
    (Softmax(), 3),
]
every_convex = pytest.mark.parametrize(("loss", "outputs"), CONVEX, ids=lambda x: repr(x))
every_local = pytest.mark.parametrize("loss", [BiWeight(1.5), SquaredSigmoid()], ids=repr)


def mean_loss(loss, u, y, s):
    return float(np.sum((loss.value(u, y).T * s).T))


def profile(loss, u, y, s, start):
    """The intercept on a given image: that of the parameter u itself over the identity."""
    u, y = np.asarray(u, dtype=float), np.asarray(y)
    n, outputs = len(u), u.shape[1:]
    data = as_data(sp.identity(n, format="csr"), y, np.broadcast_to(s, n)).with_targets(loss.targets)
    x = Point(u)
    return search(data.open(), loss, x, np.full(outputs, 0.0 if start is None else start))


def slope(loss, u, y, s):
    """The derivative in b, relative to the size of its terms."""
    r = (loss.derivative(u, y).T * s).T
    return float(np.abs(r.sum(axis=0)).max() / np.abs(r).sum())


@every_convex
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 1.0, 30.0]), start=st.sampled_from([None, 0.0, 100.0]))
def test_minimiser(build, loss, outputs, seed, size, start):
    problem = build(loss, outputs, weighted=True, seed=seed)
    u, y, s = size * problem.X @ problem.w(), problem.f.data.y, problem.s
    b = profile(loss, u, y, s, start)
    assert b.shape == problem.f.outputs
    assert slope(loss, u + b, y, s) <= 1e-11
    referee = optimize.minimize(lambda c: mean_loss(loss, u + c.reshape(b.shape), y, s), np.zeros(b.size))
    assert mean_loss(loss, u + b, y, s) <= referee.fun * (1 + 1e-12)


@every_convex
@pytest.mark.parametrize("offset", [1e6, -1e6, 1e3])
def test_a_common_offset_is_absorbed(build, loss, outputs, offset):
    """u + c has the intercept b - c, from whatever start; only digits below the offset's own are lost."""
    problem = build(loss, outputs, weighted=True)
    u, y, s = problem.X @ problem.w(), problem.f.data.y, problem.s
    b = profile(loss, u, y, s, None)
    offsets = offset * np.arange(1, b.size + 1).reshape(b.shape)
    moved = profile(loss, u + offsets, y, s, None)
    expected = mean_loss(loss, u + b, y, s)
    assert mean_loss(loss, u + offsets + moved, y, s) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("size", [50.0, 1e4, 1e6])
def test_separable_images(build, size):
    """Every sample far on its right side: the derivative vanishes over a wide range, and any place there will do."""
    binary, classes = build(Logistic()), build(Softmax(), 3)
    b = profile(Logistic(), size * binary.y, binary.y, binary.s, None)
    assert mean_loss(Logistic(), size * binary.y + b, binary.y, binary.s) <= 1e-20
    u = size * np.eye(3)[classes.y]
    assert mean_loss(Softmax(), u + profile(Softmax(), u, classes.y, classes.s, None), classes.y, classes.s) <= 1e-20


def test_one_sample_against_many():
    """A rare class far away from the others: the root is where almost nothing bends."""
    u, y = np.r_[np.full(999, 40.0), -60.0], np.r_[np.full(999, -1.0), 1.0]
    b = profile(Logistic(), u, y, 1e-3, None)
    assert slope(Logistic(), u + b, y, 1e-3) <= 1e-11


def test_saturated_softmax():
    """One output so far ahead in every row that the Hessian is zero where the search starts."""
    y = np.arange(30) % 3
    u = np.zeros((30, 3))
    u[:, 1] = 1e6
    b = profile(Softmax(), u, y, 1 / 30, np.zeros(3))
    assert mean_loss(Softmax(), u + b, y, 1 / 30) == pytest.approx(np.log(3), rel=1e-9)


def test_huber_with_a_flat_minimum():
    """Half of the targets far below, half far above: every b between is a minimiser."""
    y = np.r_[np.full(5, -100.0), np.full(5, 100.0)]
    b = profile(Huber(1.0), np.zeros(10), y, 0.1, None)
    assert -99.0 <= float(b) <= 99.0
    assert mean_loss(Huber(1.0), b, y, 0.1) == pytest.approx(199.0)


@every_local
@pytest.mark.parametrize("size", [0.0, 1.0, 10.0])
def test_local_intercepts_descend_from_their_start(build, loss, size):
    problem = build(loss, weighted=True)
    u, y, s = size * problem.X @ problem.w(), problem.f.data.y, problem.s
    for start in (-5.0, 0.0, 5.0):
        b = profile(loss, u, y, s, start)
        assert mean_loss(loss, u + b, y, s) <= mean_loss(loss, u + start, y, s)
        assert slope(loss, u + b, y, s) <= 1e-8
        assert mean_loss(loss, u + b, y, s) <= min(mean_loss(loss, u + b + h, y, s) for h in (-1e-3, 1e-3))


@every_convex
def test_the_constant_model_comes_first(build, loss, outputs):
    """At w = 0 the intercept is known beforehand: means, class frequencies."""
    problem = build(loss, outputs, intercept=True, weighted=True)
    x = problem.f.evaluate(problem.f.point(np.zeros(problem.f.shape)), tangent=False)
    np.testing.assert_allclose(x.intercept, problem.f.intercept.constant, rtol=1e-10, atol=1e-12)
    if isinstance(loss, Squared):
        np.testing.assert_allclose(x.intercept, problem.s @ problem.y, rtol=1e-13)
    if isinstance(loss, Softmax):
        shares = np.exp(x.intercept) / np.exp(x.intercept).sum()
        np.testing.assert_allclose(shares, np.bincount(problem.y, weights=problem.s), rtol=1e-10)


@every_convex
def test_features_with_a_huge_mean(build, loss, outputs):
    """The intercept takes up X's offset of 1e6: value and gradient are those of the centred features."""
    plain = build(loss, outputs, intercept=True)
    moved = build(loss, outputs, intercept=True, offset=1e6)
    w = 0.3 * plain.w()
    for read in (lambda f, x: f(x), lambda f, x: f.evaluate(x).value):
        found, expected = (read(p.f, p.f.point(w)) for p in (moved, plain))
        assert found == pytest.approx(expected, rel=1e-8)


MISSING = {
    "binary": (Logistic(), [1, 1, 1], None, r"got only \[1\.0\]"),
    "sigmoid": (SquaredSigmoid(), [-1, -1, -1], None, r"got only \[-1\.0\]"),
    "weightless": (Logistic(), [1, 1, -1], [1, 1, 0], r"got only \[1\.0\]"),
    "one output": (Logistic(), [[1, 1], [1, -1], [1, 1]], None, r"got only \[1\.0\]"),
    "softmax": (Softmax(classes=3), [0, 1, 1], None, r"got only \[0, 1\]"),
    "softmax weightless": (Softmax(), [0, 1, 2], [1, 1, 0], r"got only \[0, 1\]"),
}


@pytest.mark.parametrize(("loss", "y", "weight", "found"), MISSING.values(), ids=MISSING)
def test_a_missing_class_has_no_intercept(loss, y, weight, found):
    data = as_data(np.ones((3, 2)), y, weight)
    rest = r": the intercept has no finite minimum; use `fit_intercept=False`, or another loss\.$"
    with pytest.raises(ValueError, match=r"^`fit_intercept=True` needs targets of every class, " + found + rest):
        Objective(loss, data, fit_intercept=True)
    Objective(loss, data)  # without an intercept all is well


@every_convex
@pytest.mark.parametrize("radius", [0.01, 1.0])
@pytest.mark.parametrize("off", [-3.0, -0.1, 1e-3, 1.0])
def test_a_tangent_at_any_intercept_is_below_the_minimum(build, loss, outputs, off, radius):
    """The function has its intercept minimised out; a tangent elsewhere pays for the derivative that is left there."""
    f, ball = build(loss, outputs, intercept=True, weighted=True).f, LpBall(2, radius)
    lowest = minimize(f, ball, tol=1e-9).value
    zero = f.evaluate(f.point(np.zeros(f.shape)))
    moved = zero.intercept + off * np.arange(1, zero.intercept.size + 1).reshape(zero.intercept.shape)
    there = f.open().evaluate(f.point(zero.point.w, moved), near=True)
    assert there.slope.lower(ball) <= lowest


@pytest.mark.parametrize("power", [-16, -29, -40, -200, -240])
def test_targets_that_exponentials_hide_are_found(power):
    # At the intercept where the search begins, rounding hides how small the targets are.
    rng = np.random.default_rng(0)
    X, y = 1e-3 * rng.standard_normal((30, 2)), rng.poisson(2.0, 30) * 10.0**power
    f = Objective(Poisson(), as_data(X, y), fit_intercept=True)
    zero = f.evaluate(f.point(np.zeros(2)), tangent=False)
    assert float(zero.intercept) == pytest.approx(np.log(y.mean()), rel=1e-12)
    result = minimize(f, LpBall(2, radius=1.0))
    assert result.status.converged
    assert result.bound <= result.value <= zero.value
