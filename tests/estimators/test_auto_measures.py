"""What the choice of a radius goes by: losses of rows left out, degrees of freedom, quadratic models."""

import numpy as np
import pytest
from estimators.problems import problem
from sklearn.datasets import load_diabetes

from projfree import (
    ConstrainedClassifier,
    ConstrainedRegressor,
    GroupBall,
    LpBall,
    Objective,
    SchattenBall,
    Squared,
    as_data,
    minimize,
)
from projfree.estimators.auto import Trial
from projfree.estimators.freedom import freedom, norm_curvature
from projfree.estimators.left_out import left_out_loss, scale_of
from projfree.estimators.ridge_models import EigenModel, KrylovModel, quadrature
from projfree.losses import Logistic


def test_euclidean_squares_minimise_generalised_cross_validation():
    X, y = load_diabetes(return_X_y=True)
    n = len(y)
    Xc, yc = X - X.mean(axis=0), y - y.mean()
    U, sigma, _ = np.linalg.svd(Xc, full_matrices=False)

    def gcv(penalty):
        part = sigma**2 / (sigma**2 + penalty)
        return np.sum((yc - U @ (part * (U.T @ yc))) ** 2) / (1.0 - (part.sum() + 1.0) / n) ** 2

    penalties = np.geomspace(1e-4, 1e2, 2000)
    w = np.linalg.solve(Xc.T @ Xc + min(penalties, key=gcv) * np.eye(10), Xc.T @ yc)
    # The penalties that are tried are 10^(1/6) apart.
    assert ConstrainedRegressor(standardize=False).fit(X, y).radius_ == pytest.approx(np.linalg.norm(w), rel=0.1)


def test_left_out_losses_are_generalised_cross_validation_for_squares():
    X, y = problem(3, ConstrainedRegressor)
    f = Objective(Squared(), as_data(X, y))
    x = f.point(np.array([0.5, 0.1, -0.2, 0.0]))
    assert left_out_loss(f, x, 3.0, 30.0) == pytest.approx(f.value(x) / (1.0 - 3.0 / 30.0) ** 2, rel=1e-3)
    assert left_out_loss(f, x, 30.0, 30.0) == np.inf


def test_left_out_losses_of_a_classifier_are_near_those_of_refits():
    X, y = problem(5, ConstrainedClassifier, n=60, d=5)
    signs = np.where(y == "b", 1.0, -1.0)
    penalty, n = 0.05, len(signs)

    def fitted(rows):
        f = Objective(Logistic(), as_data(X[rows], signs[rows]))
        from projfree.estimators.penalised import ridge_point

        return f, ridge_point(f, LpBall(2, 1.0), penalty * n / len(rows))

    f, w = fitted(np.arange(n))
    H = f.hessian(f.point(w))
    used = np.trace(np.linalg.solve(H + penalty * np.eye(5), H))
    exact = np.mean([np.logaddexp(0.0, -signs[i] * X[i] @ fitted(np.delete(np.arange(n), i))[1]) for i in range(n)])
    told, train = left_out_loss(f, f.point(w), used, n), f.value(f.point(w))
    assert abs(told - exact) < 0.2 * (exact - train)


BALLS = [LpBall(1, 1.0), LpBall(1.5, 1.0), LpBall(2, 1.0), LpBall(3, 1.0), GroupBall(2, 1, 1.0), SchattenBall(1, 1.0)]


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_a_kink_holds_its_coordinate_where_the_ball_does_not_bind(p):
    bends = norm_curvature(LpBall(p, radius=9.0), np.array([1.0, 0.0]), 0.0)
    np.testing.assert_array_equal(bends, [0.0, np.inf])


def shrunk(ball, V, t):
    """The minimiser of half the squared distance to V plus t times the penalty of the ball's norm."""
    if isinstance(ball, GroupBall):
        size = np.linalg.norm(V, axis=1, keepdims=True)
        return V * np.maximum(1.0 - t / size, 0.0)
    if isinstance(ball, SchattenBall):
        U, sigma, Vt = np.linalg.svd(V, full_matrices=False)
        return U * np.maximum(sigma - t, 0.0) @ Vt
    if ball.p in (1.0, 2.0):
        return np.sign(V) * np.maximum(np.abs(V) - t, 0.0) if ball.p == 1.0 else V / (1.0 + t)
    low, high, size = np.zeros_like(V), np.abs(V), np.abs(V)
    for _ in range(40):  # |w| + t |w|^(p - 1) rises
        middle = 0.5 * (low + high)
        over = middle + t * middle ** (ball.p - 1.0) > size
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.sign(V) * low


