"""Paths: what they claim about rows can be checked on the rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from projfree import (
    ConstrainedRegressorCV,
    Direct,
    LpBall,
    Objective,
    PairwiseFrankWolfe,
    QuadraticForm,
    SchattenBall,
    Simplex,
    Squared,
    WorkingSet,
    as_data,
    minimize,
    path,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = X @ [1.0, 0.0, 2.0] + 5.0 + 0.1 * RNG.standard_normal(60)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("y", [Y, np.column_stack([Y, -Y])], ids=["one", "two"])
def test_certificates_hold_on_the_rows(intercept, y):
    f = Objective(Squared(), as_data(X, y), fit_intercept=intercept)
    for result in path(f, LpBall(1.5, 1.0), [0.1, 1.0, 20.0]).results:
        for check in (result.certificate.verify(X, y), result.certificate.verify(objective=f)):
            assert check.ok
            assert check.bound <= check.value


def test_certificates_of_a_cross_validated_fit():
    check = ConstrainedRegressorCV().fit(X, Y).verify(X, Y)
    assert check.ok
    assert check.bound <= check.value


def test_a_tangent_without_the_intercept_proves_nothing():
    f = Objective(Squared(), as_data(X, Y), fit_intercept=True)
    z = f.evaluate(f.point(np.zeros(3)), (f.point(np.zeros(3)),), near=True)
    (x,) = z.also
    assert z.slope.lower(LpBall(2, 1.0)) <= x.value
    assert x.value == pytest.approx(f(f.point(np.zeros(3))))


@pytest.mark.parametrize("a", np.random.default_rng(0).uniform(0.5, 2.0, 12))
def test_a_million_rows_do_not_lift_a_bound_of_the_form(a):
    n = (1 << 18) - 4
    x, y = np.tile([1.0, 1.0, -1.0, -1.0], n // 4)[:, None], np.tile([a, -a, a, -a], n // 4)
    result = path(Objective(Squared(), as_data(x, y)), LpBall(2, 1.0), [1e-3]).results[0]
    assert Fraction(result.bound) <= Fraction(a) ** 2, "the minimum is at zero"


def test_values_lost_to_cancellation_are_not_certified():
    x = RNG.standard_normal((3000, 1))
    y = 1000.0 * x[:, 0] + 1e-3 * RNG.standard_normal(3000)
    f = Objective(Squared(), as_data(x, y))
    true = minimize(f, LpBall(2, 2000.0), tol=1e-9)
    found = path(f, LpBall(2, 1.0), [2000.0], solver=Direct()).results[0]
    assert found.bound <= true.value
    assert true.value - found.bound <= found.gap + 1e-3 * true.value
    assert found.status.converged, "the rows are read again where the form is too coarse"


@pytest.mark.parametrize("p", [1.0, 1.5, 4.0, np.inf])
@pytest.mark.parametrize("shape", [(3, 1), (1, 3)])
def test_a_single_row_or_column_has_one_singular_value(p, shape):
    A = RNG.standard_normal((5, shape[0]))
    f, ball = QuadraticForm(A.T @ A + np.eye(shape[0]), 5.0 * np.ones(shape)), SchattenBall(p, 1.0)
    result = minimize(f, ball, tol=1e-9)
    assert ball.contains(result.w)
    assert result.status.converged
    assert result.value == pytest.approx(minimize(f, LpBall(2, 1.0), tol=1e-9).value)


@pytest.mark.parametrize("solver", ["auto", WorkingSet(), PairwiseFrankWolfe()], ids=lambda s: type(s).__name__)
def test_every_solution_lies_in_its_own_set_where_sets_do_not_contain_each_other(solver):
    x = np.random.default_rng(1).standard_normal((60, 30))
    f = Objective(Squared(), as_data(x, 0.1 * x[:, :5].sum(axis=1)))
    radii = [3.0, 0.1, 1.0, 0.3]
    for radius, result in zip(radii, path(f, Simplex(1.0), radii, solver=solver, tol=1e-8).results, strict=True):
        assert Simplex(radius).contains(result.w)
        alone = minimize(f, Simplex(radius), tol=1e-8)
        assert result.bound <= alone.value
        assert result.value == pytest.approx(alone.value, rel=1e-7)


def test_short_representations_and_a_plot():
    f = Objective(Squared(), as_data(np.eye(3), [1.0, 2.0, 3.0]))
    found = path(f, LpBall(1, 1.0), [0.5, 1.0, 2.0])
    assert repr(found).startswith("Path(3 radii from 0.5 to 2, largest relative gap ")
    assert repr(found.results[0].trace).startswith(f"Trace({len(found.results[0].trace)} rows")
    assert repr(f) == "Objective(Squared(), 3 rows, parameter 3)"
    assert len(found.plot().lines) == 3
