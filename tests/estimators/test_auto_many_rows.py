"""The radius of losses that are not quadratic, where there are many rows for each parameter."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit

from projfree import ConstrainedClassifier, ConstrainedRegressor, Logistic, LpBall, Objective, as_data, minimize
from projfree.estimators.auto import choose_radius
from projfree.estimators.ridge_models import EigenModel


def alike(n, seed=0):
    """Twenty features of rank four and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, 20)) + 0.1 * rng.standard_normal((n, 20))
    return X, (X[:, 0] + X[:, 1] - 2.0 * X[:, 2] + 2.0 * rng.standard_normal(n) > 0).astype(int)


TABLES = {
    "rare class": lambda: make_classification(3_000, 20, weights=[0.93], flip_y=0.02, random_state=5),
    "features alike": lambda: alike(1_000),
    "badly scaled": lambda: (lambda X, y: (X[:, 10:19], y))(*load_breast_cancer(return_X_y=True)),
    "far apart": lambda: make_classification(1_000, 20, class_sep=3, n_informative=10, flip_y=0, random_state=3),
    "no signal": lambda: (np.random.default_rng(0).standard_normal((600, 10)), np.arange(600) % 2),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_radius_predicts_nearly_as_well_as_the_best_one(name):
    X, y = TABLES[name]()
    ours, grid = [], []
    for rows, held in StratifiedShuffleSplit(3, test_size=0.3, random_state=0).split(X, y):
        model = ConstrainedClassifier().fit(X[rows], y[rows])
        ours.append(model.score(X[held], y[held]))
        radii = np.geomspace(0.1, 10, 7) * model.radius_
        fits = [ConstrainedClassifier(radius=r, tol=1e-3).fit(X[rows], y[rows]) for r in radii]
        grid.append([fit.score(X[held], y[held]) for fit in fits])
    assert np.mean(ours) > np.mean(grid, axis=0).max() - 0.012


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_strong_signals_are_given_room_by_balls_that_are_tried(p):
    """Models at zero or near it know nothing of the small curvatures of answers far away."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 20))
    u = X @ rng.standard_normal(20)
    y = (u + 0.05 * u.std() * rng.standard_normal(4_000) > 0).astype(int)

    def lost(**settings):
        model = ConstrainedClassifier(p=p, **settings).fit(X[:1_000], y[:1_000])
        return model.radius_, log_loss(y[1_000:], model.predict_proba(X[1_000:]))

    radius, ours = lost()
    assert ours < 1.1 * min(lost(radius=factor * radius, tol=1e-3)[1] for factor in (0.25, 0.5, 2.0, 4.0))


@pytest.mark.parametrize("share", [0.5, 0.05, 0.01])
def test_a_rare_class_does_not_end_the_steps_early(share):
    """Curvatures grow away from zero there, so that steps with those of zero go too far."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 5))
    u = X @ [2.0, -1.0, 1.0, 0.0, 0.0] + rng.logistic(size=20_000)
    f = Objective(Logistic(), as_data(X, np.where(u > np.quantile(u, 1 - share), 1.0, -1.0)), fit_intercept=True)
    free = minimize(f, LpBall(2, 100.0), tol=1e-8)
    assert choose_radius(f, LpBall(2, 1.0)).radius == pytest.approx(np.linalg.norm(free.w), rel=0.07)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "huber"])
def test_other_losses(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 6))
    mean = np.exp(X @ [0.5, -0.5, 0.3, 0.0, 0.0, 0.0])
    y = rng.poisson(mean).astype(float) if loss == "poisson" else mean * rng.gamma(5.0, 0.2, 3_000)
    chosen = ConstrainedRegressor(loss).fit(X[:1_000], y[:1_000])
    free = ConstrainedRegressor(loss, radius=100.0).fit(X[:1_000], y[:1_000])
    assert chosen.score(X[1_000:], y[1_000:]) > free.score(X[1_000:], y[1_000:]) - 0.005


def test_a_moved_model_is_the_one_of_its_matrix():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 5))
    H, w, g = A.T @ A, rng.standard_normal(5), rng.standard_normal(5)
    moved = EigenModel(H, rng.standard_normal(5)).moved(0.3, w, g)
    made = EigenModel(0.3 * H, 0.3 * H @ w - g)
    for penalty in (1e-3, 1.0):
        np.testing.assert_allclose(moved.point(penalty), made.point(penalty), rtol=1e-10)
        assert moved.freedom(penalty) == pytest.approx(made.freedom(penalty))
    np.testing.assert_allclose(moved.penalties, made.penalties)
    assert moved.expected(0.1) == made.expected(0.1)
