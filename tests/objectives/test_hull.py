"""`Hull`: f on the simplex of a few points, from images alone; and its minimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

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

H = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
STEP = 1e-5


def data(kind, n=40, outputs=0):
    rng = np.random.default_rng(3)
    u = (X := rng.standard_normal((n, 3))) @ rng.standard_normal((3, outputs) if outputs else 3)
    y = u + rng.standard_normal(u.shape)
    if kind == "labels":
        y = np.where(y > 0, 1.0, -1.0)
    if kind == "classes":
        y = np.arange(n) % 3
    return as_data(X, y, rng.uniform(0.2, 1.0, n))


FUNCTIONS = {
    "squares": lambda: Objective(Squared(), data("real")),
    "squares, two outputs": lambda: Objective(Squared(), data("real", outputs=2), fit_intercept=True),
    "squares, intercept": lambda: Objective(Squared(), data("real"), fit_intercept=True),
    "logistic": lambda: Objective(Logistic(), data("labels")),
    "logistic, intercept": lambda: Objective(Logistic(), data("labels"), fit_intercept=True),
    "huber, two outputs": lambda: Objective(Huber(2.0), data("real", outputs=2), fit_intercept=True),
    "softmax": lambda: Objective(Softmax(), data("classes")),
    "softmax, intercept": lambda: Objective(Softmax(), data("classes"), fit_intercept=True),
    "quadratic form": lambda: QuadraticForm(H, np.array([1.0, -2.0, 0.5]), c=0.3),
    "perturbed": lambda: Perturbed(Objective(Logistic(), data("labels")), 0.1, np.array([1.0, -1.0, 2.0])),
    "perturbed form": lambda: Perturbed(QuadraticForm(H, np.ones(3)), 0.1, np.array([1.0, -1.0, 2.0])),
}
BENT = {
    "biweight": lambda: Objective(BiWeight(1.0), data("real")),
    "biweight, intercept": lambda: Objective(BiWeight(1.0), data("real"), fit_intercept=True),
    "sigmoid": lambda: Objective(SquaredSigmoid(), data("labels")),
    "sigmoid, intercept": lambda: Objective(SquaredSigmoid(), data("labels"), fit_intercept=True),
    "saddle": lambda: QuadraticForm(np.diag([1.0, -2.0, 0.5]), np.array([1.0, 0.1, 0.5])),
}
CALLS = {
    "calls": lambda: BlackBox(
        lambda w: (np.sum(np.logaddexp(0, w)), 1 / (1 + np.exp(-w))), 3, smoothness=0.25, convex=True
    ),
}

every_convex = pytest.mark.parametrize("name", FUNCTIONS)
every = pytest.mark.parametrize("name", FUNCTIONS | BENT)
sizes = pytest.mark.parametrize("k", [2, 3], ids=["segment", "triangle"])


def setting(name, k, size=1.0, seed=0):
    """The function, k points, and their hull; the first point has been evaluated, as in a solver."""
    f, rng = (FUNCTIONS | BENT | CALLS)[name](), np.random.default_rng(seed)
    points = tuple(f.point(size * rng.standard_normal(f.shape)) for _ in range(k))
    found = f.evaluate(points[0])
    points = (found.point, *points[1:])
    return f, points, f.hull(points, found.slope.gradient)


def at(hull, m):
    """Value, gradient and Hessian of a hull, its intercept minimised out."""
    hull.value(m)
    b = hull.mix(m).intercept if hull._b.size else np.zeros(0)
    return hull._look(np.append(m, b)).reduced(len(m))[0]


def places(k):
    return [np.zeros(k - 1), np.full(k - 1, 0.2), np.eye(k - 1)[0] * 0.7, np.eye(k - 1)[-1]]


@every
@sizes
def test_values_are_those_of_the_mixture(name, k):
    f, points, hull = setting(name, k)
    # A linear function that is added to a hull is zero at its first point.
    shift = f(points[0]) - hull.value(np.zeros(k - 1)) if isinstance(f, Perturbed) else 0.0
    for m in places(k):
        w = (1 - m.sum()) * points[0].w + sum(c * p.w for c, p in zip(m, points[1:], strict=True))
        assert hull.value(m) + shift == pytest.approx(f(f.point(w, points[0].intercept)), rel=1e-11)
        np.testing.assert_allclose(hull.mix(m).w, w, atol=1e-15)


@every
@sizes
def test_gradient_and_hessian(name, k):
    _, _, hull = setting(name, k)
    for m in places(k)[:3]:
        here = at(hull, m)
        ends = [[at(hull, m + sign * STEP * e) for sign in (-1, 1)] for e in np.eye(k - 1)]
        slopes = [(high.value - low.value) / (2 * STEP) for low, high in ends]
        bends = [(high.gradient - low.gradient) / (2 * STEP) for low, high in ends]
        np.testing.assert_allclose(here.gradient, slopes, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(here.hessian, bends, rtol=2e-4, atol=2e-5 if "huber" not in name else 0.2)


@every
def test_gap_and_length(name):
    f, (x, v), hull = setting(name, 2)
    gradient = f.evaluate(f.point(x.w, x.intercept)).slope.gradient
    assert hull.gap == pytest.approx(np.vdot(gradient, x.w - v.w), rel=1e-10)
    assert f.hull((x, v)).gap == pytest.approx(hull.gap, rel=1e-6), "without the gradient it comes from the images"
    assert hull.squared_length == pytest.approx(np.sum((x.w - v.w) ** 2))


@every
def test_curvature_is_an_upper_bound_along_the_segment(name):
    _, _, hull = setting(name, 2)
    bends = [at(hull, np.array([s])).hessian[0, 0] for s in np.linspace(0, 1, 21)]
    assert max(bends) <= hull.curvature + 1e-12 * abs(hull.curvature)


@every_convex
@sizes
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_minimiser(name, k, size):
    """No place of a fine grid is lower, and a polished search gains next to nothing."""
    _, _, hull = setting(name, k, size)
    start = np.zeros(k - 1)
    m = hull.minimise(start, np.full(k - 1, 0.3))
    assert np.all(m >= 0)
    assert m.sum() <= 1 + 1e-15
    found, first = hull.value(m), hull.value(start)
    fine = np.linspace(0, 1, 13)
    grid = fine[:, None] if k == 2 else np.array([(a, b) for a in fine for b in fine if a + b <= 1])
    lowest = min(hull.value(row) for row in grid)
    bounds = [{"type": "ineq", "fun": lambda m: 1 - m.sum()}]
    referee = optimize.minimize(
        lambda m: hull.value(np.clip(m, 0, 1)), m, bounds=[(0, 1)] * (k - 1), constraints=bounds, method="SLSQP"
    )
    gained = first - min(lowest, referee.fun)
    assert found <= min(first, lowest, referee.fun) + (1e-9 if k == 2 else 2e-3) * gained + 1e-13 * abs(first)


@pytest.mark.parametrize("name", [*BENT, *CALLS])
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_without_convexity_never_above_the_start(name, size):
    for seed in range(5):
        _, _, hull = setting(name, 2, size, seed)
        m = hull.minimise(np.zeros(1))
        assert 0.0 <= m[0] <= 1.0
        assert hull.value(m) <= hull.value(np.zeros(1))
        if hull.gap > 0:
            assert hull.value(m) < hull.value(np.zeros(1)), "a descent direction must be used"


@pytest.mark.parametrize("name", ["squares", "logistic", "logistic, intercept", "softmax, intercept", "biweight"])
@sizes
def test_unknown_images_cost_one_read_together_and_looks_cost_none(name, k):
    f, points, hull = setting(name, k)
    before = f.passes
    hull.minimise(np.zeros(k - 1)) if f.convex or k == 2 else hull.value(np.full(k - 1, 0.2))
    hull.value(np.full(k - 1, 0.1))
    assert f.passes - before == 1
    f.hull(points).value(np.full(k - 1, 0.3))
    f(hull.mix(np.full(k - 1, 0.3)))
    assert f.passes - before == 1


def test_mix_hands_on_the_intercept():
    f, _, hull = setting("logistic, intercept", 2)
    m = hull.minimise(np.zeros(1))
    x = hull.mix(m)
    found = f.evaluate(x, tangent=False)
    assert float(found.intercept) == pytest.approx(float(x.intercept), abs=1e-4)
