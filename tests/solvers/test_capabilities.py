"""A new set or a new objective takes part in plans and solvers by what it says about itself, without an edit there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import projfree
from projfree import (
    ConstrainedNewton,
    Direct,
    Logistic,
    LpBall,
    Objective,
    Squared,
    as_data,
    minimize,
    path,
    plan,
)
from projfree.objectives import SmoothFunction
from projfree.sets import NormBall

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 5))
Y = X @ np.arange(5.0) + RNG.standard_normal(80)
SQUARES = Objective(Squared(), as_data(X, Y), fit_intercept=True)
LOGISTIC = Objective(Logistic(), as_data(X, np.sign(Y)), fit_intercept=True)


@dataclass(frozen=True)
class Disc(NormBall):
    """The Euclidean ball under another name."""

    radius: float

    def norm(self, w):
        return float(np.linalg.norm(w))

    def dual_norm(self, g):
        return float(np.linalg.norm(g))

    def lmo(self, g):
        return -self.radius * g / max(float(np.linalg.norm(g)), 1e-300)

    def reach(self, shape):
        return self.radius

    def project(self, w):
        return w * min(1.0, self.radius / max(float(np.linalg.norm(w)), 1e-300))

    def structure(self, shape):
        return LpBall(2, self.radius).structure(shape)


class Squashed(Disc):
    """A Euclidean ball in other units, of which the solvers are told no more than that."""

    scales = np.array([1.0, 2.0, 0.5, 1.0, 3.0])

    def norm(self, w):
        return super().norm(self.scales * w)

    def dual_norm(self, g):
        return super().dual_norm(g / self.scales)

    def lmo(self, g):
        return super().lmo(g / self.scales) / self.scales

    def reach(self, shape):
        return self.radius / float(self.scales.min())

    def project(self, w):
        return projfree.Weighted(LpBall(2, self.radius), self.scales).project(w)

    def structure(self, shape):
        return replace(super().structure(shape), weights=self.scales)


class Wrapped(SmoothFunction):
    """A function that is none of the package's, and says what it can do."""

    structure = None

    def __init__(self, f):
        self.f, self.shape, self.convex = f, f.shape, f.convex
        self.structure = replace(f.structure, name=type(self).__name__, quadratic=False)

    @property
    def passes(self):
        return self.f.passes

    def point(self, w, intercept=None):
        return self.f.point(w, intercept)

    def open(self):
        return type(self)(self.f.open())

    def evaluate(self, x, also=(), *, tangent=True, read=True, keep=False, near=False):
        return self.f.evaluate(x, also, tangent=tangent, read=read)

    def hull(self, points, gradient=None):
        return self.f.hull(points, gradient)

    def hessian(self, x, features=None):
        return self.f.hessian(x, features)

    def smoothness(self):
        return self.f.smoothness()

    def fingerprint(self):
        return f"wrapped {self.f.fingerprint()}"


class WrappedForm(Wrapped):
    def __init__(self, f):
        super().__init__(f)
        self.structure = replace(self.structure, quadratic=True)

    def quadratic_form(self):
        return self.f.quadratic_form()


@pytest.mark.parametrize("solver", ["auto", Direct()], ids=str)
def test_a_new_set_is_solved_over_exactly(solver):
    new, known = minimize(SQUARES, Disc(1.5), solver), minimize(SQUARES, LpBall(2, 1.5), solver)
    np.testing.assert_allclose(new.w, known.w, rtol=1e-9)
    assert new.solver == known.solver
    assert new.status.converged


@pytest.mark.parametrize(
    ("f", "solver"), [(SQUARES, Direct()), (LOGISTIC, ConstrainedNewton())], ids=["squares", "log"]
)
def test_a_new_set_in_other_units(f, solver):
    known = minimize(f, projfree.Weighted(LpBall(2, 0.7), Squashed.scales), solver, tol=1e-12)
    new = minimize(f, Squashed(0.7), solver, tol=1e-12)
    np.testing.assert_array_equal(new.w, known.w)  # the same exact solve, not descent
    assert new.n_iter == known.n_iter


def test_a_new_objective_with_a_form_is_solved_outright():
    f = WrappedForm(SQUARES)
    result = minimize(f, LpBall(1.5, 1.0))
    assert result.solver == Direct()
    np.testing.assert_allclose(result.w, minimize(SQUARES, LpBall(1.5, 1.0)).w, rtol=1e-9)
    found = path(f, LpBall(1.5, 1.0), [0.5, 1.0])
    assert found.n_passes < 10  # products with its matrix
    assert f.passes <= 1  # read once for all
    np.testing.assert_allclose(found.w[1], result.w, rtol=1e-6)
    assert all(one.intercept is not None for one in found.results)


def test_a_new_quadratic_without_a_form():
    f = Wrapped(SQUARES)
    f.structure = replace(SQUARES.structure, name="Bare", hessian=False)
    with pytest.raises(TypeError, match=r"Direct needs a quadratic of features.*got Bare of a"):
        minimize(f, LpBall(2, 1.0), Direct())
    assert not isinstance(plan(f, LpBall(2, 1.0)).solver, Direct | ConstrainedNewton)
