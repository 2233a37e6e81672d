"""`Perturbed`: a run on h = f + theta <xi, w> that reports the value of f, and bounds f."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    BlackBox,
    ConstrainedNewton,
    FrankWolfe,
    LpBall,
    Objective,
    Perturbed,
    PrimalAveraging,
    QuadraticForm,
    Squared,
    as_data,
    minimize,
    perturb,
)

RNG = np.random.default_rng(0)
X, Y, XI = RNG.standard_normal((40, 3)), RNG.standard_normal(40), RNG.standard_normal(3)
BALL = LpBall(1.5, 0.5)


def plain():
    return Objective(Squared(), as_data(X, Y), fit_intercept=True)


FUNCTIONS = {
    "objective": plain,
    "quadratic": lambda: QuadraticForm(X.T @ X, X.T @ Y),
    "blackbox": lambda: BlackBox(lambda w: (np.cosh(w).sum(), np.sinh(w)), 3, smoothness=2.0, convex=True),
}
every = pytest.mark.parametrize("name", FUNCTIONS)


@every
def test_value_and_gradient(name):
    f = FUNCTIONS[name]()
    h, w = Perturbed(f, 0.3, XI), RNG.standard_normal(3)
    assert h(h.point(w)) == pytest.approx(f(f.point(w)) + 0.3 * XI @ w, rel=1e-13)
    difference = h.evaluate(h.point(w)).slope.gradient - f.evaluate(f.point(w)).slope.gradient
    np.testing.assert_allclose(difference, 0.3 * XI, atol=1e-12)
    assert h.smoothness() == f.smoothness()
    assert (h.shape, h.convex, h.structure.n) == (f.shape, f.convex, f.structure.n)
    assert h.structure.predictions == f.structure.predictions


@every
def test_a_tangent_stripped_of_the_perturbation_is_one_of_f(name):
    f = FUNCTIONS[name]()
    h, w, z = Perturbed(f, 0.3, XI), RNG.standard_normal(3), RNG.standard_normal(3)
    found = h.evaluate(h.point(z))
    m = found.reported.slope
    reference = f.evaluate(f.point(z)).slope
    np.testing.assert_allclose(m.gradient, reference.gradient, atol=1e-12)
    assert m(w) - m.constant_error - m.gradient_error * np.linalg.norm(w) <= f(f.point(w)) + 1e-13
    assert found.reported.value == pytest.approx(reference(z), rel=1e-13)
    assert found.reported.value + 0.3 * XI @ z == pytest.approx(found.value, rel=1e-13)
    assert h.reported is f


def test_estimates_carry_the_perturbation():
    f = plain()
    h, w = Perturbed(f, 0.3, XI), np.ones(3)
    found, expected = (g.estimate(g.point(w), 2, np.random.default_rng(1)) for g in (h, f))
    np.testing.assert_allclose(found.gradient, expected.gradient + 0.3 * XI, rtol=1e-13)
    assert found.constant == -np.inf


@pytest.mark.parametrize("solver", [PrimalAveraging(), FrankWolfe()], ids=repr)
def test_a_run_reports_f_and_bounds_f(solver):
    f, theta = plain(), 1e-3
    optimum = minimize(f, BALL, tol=1e-5)
    result = minimize(Perturbed(plain(), theta, XI), BALL, solver, max_iter=50, tol=1e-12)
    assert result.value == pytest.approx(f(f.point(result.w)), rel=1e-12)
    assert result.bound <= optimum.value
    assert result.value >= optimum.bound
    # The minimiser of h is another point, at most theta times the diameter worse.
    assert result.gap <= theta * np.linalg.norm(XI) * BALL.diameter((3,)) + 1e-2 * optimum.value
    assert result.certificate.verify(X, Y).ok


def test_perturb_draws_a_direction_and_sets_the_size():
    f, ball = plain(), LpBall(2, 2.0)
    h = perturb(f, ball, 0.1, np.random.default_rng(7))
    assert h.theta == pytest.approx(0.1 / (4 * 4.0))
    assert np.linalg.norm(h.xi) == pytest.approx(1.0)
    np.testing.assert_array_equal(h.xi, perturb(f, ball, 0.1, np.random.default_rng(7)).xi)
    result = minimize(h, ball, tol=1e-12, max_iter=50)
    assert result.value - minimize(f, ball, tol=1e-5).bound <= 0.1 / 4 + 1e-5


@pytest.mark.parametrize(
    ("theta", "xi", "error", "sentence"),
    [
        (-1.0, XI, ValueError, r"`theta` must be at least 0, got -1\.0\."),
        (0.1, XI[:2], ValueError, r"`xi` must have the shape \(3,\) of the parameter, got \(2,\)\."),
        (0.1, [np.nan] * 3, ValueError, r"`xi` must be finite, got nan at index 0"),
        (0.1, XI.astype(object), TypeError, r"`xi` must hold real numbers, got dtype object"),
        ("a", XI, TypeError, r"`theta` must be a real number, got 'a' of type str\."),
    ],
)
def test_refusals(theta, xi, error, sentence):
    with pytest.raises(error, match=sentence):
        Perturbed(plain(), theta, xi)


def test_perturb_needs_a_positive_accuracy():
    with pytest.raises(ValueError, match=r"`epsilon` must be positive and finite, got 0\."):
        perturb(plain(), BALL, 0, np.random.default_rng(0))


def test_newton_compares_values_of_f_and_not_one_of_h_at_its_start():
    # (w - 1)^2 + 3 w over [-1, 1]: from -1, where h is 1 and f is 4, to -1/2, where f is 2.25.
    f = Objective(Squared(), as_data(np.ones((1, 1)), np.ones(1)))
    result = minimize(Perturbed(f, 3.0, np.ones(1)), LpBall(2, 1.0), ConstrainedNewton(), start=[-1.0], max_iter=5)
    assert result.w == pytest.approx([-0.5])
