"""Value, gradient and tangent of `Objective`, against formulas written without the package and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from projfree import (
    BiWeight,
    Entries,
    Gamma,
    Huber,
    Logistic,
    Objective,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
    as_data,
)
from projfree.data.rows import FormPredictions

FORMULAS = {
    Squared: lambda u, y: (u - y) ** 2,
    Huber: lambda u, y: 2 * special.huber(0.7, u - y),
    BiWeight: lambda u, y: (u - y) ** 2 / (2.25 + (u - y) ** 2),
    Logistic: lambda u, y: np.logaddexp(0, -y * u),
    SquaredSigmoid: lambda u, y: ((1 + y) / 2 - special.expit(u)) ** 2,
    SquaredHinge: lambda u, y: np.maximum(0, 1 - y * u) ** 2,
    Quantile: lambda u, y: special.huber(0.15, u - y) / 0.3,  # the median
    Poisson: lambda u, y: np.exp(u) - y * u + special.xlogy(y, y) - y,
    Gamma: lambda u, y: y * np.exp(-np.maximum(u, -45)) * (1 + np.maximum(-45 - u, 0)) + u - np.log(y) - 1,
    Softmax: lambda u, y: special.logsumexp(u, axis=1) - u[np.arange(len(y)), y],
}
LOSSES = [
    Squared(),
    Huber(0.7),
    BiWeight(1.5),
    Logistic(),
    SquaredSigmoid(),
    SquaredHinge(),
    Quantile(0.5, 0.3),
    Poisson(),
    Gamma(),
]
CASES = [*((loss, k) for loss in LOSSES for k in (0, 2)), (Softmax(), 3)]

every_case = pytest.mark.parametrize(("loss", "outputs"), CASES, ids=lambda x: repr(x))
intercepts = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
weights = pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
few = settings(max_examples=10)


def mean_loss(problem, w, b):
    """The weighted mean of the loss, by the formulas above."""
    losses = FORMULAS[type(problem.f.loss)](problem.X @ w + b, problem.y)
    return float(np.sum(problem.s @ losses))


@every_case
@intercepts
@weights
def test_value_is_the_mean_loss_at_the_reported_intercept(build, loss, outputs, intercept, weighted):
    problem = build(loss, outputs, intercept, weighted)
    for size in (0.1, 1.0, 10.0):
        x = problem.f.evaluate(problem.f.point(problem.w(size)), tangent=False).point
        value = problem.f(problem.f.point(x.w))
        assert (x.intercept is None) == (not intercept)
        b = 0.0 if x.intercept is None else x.intercept
        assert value == pytest.approx(mean_loss(problem, x.w, b), rel=1e-12)
        if intercept:
            assert np.shape(b) == problem.f.outputs
            nearby = [mean_loss(problem, x.w, b + problem.b(h)) for h in (1e-4, 1e-2) for _ in range(3)]
            assert value <= min(nearby) + 1e-13


@every_case
@intercepts
@weights
def test_gradient_is_the_slope_of_the_value(build, loss, outputs, intercept, weighted):
    problem = build(loss, outputs, intercept, weighted)
    found, direction, h = problem.f.evaluate(problem.f.point(problem.w())), problem.w(), 1e-5
    x, m = found.point, found.slope
    # By the envelope theorem the slope at a fixed intercept is that of the minimum over intercepts.
    b = 0.0 if x.intercept is None else x.intercept
    ends = [mean_loss(problem, x.w + t * direction, b) for t in (-h, h)]
    assert np.vdot(m.gradient, direction) == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-6, abs=1e-8)


@every_case
@intercepts
@weights
def test_tangent_touches_and_tells_the_value(build, loss, outputs, intercept, weighted):
    problem = build(loss, outputs, intercept, weighted)
    x, again = (problem.f.point(w) for w in [problem.w()] * 2)
    found, other = problem.f.evaluate(x), problem.f.evaluate(again, tangent=False)
    m, value = found.slope, other.value
    assert m(x.w) == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert problem.f(x) == found.value
    assert not np.isnan(problem.f.evaluate(x, tangent=False, read=False).value)
    assert other.tangent is None
    if intercept:
        np.testing.assert_allclose(found.intercept, other.intercept, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("loss", "outputs"), [case for case in CASES if case[0].convex], ids=lambda x: repr(x))
@intercepts
@few
@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 10.0]))
def test_tangents_lie_below(build, loss, outputs, intercept, seed, size):
    problem = build(loss, outputs, intercept, weighted=True, seed=seed)
    x, w = problem.f.point(problem.w(size)), problem.w(size)
    m, value = problem.f.evaluate(x).slope, problem.f(problem.f.point(w))
    reach = float(np.linalg.norm(w))
    assert m(w) - m.constant_error - m.gradient_error * reach <= value
    # The errors are of rounding size, so the law is not empty.
    assert m.constant_error + m.gradient_error * reach <= 1e-11 * (
        1 + abs(m.constant) + reach * np.abs(m.gradient).sum()
    )


def hold(f, x, image):
    """Put a wrong image where the workspace keeps that of x."""
    f.workspace.fold(FormPredictions(), (x,))
    f.workspace._images[x.handle][...] = image


@pytest.mark.parametrize("intercept", [False, True])
def test_a_tangent_is_valid_for_a_wrong_image_too(build, intercept):
    """Drift of images must not break a bound: the constant is formed from the image, whatever it is."""
    problem = build(Logistic(), intercept=intercept)
    x, w = problem.f.point(problem.w()), problem.w()
    hold(problem.f, x, problem.X @ x.w + 0.3 * problem.rng.standard_normal(30))
    m = problem.f.evaluate(x).slope
    assert np.abs(m.gradient - problem.f.evaluate(problem.f.point(x.w)).slope.gradient).max() > 1e-3
    assert m(w) <= problem.f(problem.f.point(w)) + 1e-12


def test_sums_are_float64_for_float32_data():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)).astype(np.float32), rng.standard_normal(500).astype(np.float32)
    single = Objective(Squared(), as_data(X, y), fit_intercept=True)
    double = Objective(Squared(), as_data(X.astype(float), y.astype(float)), fit_intercept=True)
    w = rng.standard_normal(3)
    m, reference = single.evaluate(single.point(w)).slope, double.evaluate(double.point(w)).slope
    assert m.gradient.dtype == np.float64
    np.testing.assert_allclose(m.gradient, reference.gradient, rtol=1e-13)
    assert m.constant == pytest.approx(reference.constant, rel=1e-13)


def test_entries_of_a_matrix():
    rng = np.random.default_rng(0)
    rows, cols, y = rng.integers(0, 4, 40), rng.integers(0, 3, 40), rng.standard_normal(40)
    f = Objective(Squared(), as_data(Entries(rows, cols, (4, 3)), y), fit_intercept=True)
    x = f.point(rng.standard_normal((4, 3)))
    m = f.evaluate(x).slope
    residual = x.w[rows, cols] - y
    residual -= residual.mean()
    expected = np.zeros((4, 3))
    np.add.at(expected, (rows, cols), 2 * residual / 40)
    np.testing.assert_allclose(m.gradient, expected, atol=1e-14)
    assert f(x) == pytest.approx(np.mean(residual**2), rel=1e-12)


class Drawn:
    """A generator that draws the rows it is told to."""

    def __init__(self, rows):
        self.rows = np.array(rows)

    def choice(self, n, size, **how):
        assert (size, how["replace"]) == (len(self.rows), False)
        return self.rows


@every_case
@intercepts
def test_samples_estimate_the_gradient(build, loss, outputs, intercept):
    """The mean over all samples of one row is the gradient, with the intercept held; and no bound can come of it."""
    problem = build(loss, outputs, intercept, weighted=True)
    f = problem.f
    found = f.evaluate(f.point(problem.w()))
    x, exact = found.point, found.slope  # the estimates find the intercept at the point
    before = f.workspace.rows_read
    parts = [f.estimate(x, 1, Drawn([i])) for i in range(f.structure.n)]
    assert f.workspace.rows_read - before == f.structure.n, "each reads one row"
    np.testing.assert_allclose(np.mean([m.gradient for m in parts], axis=0), exact.gradient, atol=1e-9)
    assert {m.constant for m in parts} == {-np.inf}
    # A batch that is profiled by itself would see no gradient at all with one row.
    assert max(np.abs(m.gradient).max() for m in parts) > 1e-4


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
def test_smoothness_bounds_the_change_of_gradients(build, intercept):
    for loss, outputs in CASES:
        problem = build(loss, outputs, intercept)
        if not np.isfinite(loss.smoothness):
            with pytest.raises(ValueError, match="has no largest curvature, which this step rule needs"):
                problem.f.smoothness()
            continue
        L = problem.f.smoothness()
        for size in (0.01, 1.0):
            found = problem.f.evaluate(problem.f.point(problem.w()))
            x, m = found.point, found.slope
            y = problem.f.point(x.w + problem.w(size), x.intercept)
            change = np.linalg.norm(problem.f.evaluate(y).slope.gradient - m.gradient)
            if loss.convex or not intercept:  # a local intercept may jump
                assert change <= L * np.linalg.norm(y.w - x.w) * (1 + 1e-9)
