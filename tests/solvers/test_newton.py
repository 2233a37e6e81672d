"""Newton over a ball: few iterations, right for every loss, and never uphill."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.catalogue import BENT, CONVEX, X, Y, problem

from projfree import (
    AcceleratedProjectedGradient,
    BlackBox,
    ConstrainedNewton,
    FrankWolfe,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    Quantile,
    SchattenBall,
    Simplex,
    Softmax,
    Squared,
    Weighted,
    as_data,
    minimize,
    path,
)
from projfree.objectives import SmoothFunction

SMOOTH = tuple(name for name in CONVEX if name != "calls")
BALLS = [LpBall(p, r) for p in (1.0, 1.1, 2.0, 3.0, np.inf) for r in (0.3, 50.0)]
OTHERS = [Weighted(LpBall(1.5, 1.0), [1.0, 2.0, 0.5, 3.0]), Simplex(2.0)]


@pytest.mark.parametrize("case", [name for name in SMOOTH if name != "perturbed"])  # whose own minimum is another one
@pytest.mark.parametrize("ball", [*BALLS, *OTHERS], ids=repr)
def test_certified_to_many_digits_in_a_few_iterations(case, ball):
    f = problem(case)
    if isinstance(ball, Weighted) and f.shape != (4,):
        pytest.skip("the weights are of vectors")
    result = minimize(f, ball, ConstrainedNewton(), tol=1e-9, max_iter=40)
    assert result.status.converged or result.status.name == "PRECISION", result


@pytest.mark.parametrize("ball", [GroupBall(2.0, 1.0, 1.0), SchattenBall(1.5, 1.0), SchattenBall(2.0, 0.5)], ids=repr)
def test_matrices(ball):
    f = Objective(Softmax(), as_data(X, np.arange(60) % 3), fit_intercept=True)
    quick = minimize(f, ball, ConstrainedNewton(), tol=1e-9, max_iter=40)
    slow = minimize(f, ball, AcceleratedProjectedGradient(), tol=1e-6)
    assert quick.status.converged
    assert slow.bound <= quick.value <= slow.value + 1e-9


@pytest.mark.parametrize("case", BENT)
def test_values_fall_where_the_loss_is_not_convex(case):
    result = minimize(problem(case), LpBall(1.5, 1.0), ConstrainedNewton(), tol=1e-7, max_iter=200)
    assert (np.diff(result.trace["value"]) <= 1e-15).all()
    assert result.relative_gap <= 1e-7


def numerical_hessian(f: SmoothFunction, w: np.ndarray, step: float = 1e-5) -> np.ndarray:
    rows = []
    for i in range(w.size):
        e = np.zeros(w.size)
        e[i] = step
        up, down = (f.evaluate(f.point(w + s * e.reshape(w.shape))).slope.gradient for s in (1.0, -1.0))
        rows.append(np.ravel(up - down) / (2.0 * step))
    return np.array(rows)


@pytest.mark.parametrize("case", [name for name in SMOOTH if not name.startswith("huber")])
def test_the_hessian_is_the_derivative_of_the_gradient(case):
    f = problem(case)
    w = np.random.default_rng(0).standard_normal(f.shape) / 4.0
    H = f.hessian(f.point(w)).matrix
    assert np.abs(H - numerical_hessian(f, w)).max() <= 1e-7 * np.abs(H).max()


@pytest.mark.parametrize("case", ["separable", "collinear", "constant", "wide", "single", "float32", "zero weights"])
def test_hard_tables(case):
    rng = np.random.default_rng(5)
    A, y, s, ball = rng.standard_normal((50, 5)), np.sign(rng.standard_normal(50)), None, LpBall(1.5, 2.0)
    if case == "separable":
        y, ball = np.sign(A[:, 0]), LpBall(1.5, 100.0)
    elif case == "collinear":
        A, ball = np.column_stack([A, A[:, :2], A.sum(axis=1)]), LpBall(1.1, 100.0)
    elif case == "constant":
        A[:, 2] = 7.0
    elif case == "wide":
        A = rng.standard_normal((10, 40))
        y = np.where(np.arange(10) % 2, 1.0, -1.0)
    elif case == "single":
        A = A[:, :1]
    elif case == "float32":
        A = A.astype(np.float32)
    else:
        s = (np.arange(50) % 2).astype(float)
    f = Objective(Logistic(), as_data(A, y, s), fit_intercept=True)
    result = minimize(f, ball, ConstrainedNewton(), tol=1e-7, max_iter=60)
    assert result.relative_gap <= 1e-7, result


def test_refusals():
    with pytest.raises(TypeError, match="ConstrainedNewton needs the Hessian"):
        minimize(BlackBox(lambda w: (w @ w, 2 * w), 2, convex=True), LpBall(2, 1.0), ConstrainedNewton())
    with pytest.raises(ValueError, match="needs a quick projection"):
        minimize(
            Objective(Squared(), as_data(X, np.column_stack([Y, Y]))), GroupBall(1.5, 1.2, 1.0), ConstrainedNewton()
        )


@pytest.mark.parametrize(
    "case", ["squares, intercept", "logistic, intercept", "huber, intercept", "softmax, intercept"]
)
def test_a_path_gives_the_solutions_of_its_radii(case):
    radii = [0.5, 0.1, 3.0, 30.0]
    found = path(problem(case), LpBall(1.5, 1.0), radii, tol=1e-9)
    for radius, result in zip(radii, found.results, strict=True):
        alone = minimize(problem(case), LpBall(1.5, radius), tol=1e-9)
        assert result.status.converged
        assert abs(result.value - alone.value) <= 2e-9 * abs(alone.value)
        assert result.certificate.ball == LpBall(1.5, radius)
    order = np.argsort(radii)
    assert (np.diff(found.multipliers[order]) <= 1e-6).all()
    assert (np.diff(found.values[order]) <= 1e-9).all()
    assert found.w.shape == (4, *problem(case).shape)


def test_paths_refuse_bad_radii():
    for radii, sentence in (([], "must be a sequence"), ([1.0, -1.0], "positive"), ([np.nan], "radii")):
        with pytest.raises(ValueError, match=sentence):
            path(problem("squares"), LpBall(1.5, 1.0), radii)


def test_huber_with_gross_outliers():
    y = Y.copy()
    y[::7] += 1e4
    f = Objective(Huber(0.5), as_data(X, y), fit_intercept=True)
    result = minimize(f, LpBall(2.0, 5.0), ConstrainedNewton(), tol=1e-9, max_iter=60)
    assert result.status.converged


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5), Softmax()], ids=repr)
def test_an_intercept_costs_no_further_read(loss):
    """A tangent, and at most a Hessian, an iteration; the check at exit searches for the intercept in a read more."""
    y = np.arange(60) % 3 if isinstance(loss, Softmax) else np.sign(Y) if loss.labels else Y
    f = Objective(loss, as_data(X + 3.0, y), fit_intercept=True)
    result = minimize(f, LpBall(2.0, 1.0), ConstrainedNewton(), tol=1e-8)
    assert result.status.converged
    assert result.n_iter >= 2
    assert result.n_passes <= 1 + 2 * result.n_iter + 2
    assert result.certificate.verify(objective=f).ok


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 0.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_an_intercept_that_follows_ends_where_one_that_is_searched_for_does(tol, scale):
    rng = np.random.default_rng(5)
    A = scale * rng.standard_normal((80, 3)) + 5.0 * scale
    y = np.where(A @ rng.standard_normal(3) / scale + rng.standard_normal(80) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    f = Objective(Logistic(), as_data(A, y), fit_intercept=True)
    for radius in (0.01 / scale, 1.0 / scale, 1e3 / scale):
        result = minimize(f, LpBall(1.5, radius), ConstrainedNewton(), tol=tol, max_iter=60)
        exact = minimize(f, LpBall(1.5, radius), AcceleratedProjectedGradient(), tol=1e-5, max_iter=20_000)
        assert result.status.name in ("CONVERGED", "PRECISION")
        assert result.relative_gap <= max(tol, 1e-9)
        assert result.bound <= exact.value
        assert exact.bound <= result.value


@pytest.mark.parametrize("intercept", [False, True])
def test_the_start_of_a_smoothed_loss_is_no_better_than_its_value(intercept):
    # What is smoothed is as large as what there is to gain, so that the start must not be reported without it.
    f = Objective(Quantile(0.5, delta=10.0), as_data(X, Y), fit_intercept=intercept)
    ball = LpBall(2.0, 1.0)
    result, other = minimize(f, ball, ConstrainedNewton()), minimize(f, ball, FrankWolfe(), max_iter=200)
    assert result.w.any()
    assert f(f.point(result.w)) <= f(f.point(other.w)) + 1e-6


@pytest.mark.parametrize("radius", [600.0, 738.0, 740.0, 741.0, 742.0, 745.0, 1e4])
def test_classes_so_far_apart_that_no_row_is_curved(radius):
    """Curvature that is less than the smallest normal number has no inverse among floats."""
    table = np.array([[-0.16, -0.71, -0.94], [1.37, 0.92, 1.86]])
    f = Objective(Logistic(), as_data(table, [-1.0, 1.0]), fit_intercept=True)
    result = minimize(f, Simplex(radius), ConstrainedNewton(), max_iter=100)
    assert result.bound == 0.0
    assert result.value <= 1e-6