def penalised_answer(ball, H, b, kappa, start):
    """By accelerated proximal steps, which share no code with what is tested."""
    step, w, v, t = 1.0 / np.linalg.eigvalsh(H)[-1], start, start, 1.0
    for _ in range(150):
        new, s = shrunk(ball, v - step * (H @ v - b), step * kappa), 0.5 + np.sqrt(0.25 + t * t)
        w, v, t = new, new + (t - 1.0) / s * (new - w) if np.vdot(v - new, new - w) <= 0.0 else new, s
    return w


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_freedom_is_the_divergence_of_predictions(ball):
    """Against differences of the penalised answer: power p of the norm with a fixed factor, as the formula says."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((15, 4)), rng.standard_normal((15, 3))
    f = Objective(Squared(), as_data(X, Y))
    form = f.quadratic_form()
    ball = ball.resized(0.4 * ball.norm(np.linalg.lstsq(X, Y, rcond=None)[0]))
    w = minimize(f, ball, tol=1e-12).w
    mu = ball.multiplier(form.H @ w - form.b)
    used = freedom(ball, w, form.H @ w - form.b, form.H)
    kappa = mu * ball.norm(w) ** (1.0 - (1.0 if isinstance(ball, GroupBall) else ball.p))

    def predicted(targets):
        return X @ penalised_answer(ball, form.H, 2.0 * X.T @ targets / len(X), kappa, w)

    np.testing.assert_allclose(predicted(Y), X @ w, atol=1e-5)
    found, by = 0.0, 1e-3
    for place in np.ndindex(Y.shape):
        move = np.zeros(Y.shape)
        move[place] = by
        found += (predicted(Y + move)[place] - predicted(Y - move)[place]) / (2.0 * by)
    assert used == pytest.approx(found, rel=2e-3)


def test_krylov_models_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 40))
    H, b = A.T @ A, rng.standard_normal(40)
    model = KrylovModel(lambda v: H @ v, b, 40, quadrature(lambda v: H @ v, (40,), 40))
    np.testing.assert_allclose(model.point(3.0), np.linalg.solve(H + 3.0 * np.eye(40), b), rtol=1e-6)
    exact = np.trace(np.linalg.solve(H + 3.0 * np.eye(40), H))
    assert model.freedom(3.0) == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize(("largest", "early"), [(1.3, True), (100.0, False)])
def test_krylov_spaces_end_early_where_curvatures_are_even(largest, early):
    """A few large curvatures hide at first what all others add to the norm."""
    h = np.linspace(1.0, 1.3, 200)
    h[-3:] = largest
    b, asked = np.where(h == h[-1], 10.0, 0.1) if largest > 2.0 else np.ones(200), []

    def product(v):
        asked.append(v)
        return h * v

    model = KrylovModel(product, b, 8, (h, np.ones(200)), share=0.03)
    assert (len(asked) < 5) is early
    assert np.linalg.norm(model.point(0.0)) == pytest.approx(np.linalg.norm(b / h), rel=0.01)


def test_krylov_spaces_of_a_matrix_without_curvature():
    """As that of Huber's loss is where no residual is small."""
    model = KrylovModel(lambda v: 0.0 * v, np.ones(50), 8, (np.zeros(50), np.ones(50)), share=0.03)
    assert model.space.size == 1
    assert not model.theta.any()


def test_few_rows_go_by_the_restricted_likelihood():
    """Against the density of targets without their mean, whose covariance is the identity plus that of the answers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 4))
    X, y = X - X.mean(axis=0), X @ rng.standard_normal(4) + rng.standard_normal(12)
    y -= y.mean()
    Q = np.linalg.svd(np.eye(12) - 1.0 / 12, full_matrices=False)[0][:, :11]
    model = EigenModel(2.0 * X.T @ X / 12, 2.0 * X.T @ y / 12)

    def minus_log(penalty):
        V = Q.T @ (np.eye(12) + 2.0 / (12 * penalty) * X @ X.T) @ Q
        return 11 * np.log(y @ Q @ np.linalg.solve(V, Q.T @ y) / 12) + np.linalg.slogdet(V)[1]

    expected = np.array([minus_log(penalty) for penalty in model.penalties])
    found = model.likelihood(np.mean(y**2), 12.0, 1)
    near = model.penalties > 1e-6 * model.penalties[-1]
    np.testing.assert_allclose(found[near], expected[near], rtol=1e-8)
    chosen = ConstrainedRegressor(standardize=False).fit(X, y)
    best = model.point(float(model.penalties[np.argmin(expected)]))
    assert chosen.radius_ == pytest.approx(np.linalg.norm(best), rel=1e-8)


def test_degrees_of_freedom_follow_the_curvature_of_the_fit():
    """A row that is fitted well hardly bends: those of the first model, at zero, would count it in full."""
    rng = np.random.default_rng(0)
    X, u = rng.standard_normal((60, 300)), rng.standard_normal(300)
    y = np.where(X @ u > 0.0, 1.0, -1.0)
    f = Objective(Logistic(), as_data(X, y))
    zero = f.evaluate(f.point(np.zeros(300)))
    H = f.hessian(zero.point)
    model = EigenModel(H, -zero.slope.gradient)
    bend = scale_of(f, zero.point)[1]
    told, corrected = Trial(f, model, 60.0, None), Trial(f, model, 60.0, None, bend)
    k = int(np.argmin(np.abs(np.log(model.penalties / np.linalg.eigvalsh(H)[-1]))))
    penalty = float(model.penalties[k])
    share = scale_of(f, f.point(model.point(penalty)))[1] / bend
    assert 0.0 < share < 0.9
    own = np.linalg.eigvalsh(share * H)
    expected = left_out_loss(f, f.point(model.point(penalty)), float(np.sum(own / (own + penalty))), 60.0)
    assert corrected(k) == pytest.approx(expected, rel=1e-6)
    assert corrected(k) < told(k)
