"""Promises that are not so, and states of other problems, end in a sentence and never in a wrong bound."""

import math

import numpy as np
import pytest

from projfree import (
    BlackBox,
    Box,
    Checkpoint,
    FrankWolfe,
    LpBall,
    OpenLoop,
    OracleSet,
    Perturbed,
    PrimalAveraging,
    QuadraticForm,
    Simplex,
    Softmax,
    Status,
    as_data,
    minimize,
)
from projfree.algebra import Point
from projfree.objectives.intercept import search
from projfree.run import Certificate

BALL = LpBall(2, radius=1.0)


def square(centre, constant=0.0):
    return BlackBox(lambda w: (float((w - centre) @ (w - centre)) + constant, 2.0 * (w - centre)), shape=2, convex=True)


def disc(radius, **settings):
    ball = LpBall(2, radius=radius)
    return OracleSet(ball.lmo, ball.support, contains=ball.contains, diameter=2.0 * radius, **settings)


def test_states_of_functions_without_a_name_are_not_interchangeable():
    state = minimize(square(9.0, 100.0), BALL, PrimalAveraging(), max_iter=20).state
    with pytest.raises(ValueError, match="`state` is of another problem: its objective is blackbox"):
        minimize(square(3.0), BALL, PrimalAveraging(), state=state)


def test_a_function_goes_on_from_its_own_state():
    f = square(9.0)
    state = minimize(f, BALL, PrimalAveraging(), max_iter=20).state
    assert minimize(f, BALL, PrimalAveraging(), state=state, max_iter=5).n_iter <= 5


@pytest.mark.parametrize("names", [({}, {}), ({"name": "small"}, {"name": "large"})])
def test_checkpoints_of_oracle_sets_are_told_apart(tmp_path, names):
    f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    path = tmp_path / "run"
    minimize(f, disc(1.0, **names[0]), PrimalAveraging(), max_iter=8, tol=0.0, callbacks=[Checkpoint(path, every=1)])
    with pytest.raises(ValueError, match="is of another problem: its set is OracleSet"):
        minimize(f, disc(2.0, **names[1]), PrimalAveraging(), state=path)


NOT_CONVEX = {
    "hill": lambda w: (-float(w @ w), -2.0 * w),
    "hill with an offset": lambda w: (7.0 - float(w @ w), -2.0 * w),
    "waves": lambda w: (float(np.cos(5.0 * w).sum()), -5.0 * np.sin(5.0 * w)),
    "saddle": lambda w: (float(w[0] * w[1]), np.array([w[1], w[0]])),
}


@pytest.mark.parametrize("solver", ["auto", FrankWolfe(OpenLoop()), FrankWolfe(), PrimalAveraging()], ids=repr)
@pytest.mark.parametrize("start", [None, [0.3, -0.2]], ids=["centre", "start"])
@pytest.mark.parametrize("p", [1.0, 1.5, math.inf])
@pytest.mark.parametrize("fun", NOT_CONVEX.values(), ids=NOT_CONVEX)
def test_a_function_falsely_stated_to_be_convex_gets_no_bound(fun, p, start, solver):
    """Its tangents lie above values elsewhere, also where the gradient at the start is zero and the solver stays."""
    ball, f = LpBall(p, radius=1.0), BlackBox(fun, 2, convex=True)
    result = minimize(f, ball, solver, start=start, max_iter=50)
    assert result.status is Status.NOT_CONVEX
    assert not result.status.converged
    assert result.bound is None
    assert result.certificate.bound is None
    gradient = fun(result.w)[1]
    assert result.gap == pytest.approx(gradient @ result.w + ball.support(-gradient), abs=1e-12)
    assert not np.isfinite(result.trace["bound"]).any()
    assert result.certificate.verify(objective=f).ok


def test_a_perturbed_function_falsely_stated_to_be_convex_gets_no_bound():
    f = Perturbed(BlackBox(NOT_CONVEX["hill"], 2, convex=True), theta=0.1, xi=np.array([0.6, 0.8]))
    result = minimize(f, BALL, PrimalAveraging(), max_iter=50)
    assert result.status is Status.NOT_CONVEX
    assert result.bound is None


def rounded_terms(w):
    """Squares whose value near the minimum is the rounding of terms that are a million times larger."""
    v = w - 0.1
    return float(1e6 + v @ v) - 1e6, 2.0 * v


def noisy(w):
    """A logistic loss with errors of a unit in the last place, different from call to call."""
    X, noise = np.random.default_rng(0).standard_normal((30, 2)), noisy.rng.uniform(-1e-16, 1e-16, 3)
    u = X @ w
    return float(np.logaddexp(0.0, u).mean() * (1.0 + noise[0])), X.T @ (1.0 / (1.0 + np.exp(-u))) / 30 * (
        1 + noise[1:]
    )


noisy.rng = np.random.default_rng(1)

