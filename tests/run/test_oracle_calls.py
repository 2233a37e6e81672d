"""Sets whose oracle is a function of the user: how often a run calls it."""

from __future__ import annotations

import numpy as np
import pytest

from projfree import (
    CorrectivePrimalAveraging,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    Squared,
    as_data,
    minimize,
)
from projfree.sets import OracleSet, Weighted, WithUnpenalized
from projfree.sets.base import ConstraintSet, NormBall

D = 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, D)) * np.linspace(1.0, 3.0, D)
Y = X @ RNG.standard_normal(D) + RNG.standard_normal(120)
CORNERS = RNG.standard_normal((30, D))
DIAMETER = float(np.linalg.norm(CORNERS[:, None] - CORNERS, axis=2).max())
SOLVERS = (PrimalAveraging(), FrankWolfe(), CorrectivePrimalAveraging())


class Counter:
    """Counts the calls of the functions that it is put around."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, function):
        def counted(*args):
            self.calls += 1
            return function(*args)

        return counted


class UserSet(ConstraintSet):
    """A user's own set, with no more than what is abstract; its support is a call of its oracle."""

    def __init__(self, ball, count):
        self.ball, self.lmo = ball, count(ball.lmo)

    def lmo(self, g):
        raise AssertionError("replaced by the counted function")

    def support(self, g):
        return float(np.vdot(g, self.lmo(-g)))

    def reach(self, shape):
        return self.ball.reach(shape)

    def diameter(self, shape):
        return self.ball.diameter(shape)

    def centre(self, shape):
        return np.zeros(shape)

    def contains(self, w, rtol=1e-11):
        return self.ball.contains(w, rtol)


class UserBall(NormBall):
    """A user's own norm ball, whose dual norm costs no call."""

    def __init__(self, ball, count):
        self.own, self.radius = ball, ball.radius
        self.count_lmo = count(ball.lmo)

    def lmo(self, g):
        return self.count_lmo(g)

    def norm(self, w):
        return self.own.norm(w)

    def dual_norm(self, g):
        return self.own.dual_norm(g)

    def reach(self, shape):
        return self.own.reach(shape)


def polytope(g):
    return CORNERS[np.argmin(CORNERS @ g)]


def by_functions(lmo, diameter, centre=None, support=None):
    return lambda count: OracleSet(
        count(lmo), None if support is None else count(support), diameter=diameter, start=centre
    )


def own(cls, ball):
    return lambda count: cls(ball, count)


ROUND, FLAT = LpBall(1.5, 2.0), LpBall(1.0, 3.0)
SETS = {
    "lp": by_functions(ROUND.lmo, ROUND.diameter((D,))),
    "lp with a start": by_functions(ROUND.lmo, ROUND.diameter((D,)), np.zeros(D)),
    "lp with a support": by_functions(ROUND.lmo, ROUND.diameter((D,)), np.zeros(D), ROUND.support),
    "lp by its box": by_functions(ROUND.lmo, None),
    "cross-polytope": by_functions(FLAT.lmo, FLAT.diameter((D,))),
    "polytope": by_functions(polytope, DIAMETER),
    "polytope with a start": by_functions(polytope, DIAMETER, CORNERS.mean(axis=0)),
    "subclass": own(UserSet, ROUND),
    "flat subclass": own(UserSet, FLAT),
    "norm ball": own(UserBall, ROUND),
    "weighted": lambda count: Weighted(UserBall(ROUND, count), np.linspace(0.5, 2.0, D)),
    "with free entries": lambda count: WithUnpenalized(UserSet(LpBall(1.5, 2.0), count), (0, 3), 5.0),
}


def problem(loss):
    return Objective(loss, as_data(X, Y if isinstance(loss, Squared) else np.sign(Y)))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("name", SETS)
def test_at_most_two_calls_an_iteration(name, solver):
    count = Counter()
    ball = SETS[name](count)
    ball.reach((D,))  # the box around the set is found once, whatever the run
    count.calls = 0
    result = minimize(problem(Logistic()), ball, solver, tol=0.0, max_iter=100)
    # A run that ends at the limit of precision before has its last checks over fewer iterations.
    assert count.calls <= (200 if result.n_iter == 100 else 2 * result.n_iter + 18)
    assert count.calls >= result.n_iter


def test_non_convex_runs_still_tell_the_gap():
    """Their measure of stationarity needs a support in every iteration: two calls where it is one of its own."""
    from projfree import SquaredSigmoid

    count = Counter()
    f = Objective(SquaredSigmoid(), as_data(X, np.sign(Y)))
    result = minimize(f, UserSet(ROUND, count), FrankWolfe(), tol=0.0, max_iter=50)
    plain = minimize(f, ROUND, FrankWolfe(), tol=0.0, max_iter=50)
    assert count.calls <= 2 * 50 + 5
    np.testing.assert_allclose(result.trace["gap"], plain.trace["gap"], rtol=1e-6)


class Remembering(UserSet):
    """A set whose oracle returns, to begin from, how often it was asked."""

    def __init__(self, ball, count):
        super().__init__(ball, count)
        self.given = []

    def oracle(self, g, warm=None):
        self.given.append(warm)
        vertex = self.lmo(g)
        return vertex, -float(np.vdot(g, vertex)), len(self.given)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("wrap", [lambda C: C, lambda C: WithUnpenalized(C, (0, 3), 5.0)], ids=["plain", "wrapped"])
def test_each_call_is_given_what_the_last_one_left(solver, wrap):
    inside = Remembering(ROUND, Counter())
    runs = []
    minimize(problem(Logistic()), wrap(inside), solver, tol=0.0, max_iter=5, callbacks=[runs.append])
    assert inside.given == [None, 1, 2, 3, 4]
    assert runs[0].state.oracle_result.warm == 5
