"""The paper's algorithms as printed, against the solvers of the package, iterate by iterate."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from projfree import paper
from projfree.data import as_data
from projfree.losses import Logistic, Squared
from projfree.objectives import Objective, Perturbed
from projfree.run import iterate
from projfree.sampling import Growing, Minibatch
from projfree.sets import GroupBall, LpBall, SchattenBall
from projfree.solvers import FrankWolfe, PrimalAveraging, ProjectedGradient
from projfree.steps import ExactLineSearch, InverseSmoothness, LastGradient, OpenLoop, ShortStep

N, D = 200, 6
#: Rounding grows tenfold in each call of the oracle of the l_1.1 ball, so the comparison ends before it shows.
STEPS = 20
rng = np.random.default_rng(3)
X = rng.standard_normal((N, D)) * np.arange(1, D + 1)
y = np.sign(X @ rng.standard_normal(D) + rng.standard_normal(N))
START = 0.1 * rng.standard_normal(D)


def squares(rows=slice(None)):
    """The printed sum of (x_i w - y_i)^2 over some rows, its gradient, and the library's mean of the same."""
    A, b = X[rows], y[rows]
    return lambda w: float(np.sum((A @ w - b) ** 2)), lambda w: 2 * A.T @ (A @ w - b)


LOSSES = {
    "squares": (Squared(), *squares()),
    "logistic": (
        Logistic(),
        lambda w: float(np.sum(np.logaddexp(0, -y * (X @ w)))),
        lambda w: -X.T @ (y / (1 + np.exp(y * (X @ w)))),
    ),
}


def agree(printed, f, ball, solver, steps=STEPS, seed=0, tol=1e-9):
    """Compare the first iterates; the printed algorithm runs on the sum, the solver on the mean."""
    ours = (state.x.w for state in iterate(f, ball, solver, start=START, seed=seed))
    for t, (a, b) in enumerate(zip(islice(printed, steps), ours, strict=False), start=1):
        np.testing.assert_allclose(a, b, atol=tol * ball.radius, rtol=0, err_msg=f"iterate {t}")


@pytest.mark.parametrize("p", [2.0, 1.5, 1.1])
@pytest.mark.parametrize("loss", LOSSES)
class TestEveryLossAndBall:
    def setup_case(self, loss, p):
        kind, value, gradient = LOSSES[loss]
        f = Objective(kind, as_data(X, y))
        return f, LpBall(p, 0.7), value, gradient, paper.lp_oracle(p, 0.7)

    def test_frank_wolfe_a(self, loss, p):
        f, ball, _, gradient, oracle = self.setup_case(loss, p)
        agree(paper.frank_wolfe(gradient, oracle, START, paper.option_a), f, ball, FrankWolfe(OpenLoop()))

    def test_frank_wolfe_b(self, loss, p):
        f, ball, _, gradient, oracle = self.setup_case(loss, p)
        L = f.smoothness()
        printed = paper.frank_wolfe(gradient, oracle, START, paper.option_b(N * L))
        agree(printed, f, ball, FrankWolfe(ShortStep(L)))

    def test_frank_wolfe_with_the_search_of_section_2(self, loss, p):
        """The bounded search is exact to its tolerance in gamma alone, so only the first steps are compared."""
        f, ball, value, gradient, oracle = self.setup_case(loss, p)
        printed = paper.frank_wolfe(gradient, oracle, START, paper.line_search(value, 1e-12))
        agree(printed, f, ball, FrankWolfe(ExactLineSearch()), steps=5, tol=1e-4)

    def test_primal_averaging_a(self, loss, p):
        f, ball, _, gradient, oracle = self.setup_case(loss, p)
        agree(paper.primal_averaging(gradient, oracle, START, paper.Averaged()), f, ball, PrimalAveraging())

    def test_primal_averaging_b(self, loss, p):
        f, ball, _, gradient, oracle = self.setup_case(loss, p)
        printed = paper.primal_averaging(gradient, oracle, START, paper.last)
        agree(printed, f, ball, PrimalAveraging(average=LastGradient()))

    def test_primal_averaging_on_h(self, loss, p):
        f, ball, value, gradient, oracle = self.setup_case(loss, p)
        xi, theta = paper.on_the_sphere((D,), np.random.default_rng(0)), 0.3
        _, of_h = paper.perturbed(value, gradient, N * theta, xi)
        printed = paper.primal_averaging(of_h, oracle, START, paper.Averaged())
        agree(printed, Perturbed(f, theta, xi), ball, PrimalAveraging())

    def test_frank_wolfe_b_on_h(self, loss, p):
        """As in Theorem 4; h is as smooth as f."""
        f, ball, value, gradient, oracle = self.setup_case(loss, p)
        xi, theta, L = paper.on_the_sphere((D,), np.random.default_rng(0)), 0.3, f.smoothness()
        _, of_h = paper.perturbed(value, gradient, N * theta, xi)
        printed = paper.frank_wolfe(of_h, oracle, START, paper.option_b(N * L))
        agree(printed, Perturbed(f, theta, xi), ball, FrankWolfe(ShortStep(L)))


