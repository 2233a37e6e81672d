"""The radius that is chosen from the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification, make_regression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import scale

from projfree import (
    AcceleratedProjectedGradient,
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
from projfree.estimators import sharpening
from projfree.estimators.auto import Choice, auto_radius, radius_grid
from projfree.estimators.balls import multiplier
from projfree.estimators.climbing import climb, rise
from projfree.estimators.freedom import freedom, norm_curvature
from projfree.estimators.left_out import left_out_loss
from projfree.estimators.ridge_models import EigenModel, KrylovModel, quadrature
from projfree.losses import Logistic
from projfree.testing import SealedData

NORMS = [{"p": 1.0}, {"p": 1.5}, {"p": 2.0}]


def problem(seed, kind, n=30, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d)
    u = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return X, u if kind is ConstrainedRegressor else np.where(u + rng.standard_normal(n) > 0, "b", "a")


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_integer_weights_are_repeated_rows(kind, norm, seed):
    X, y = problem(seed, kind)
    s = np.random.default_rng(seed + 1).integers(0, 4, len(y))
    s[:2] = 1
    y[:2] = ["a", "b"] if kind is ConstrainedClassifier else y[:2]
    weighted = kind(**norm).fit(X, y, sample_weight=s)
    repeated = kind(**norm).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert weighted.radius_ == pytest.approx(repeated.radius_, rel=1e-6)


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(kind, norm, seed):
    X, y = problem(seed, kind)
    order = np.random.default_rng(seed).permutation(len(y))
    assert kind(**norm).fit(X, y).radius_ == pytest.approx(kind(**norm).fit(X[order], y[order]).radius_, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-4, 0.3, 7.0, 1e5]))
def test_the_radius_goes_with_the_targets(norm, seed, factor):
    X, y = problem(seed, ConstrainedRegressor)
    one, other = (ConstrainedRegressor(**norm).fit(X, t).radius_ for t in (y, factor * y))
    assert other == pytest.approx(factor * one, rel=1e-6)


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


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_quantiles_have_a_radius_in_every_unit_of_the_targets(p, quantile, unit):
    """A radius that does not go with the targets, such as 1, loses half of the loss here and more in other units."""
    rng = np.random.default_rng(0)
    X, test = rng.standard_normal((120, 8)), rng.standard_normal((2_000, 8))
    y, there = (Z[:, 0] + 2.0 * Z[:, 1] + rng.standard_normal(len(Z)) for Z in (X, test))

    def lost(radius):
        model = ConstrainedRegressor("quantile", quantile=quantile, p=p, radius=radius, tol=1e-3).fit(X, unit * y)
        r = there - model.predict(test) / unit
        return np.mean(np.maximum(quantile * r, (quantile - 1.0) * r)), model.radius_ / unit

    own, radius = lost("auto")
    assert own < 1.15 * min(lost(unit * r)[0] for r in (1.5, 2.0, 2.5, 3.0, 4.0))
    assert radius == pytest.approx(ConstrainedRegressor(p=p).fit(X, y).radius_, rel=0.5)


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
    mu = multiplier(ball, form.H @ w - form.b)
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


def test_a_wide_table_with_few_true_features_is_found():
    X, y = make_regression(140, 500, n_informative=8, noise=5.0, random_state=2)
    assert ConstrainedRegressor(p=1).fit(X[:70], y[:70]).score(X[70:], y[70:]) > 0.98


def test_climbing_looks_at_each_place_once():
    seen = []
    assert climb(lambda k: (seen.append(k), abs(k - 3))[1], 30, 40) == 3
    assert len(seen) == len(set(seen)) < 25
    assert climb(lambda k: -k, 0, 5) == 4


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_rows_elsewhere_give_the_same_radius(norm):
    X, y = problem(1, ConstrainedClassifier, n=80)
    signs, s = np.where(y == "b", 1.0, -1.0), np.random.default_rng(0).uniform(0.0, 2.0, 80)
    far = ConstrainedClassifier(**norm).fit(SealedData(X, signs, s))
    assert far.radius_ == pytest.approx(ConstrainedClassifier(**norm).fit(X, signs, s).radius_, rel=1e-6)


def test_weights_may_have_any_scale():
    X, y = problem(2, ConstrainedRegressor)
    s = np.random.default_rng(0).uniform(0.5, 1.0, len(y))
    small, tiny = (ConstrainedRegressor().fit(X, y, sample_weight=c * s).radius_ for c in (1.0, 1e-6))
    assert small == pytest.approx(tiny, rel=1e-9)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_odd_data_has_a_radius(norm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    for A, y in (
        (X, np.ones(20)),  # nothing to explain
        (X[:2], np.array([1.0, 2.0])),
        (np.zeros((20, 3)), rng.standard_normal(20)),
        (np.ones((20, 1)), rng.standard_normal(20)),
        (X, X @ [1.0, 2.0, 3.0]),  # no noise
        (rng.standard_normal((5, 30)), rng.standard_normal(5)),
    ):
        model = ConstrainedRegressor(**norm).fit(A, y)
        assert 0.0 < model.radius_ < np.inf
        assert np.isfinite(model.predict(A)).all()
    separable = ConstrainedClassifier(**norm).fit(X, X[:, 0] > 0)
    assert 0.0 < separable.radius_ < 1e6
    assert separable.score(X, X[:, 0] > 0) == 1.0


LOADED = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "noisy": lambda: make_regression(200, 30, n_informative=10, noise=300.0, random_state=1),
    "wide": lambda: make_regression(100, 300, n_informative=8, noise=5.0, random_state=2),
    "outputs": lambda: make_regression(200, 10, n_targets=3, noise=60.0, random_state=4),
    "cancer": lambda: (lambda a: (scale(a[0]), a[1]))(load_breast_cancer(return_X_y=True)),
    "noisy classes": lambda: make_classification(300, 40, n_informative=4, flip_y=0.4, random_state=8),
    "three classes": lambda: make_classification(300, 10, n_informative=5, n_classes=3, random_state=9),
}


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", LOADED)
def test_the_radius_predicts_nearly_as_well_as_the_best_one(name, p):
    X, y = LOADED[name]()
    kind = ConstrainedRegressor if y.dtype.kind == "f" else ConstrainedClassifier
    ours, grid = [], []
    for rows, held in ShuffleSplit(3, test_size=0.3, random_state=0).split(X):
        model = kind(p=p, standardize=False).fit(X[rows], y[rows])
        ours.append(model.score(X[held], y[held]))
        fits = [
            kind(p=p, standardize=False, radius=model.radius_ * c, tol=1e-3).fit(X[rows], y[rows])
            for c in np.geomspace(0.1, 10, 7)
        ]
        grid.append([fit.score(X[held], y[held]) for fit in fits])
    assert np.mean(ours) > np.mean(grid, axis=0).max() - 0.05


def test_grids_lie_around_the_radius():
    X, y = problem(0, ConstrainedRegressor)
    f, ball = Objective(Squared(), as_data(X, y), fit_intercept=True), LpBall(1.5, 1.0)
    middle = auto_radius(f, ball)
    np.testing.assert_allclose(radius_grid(f, ball, 3), [middle / 30, middle, middle * 30])
    assert radius_grid(f, ball, 1) == [middle]


def test_columns_on_different_scales_are_scaled():
    X, y = problem(0, ConstrainedRegressor, n=100)
    factors = np.array([1.0, 1e4, 1.0, 1e-3])
    uneven = ConstrainedRegressor().fit(X * factors, y)
    assert uneven.standardize_ is True
    assert ConstrainedRegressor().fit(X, y).standardize_ is False
    assert ConstrainedRegressor(standardize=False).fit(X * factors, y).standardize_ is False
    np.testing.assert_allclose(
        uneven.coef_ * factors, ConstrainedRegressor(standardize=True).fit(X, y).coef_, rtol=1e-6
    )
    constant = np.column_stack([X, np.full(100, 500.0)])
    assert ConstrainedRegressor().fit(constant, y).standardize_ is False
    assert uneven.verify(X * factors, y).ok


def test_deviations_are_weighted():
    X, y = problem(0, ConstrainedRegressor, n=100)
    X[0, 0] = 1e4
    assert ConstrainedRegressor().fit(X, y).standardize_ is True
    s = np.ones(100)
    s[0] = 0.0
    assert ConstrainedRegressor().fit(X, y, sample_weight=s).standardize_ is False


def test_sparse_columns_are_scaled_and_not_centred():
    X, y = problem(0, ConstrainedRegressor, n=100)
    X = (X + 3.0) * [1.0, 1e4, 1.0, 1e-3]
    dense, sparse = ConstrainedRegressor(tol=1e-10).fit(X, y), ConstrainedRegressor(tol=1e-10).fit(sp.csr_array(X), y)
    assert sparse.standardize_ is True
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-5)


def test_badly_scaled_columns_are_no_worse_than_for_ridge():
    X, y = make_regression(200, 12, n_informative=8, noise=40.0, random_state=0)
    X = X * 10.0 ** np.linspace(-4, 4, 12)
    ours, theirs = [], []
    for rows, held in ShuffleSplit(5, test_size=0.3, random_state=0).split(X):
        ours.append(ConstrainedRegressor().fit(X[rows], y[rows]).score(X[held], y[held]))
        theirs.append(RidgeCV().fit(X[rows], y[rows]).score(X[held], y[held]))
    assert np.mean(ours) >= np.mean(theirs)


def test_a_wrong_setting_is_named():
    with pytest.raises(ValueError, match="`standardize` must be True, False or 'auto', got 'yes'"):
        ConstrainedRegressor(standardize="yes").fit(np.eye(3), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_labels_of_columns_near_the_ends_of_the_range_get_the_same_radius(size, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    labels = X[:, 0] + 0.1 * rng.standard_normal(40) > 0
    usual, far = (ConstrainedClassifier(loss).fit(table, labels).radius_ for table in (X, size * X))
    assert far * size == pytest.approx(usual, rel=1e-2)


def test_a_quantile_fit_ends_at_the_first_smoothing_that_meets_the_tolerance(monkeypatch):
    found = []
    monkeypatch.setattr(sharpening, "minimize", lambda *a, **k: found.append(minimize(*a, **k)) or found[-1])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)
    ConstrainedRegressor("quantile", time_limit=5.0).fit(X[:3], y[:3])  # met exactly: all else is rounding
    assert [result.status.name for result in found] == ["CONVERGED"]


def test_scores_that_fall_until_they_are_infinite_are_followed_to_there():
    def score(k):
        return 10.0 - k if k < 5.6 else np.inf

    assert rise(score, 12, 1, lambda best, last: np.inf if score(last) == np.inf else None) == 5.5


def test_radii_near_those_that_meet_all_targets_are_tried():
    """The best ball of a wide table nearly interpolates, and the next one of a coarse grid does."""
    X, y = make_regression(100, 500, n_informative=8, noise=5.0, random_state=2)
    own, best = [], []
    for rows, held in ShuffleSplit(5, test_size=0.3, random_state=0).split(X):
        for scores, radius in ((own, "auto"), (best, 149.0)):  # the best one of a fine grid
            model = ConstrainedRegressor(p=1.5, radius=radius, tol=1e-3).fit(X[rows], y[rows])
            scores.append(model.score(X[held], y[held]))
    assert np.mean(own) > np.mean(best) - 0.03


def test_tables_with_many_rows_and_more_features_need_few_trials(monkeypatch):
    fits = []
    monkeypatch.setattr("projfree.estimators.around.minimize", lambda *a, **k: fits.append(a) or minimize(*a, **k))
    rng = np.random.default_rng(0)
    X = sp.random_array((1_200, 1_500), density=0.01, rng=rng, format="csr")
    w = rng.standard_normal(1_500) * (rng.random(1_500) < 0.02)
    y = X @ w + 0.1 * rng.standard_normal(1_200)
    found = ConstrainedRegressor(p=1.0, tol=1e-3).fit(X, y).radius_
    assert len(fits) <= 6  # of twelve radii
    assert 0.4 < found / np.abs(w).sum() < 1.6


def test_large_tables_with_many_rows_for_each_feature_go_without_trials(monkeypatch):
    asked = []
    monkeypatch.setattr("projfree.estimators.around.around", lambda *a: asked.append(a) or Choice(1.0))
    X, y = problem(0, ConstrainedRegressor, n=200)
    assert ConstrainedRegressor(p=1.0).fit(X, y).radius_ == 1.0
    monkeypatch.setattr("projfree.estimators.auto.LARGE", 100.0)
    assert ConstrainedRegressor(p=1.0).fit(X, y).radius_ == pytest.approx(
        np.abs(ConstrainedRegressor(p=2.0).fit(X, y).coef_).sum(), rel=1e-3
    )
    assert len(asked) == 1


def test_wide_tables_of_several_classes_are_tried_by_steps_of_a_known_cost(monkeypatch):
    asked = []

    def noted(f, ball, solver, **settings):
        asked.append(solver)
        return minimize(f, ball, solver, **settings)

    monkeypatch.setattr("projfree.estimators.around.minimize", noted)
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 3000), density=0.02, rng=rng, format="csr")
    ConstrainedClassifier(p=1.0, tol=1e-3).fit(X, rng.integers(0, 3, 60))
    assert asked
    assert all(isinstance(solver, AcceleratedProjectedGradient) for solver in asked)