CONVEX = {
    "quadratic": lambda w: (float((w - 0.3) @ (w - 0.3)), 2.0 * (w - 0.3)),
    "outside": lambda w: (float((w - 3.0) @ (w - 3.0)), 2.0 * (w - 3.0)),
    "tiny": lambda w: (1e-200 * float((w - 0.3) @ (w - 0.3)), 2e-200 * (w - 0.3)),
    "large offset": lambda w: (1e12 + float((w - 0.3) @ (w - 0.3)), 2.0 * (w - 0.3)),
    "single precision": lambda w: (np.float32((w - 0.3) @ (w - 0.3)), (2.0 * (w - 0.3)).astype(np.float32)),
    "nearly absolute values": lambda w: (float(np.hypot(w - 0.1, 1e-6).sum()), (w - 0.1) / np.hypot(w - 0.1, 1e-6)),
    "linear": lambda w: (float(w[0] - 2.0 * w[1]), np.array([1.0, -2.0])),
    "constant": lambda w: (3.0, np.zeros(2)),
    "flat": lambda w: (float(np.sum(w**8)), 8.0 * w**7),
    "steep": lambda w: (float(np.cosh(300.0 * w).sum()), 300.0 * np.sinh(300.0 * w)),
    "rounded terms": rounded_terms,
    "noisy": noisy,
}


@pytest.mark.parametrize("solver", ["auto", FrankWolfe(OpenLoop()), PrimalAveraging()], ids=repr)
@pytest.mark.parametrize("start", [None, [0.1, 0.1]], ids=["centre", "start"])
@pytest.mark.parametrize("p", [1.0, 3.0])
@pytest.mark.parametrize("fun", CONVEX.values(), ids=CONVEX)
def test_convex_functions_keep_their_bound(fun, p, start, solver):
    f, ball = BlackBox(fun, 2, convex=True), LpBall(p, radius=1.0)
    result = minimize(f, ball, solver, start=start, tol=0.0, max_iter=200)
    assert result.status is not Status.NOT_CONVEX
    assert result.bound <= result.value


def test_a_support_that_is_too_small_is_found_out():
    ball = LpBall(2, radius=1.0)
    wrong = OracleSet(ball.lmo, lambda g: 0.5 * ball.support(g), contains=ball.contains, diameter=2.0)
    with pytest.raises(ValueError, match=r"`support`\s+of .* is too small"):
        minimize(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), wrong, PrimalAveraging(), max_iter=200)


def test_a_function_that_is_zero_everywhere_converges():
    result = minimize(QuadraticForm(np.zeros((2, 2)), np.zeros(2)), BALL)
    assert result.status.converged
    assert result.value == 0.0
    assert result.bound <= 0.0


@pytest.mark.parametrize("ball", [Simplex(1.0), Box(-1.0, 1.0), LpBall(2, 1.0)], ids=repr)
@pytest.mark.parametrize("solver", ["auto", FrankWolfe(), PrimalAveraging()], ids=repr)
def test_a_stationary_start_is_compared_with_other_points(solver, ball):
    f = BlackBox(lambda w: (-float(w @ w), -2.0 * w), 5, convex=True)
    result = minimize(f, ball, solver)
    assert result.status is Status.NOT_CONVEX
    assert result.bound is None


@pytest.mark.parametrize("seed", range(20))
def test_rounding_at_a_start_that_is_the_minimum_contradicts_nothing(seed):
    """There all values and gradients are rounding; how large the function is at the centre tells."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((10, 6)) * 10.0 ** rng.uniform(-4, 4, 6), rng.standard_normal(6)
    H, b, c = X.T @ X, X.T @ X @ w, float((X @ w) @ (X @ w))
    f = BlackBox(lambda v: (float(v @ H @ v - 2 * b @ v + c), 2 * (H @ v - b)), 6, convex=True)
    for solver in ("auto", FrankWolfe(), PrimalAveraging()):
        result = minimize(f, LpBall(1.5, radius=10.0), solver, start=w, tol=0.0, max_iter=100)
        assert result.status is not Status.NOT_CONVEX


@pytest.mark.parametrize("far", [700.0, 720.0, 735.0, 745.0])
def test_softmax_intercepts_where_the_curvature_has_vanished(far):
    u = np.array([[0.0, far], [0.0, far + 1.0], [0.0, far - 1.5], [0.0, far + 0.5]])
    data = as_data(u, np.array([0, 0, 1, 0])).with_targets(Softmax().targets)
    b = search(data.open(), Softmax(), Point(np.eye(2)), np.zeros(2))
    slope = (Softmax().derivative(u + b, np.array([0, 0, 1, 0])) * 0.25).sum(axis=0)
    assert np.abs(slope).max() <= 1e-8


def test_a_bound_above_the_value_is_no_proof():
    """Every number of this certificate is what the function gives; only that it is convex is not so."""
    f = BlackBox(lambda w: (-float(w @ w), -2.0 * w), 2, convex=True)
    claim = Certificate(BALL, np.array([1.0, 0.0]), None, -1.0, -1e-12, -1.0, 0.0, np.zeros(2), None)
    checked = claim.verify(objective=f)
    assert checked.feasible
    assert checked.value == -1.0
    assert checked.bound > checked.value
    assert not checked.ok