def drawn(seed):
    """The rows that the package draws at iteration t of a run with this seed."""
    data = as_data(X, y)
    return lambda t, size: data.sample(size, np.random.default_rng((seed, t))) if size < N else np.arange(N)


@pytest.mark.parametrize("theta", [0.0, 0.3])
def test_stochastic_primal_averaging_on_f_and_on_h(theta):
    """Twelve iterations: the sample is all of the rows from the fourth on. The sum of m rows has m times theta."""
    f, ball = Objective(Squared(), as_data(X, y)), LpBall(1.5, 0.7)
    xi = paper.on_the_sphere((D,), np.random.default_rng(0))
    printed = paper.stochastic_primal_averaging(
        lambda w, S: squares(S)[1](w) + len(S) * theta * xi, N, paper.lp_oracle(1.5, 0.7), START, drawn(5)
    )
    solver = PrimalAveraging(average=LastGradient(), sampling=Growing(4))
    agree(printed, Perturbed(f, theta, xi) if theta else f, ball, solver, steps=12, seed=5)


def test_gradient_descent():
    f, ball = Objective(Squared(), as_data(X, y)), LpBall(2, 0.7)
    L = f.smoothness()
    printed = paper.gradient_descent(squares()[1], ball.project, START, 1 / (N * L))
    agree(printed, f, ball, ProjectedGradient(InverseSmoothness(L)))


def test_stochastic_gradient_descent():
    f, ball, L = Objective(Squared(), as_data(X, y)), LpBall(2, 0.7), 1e3
    draw = drawn(7)
    printed = paper.stochastic_gradient_descent(
        lambda w, i: squares([i])[1](w), ball.project, START, 1 / L, lambda t: int(draw(t, 1)[0])
    )
    agree(printed, f, ball, ProjectedGradient(InverseSmoothness(L), sampling=Minibatch(1)), seed=7)


@pytest.mark.parametrize(
    ("oracle", "ball"),
    [
        (paper.lp_oracle(1.3, 2.0), LpBall(1.3, 2.0)),
        (paper.schatten_oracle(1.5, 2.0), SchattenBall(1.5, 2.0)),
        (paper.group_oracle(1.2, 1.8, 2.0), GroupBall(1.2, 1.8, 2.0)),
        (paper.group_oracle(1.8, 1.2, 2.0), GroupBall(1.8, 1.2, 2.0)),
    ],
)
def test_oracles_that_the_paper_does_not_print(oracle, ball):
    C = np.random.default_rng(1).standard_normal((5, 3) if not isinstance(ball, LpBall) else 5)
    np.testing.assert_allclose(oracle(C), np.asarray(ball.lmo(C)), atol=1e-8)
    assert ball.norm(oracle(C)) == pytest.approx(2.0)


def test_theta_is_the_largest_that_the_theorems_allow():
    assert paper.largest_theta(0.4, 2.0) == 0.05
    h, gradient = paper.perturbed(lambda w: 1.0, np.zeros_like, 0.5, np.array([0.0, 2.0]))
    assert h(np.array([7.0, 3.0])) == 4.0
    assert gradient(np.array([7.0, 3.0])).tolist() == [0.0, 1.0]
