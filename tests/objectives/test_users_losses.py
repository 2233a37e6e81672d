"""Losses of the user's: a subclass of a loss is another function, in values, bounds and certificates."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    CorrectivePrimalAveraging,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    Poisson,
    PrimalAveraging,
    Quantile,
    Squared,
    as_data,
    minimize,
)
from projfree.losses.base import Loss

BALL = LpBall(1.5, radius=1.0)


def tables(seed=0, n=150, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


@dataclass(frozen=True)
class Triple(Squared):
    """Three times the squared loss, in NumPy alone."""

    def value(self, u, y):
        return 3.0 * super().value(u, y)

    def derivative(self, u, y):
        return 3.0 * super().derivative(u, y)

    def second(self, u, y):
        return 3.0 * super().second(u, y)

    @property
    def smoothness(self):
        return 6.0


@pytest.mark.parametrize("kind", ["C", "F", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_subclass_of_a_compiled_loss_has_its_own_value(kind, intercept, monkeypatch):
    monkeypatch.setattr("projfree.data.tables.NATIVE_BYTES", 0)
    X, y = tables()
    table = {"C": X, "F": np.asfortranarray(X), "sparse": sp.csr_array(X)}[kind]
    result = minimize(Objective(Triple(), as_data(table, y), intercept), BALL)
    u = X @ result.w + (0.0 if result.intercept is None else result.intercept)
    assert result.value == pytest.approx(3.0 * np.mean((u - y) ** 2), rel=1e-12)
    assert result.status.converged
    assert result.value == pytest.approx(3.0 * minimize(Objective(Squared(), as_data(X, y), intercept), BALL).value)


@dataclass(frozen=True)
class Half(Squared):
    """Half of the squared loss; it restates none of the constants of the loss it derives from."""

    def value(self, u, y):
        return 0.5 * super().value(u, y)

    def derivative(self, u, y):
        return 0.5 * super().derivative(u, y)

    def second(self, u, y):
        return 0.5 * super().second(u, y)


@dataclass(frozen=True)
class PseudoHuber(Squared):
    """Another function altogether."""

    def value(self, u, y):
        return np.sqrt(1.0 + (u - y) ** 2) - 1.0

    def derivative(self, u, y):
        return (u - y) / np.sqrt(1.0 + (u - y) ** 2)

    def second(self, u, y):
        return (1.0 + (u - y) ** 2) ** -1.5


@pytest.mark.parametrize("solver", ["auto", PrimalAveraging(), FrankWolfe(), CorrectivePrimalAveraging()], ids=repr)
@pytest.mark.parametrize("loss", [Half(), PseudoHuber()], ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_subclass_with_an_intercept_is_bounded_as_itself(loss, kind, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4)) + 1.0
    y = X @ np.ones(4) + 5.0 + rng.standard_normal(60)
    ball = LpBall(2, radius=1.0)
    result = minimize(Objective(loss, as_data(kind(X), y), fit_intercept=True), ball, solver, tol=1e-5, max_iter=500)
    own = float(np.mean(loss.value(X @ result.w + result.intercept, y)))
    assert result.value == pytest.approx(own, rel=1e-10)
    u = cp.Variable(4)
    b = cp.Variable()
    r = X @ u + b - y
    of = (
        cp.sum_squares(r) / 120.0
        if isinstance(loss, Half)
        else cp.sum(cp.norm(cp.vstack([r, np.ones(60)]), axis=0)) / 60.0 - 1.0
    )
    least = cp.Problem(cp.Minimize(of), [cp.norm(u) <= 1.0]).solve()
    assert result.bound <= least * (1.0 + 1e-6)
    assert result.value == pytest.approx(least, rel=1e-4)


@dataclass(frozen=True)
class Joint(Loss):
    """A coupled quadratic of the user's, whose curvature has mixed signs."""

    coupled = True
    smoothness = 2.5
    M = np.array([[2.0, 0.9], [0.9, 1.0]])

    def value(self, u, y):
        return 0.5 * np.einsum("ij,jk,ik->i", u - y, self.M, u - y)

    def derivative(self, u, y):
        return (u - y) @ self.M

    def second(self, u, y):
        return np.broadcast_to(self.M, (len(u), 2, 2))

    def targets(self, y):
        return np.asarray(y, dtype=np.float64)


def test_a_coupled_loss_of_the_users():
    X, _ = tables()
    y = np.column_stack([X[:, 0], X[:, 1] - X[:, 2]])
    result = minimize(Objective(Joint(), as_data(X, y)), BALL)
    assert result.status.converged
    assert result.certificate.verify(X, y).ok
    with pytest.raises(TypeError, match=r"needs a loss of single outputs, or `Softmax\(\)`"):
        Objective(Joint(), as_data(X, y), fit_intercept=True)


@dataclass(frozen=True)
class TwiceQuantile(Quantile):
    """Twice the smoothed quantile loss, which is reported as it is: nobody said what it is a smoothed form of."""

    def value(self, u, y):
        return 2.0 * super().value(u, y)

    def derivative(self, u, y):
        return 2.0 * super().derivative(u, y)

    def second(self, u, y):
        return 2.0 * super().second(u, y)

    @property
    def smoothness(self):
        return 2.0 / self.delta


def test_a_subclass_of_a_smoothed_loss_is_reported_as_itself():
    X, y = tables()
    loss = TwiceQuantile(0.3, delta=0.1)
    result = minimize(Objective(loss, as_data(X, y)), BALL, tol=1e-6)
    assert result.status.converged
    assert result.value == pytest.approx(np.mean(loss.value(X @ result.w, y)), rel=1e-12)


@dataclass(frozen=True)
class Cosh(Poisson):
    """The hyperbolic cosine of the residual, whose curvature at the best intercept depends on the predictions."""

    def value(self, u, y):
        return np.cosh(u - y) - 1.0

    def derivative(self, u, y):
        return np.sinh(u - y)

    def second(self, u, y):
        return np.cosh(u - y)

    def floor(self, y):
        return np.ones(np.shape(y))


def test_no_largest_curvature_is_claimed_without_a_closed_form():
    X, y = tables()
    f = Objective(Cosh(), as_data(X, 1.0 + y), fit_intercept=True)
    with pytest.raises(ValueError, match=r"Cosh\(\) has no largest curvature.*`BacktrackingGradient\(\)`"):
        f.smoothness()
    assert minimize(f, BALL).status.converged


@dataclass(frozen=True)
class SteeperLogistic(Logistic):
    """Another function than its parent, for which the parent's constants do not hold."""

    def value(self, u, y):
        return super().value(3.0 * u, y)


def test_a_subclass_takes_no_constant_for_granted():
    loss = SteeperLogistic()
    assert loss.lower_bound == -np.inf
    assert loss.kernel is None
