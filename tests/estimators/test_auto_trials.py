"""Which radii are tried before one is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators.problems import problem
from sklearn.datasets import make_regression
from sklearn.linear_model import LassoCV
from sklearn.model_selection import ShuffleSplit

from projfree import (
    AcceleratedProjectedGradient,
    ConstrainedClassifier,
    ConstrainedRegressor,
    Logistic,
    LpBall,
    Objective,
    Softmax,
    Squared,
    TrustRegionLanczos,
    as_data,
    minimize,
)
from projfree.estimators.auto import RadiusChoice, choose_radius
from projfree.estimators.climbing import ascend, climb


def test_climbing_looks_at_each_place_once():
    seen = []
    assert climb(lambda k: (seen.append(k), abs(k - 3))[1], 30, 40) == 3
    assert len(seen) == len(set(seen)) < 25
    assert climb(lambda k: -k, 0, 5) == 4


def test_scores_that_fall_until_they_are_infinite_are_followed_to_there():
    def score(k):
        return 10.0 - k if k < 5.6 else np.inf

    assert ascend(score, 0, (0, 12), lambda best, last: np.inf if score(last) == np.inf else None) == 5.5


@pytest.mark.parametrize("lowest", [0, 2, 4, 7, 12])
def test_places_below_the_start_are_looked_at_only_if_nothing_above_is_lower(lowest):
    seen = []

    def score(k):
        seen.append(k)
        return abs(k - lowest)

    found = ascend(score, 4, (0, 12), lambda best, last: 99.0 if last > best else None)
    assert found == lowest
    assert len(seen) == len(set(seen))
    assert min(seen) == (4 if lowest > 4 else max(lowest - 1, 0))


def test_a_start_that_leaves_nothing_to_tell_is_left_downwards():
    def score(k):
        return 10.0 - k if k < 2.5 else np.inf

    assert ascend(score, 4, (0, 12), lambda best, last: np.inf if score(last) == np.inf else None) == 2.25


@pytest.mark.parametrize(("loss", "p"), [("squared", 1.5), ("logistic", 1.0), ("logistic", 1.5)])
def test_a_fit_goes_on_from_the_trial_with_its_radius(loss, p):
    """The last run has next to nothing to read, and its answer is that of a fit to which the radius was given."""
    X, y = make_regression(60, 400, n_informative=5, noise=5.0, random_state=0)
    kind, y = (ConstrainedRegressor, y) if loss == "squared" else (ConstrainedClassifier, (y > 0).astype(int))
    chosen = kind(p=p).fit(X, y)
    alone = kind(p=p, radius=chosen.radius_).fit(X, y)
    assert chosen.result_.n_passes <= 0.6 * alone.result_.n_passes
    assert chosen.result_.solver == alone.result_.solver
    assert chosen.result_.plan.solver == chosen.result_.solver
    assert chosen.result_.relative_gap <= 1e-6
    assert chosen.result_.value == pytest.approx(alone.result_.value, rel=2e-6)
    assert chosen.verify(X, y).ok


def test_euclidean_squares_go_on_from_the_krylov_space_of_the_choice():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1_500))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(400)
    chosen = ConstrainedRegressor().fit(X, y)
    alone = ConstrainedRegressor(radius=chosen.radius_).fit(X, y)
    assert isinstance(alone.result_.solver, TrustRegionLanczos)
    assert chosen.result_.n_passes <= 0.5 * alone.result_.n_passes
    assert chosen.result_.value == pytest.approx(alone.result_.value, rel=2e-6)
    assert chosen.verify(X, y).ok


def test_a_wide_table_with_few_true_features_is_found():
    X, y = make_regression(140, 500, n_informative=8, noise=5.0, random_state=2)
    assert ConstrainedRegressor(p=1).fit(X[:70], y[:70]).score(X[70:], y[70:]) > 0.98


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
    X = sp.random_array((1_200, 1_500), density=0.01, random_state=rng, format="csr")
    w = rng.standard_normal(1_500) * (rng.random(1_500) < 0.02)
    y = X @ w + 0.1 * rng.standard_normal(1_200)
    found = ConstrainedRegressor(p=1.0, tol=1e-3).fit(X, y).radius_
    assert len(fits) <= 6  # of twelve radii
    assert 0.4 < found / np.abs(w).sum() < 1.6


def test_large_tables_with_many_rows_for_each_feature_go_without_trials(monkeypatch):
    asked = []
    monkeypatch.setattr("projfree.estimators.around.around", lambda *a: asked.append(a) or RadiusChoice(1.0))
    X, y = problem(0, ConstrainedRegressor, n=200)
    assert ConstrainedRegressor(p=1.0).fit(X, y).radius_ == 1.0
    monkeypatch.setattr("projfree.estimators.auto.LARGE", 100.0)
    assert ConstrainedRegressor(p=1.0).fit(X, y).radius_ == pytest.approx(
        np.abs(ConstrainedRegressor(p=2.0).fit(X, y).coef_).sum(), rel=1e-3
    )
    assert len(asked) == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_intercepts_of_many_rows_follow_and_are_not_searched_for(monkeypatch, classes):
    """Each search holds images and folds them some five times, which is half of what the choice took."""
    from projfree.objectives.intercepts import profiled

    searches = []
    search = profiled.search
    monkeypatch.setattr(profiled, "search", lambda *a: searches.append(a) or search(*a))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 4)) + 1.0
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=4_000) - 2.0, np.arange(classes - 1))
    loss, labels = (Logistic(), np.where(y > 0, 1.0, -1.0)) if classes == 2 else (Softmax(3), y)
    f = Objective(loss, as_data(X, labels), fit_intercept=True)
    before = len(searches)
    choice = choose_radius(f, LpBall(2, 1.0))
    assert len(searches) == before
    free = minimize(f, LpBall(2, 100.0), tol=1e-8)
    assert choice.radius == pytest.approx(np.linalg.norm(free.w), rel=0.07)
    assert choice.start == pytest.approx(free.w, abs=0.07)


def test_wide_tables_of_several_classes_are_tried_by_steps_of_a_known_cost(monkeypatch):
    asked = []

    def noted(f, ball, solver, **settings):
        asked.append(solver)
        return minimize(f, ball, solver, **settings)

    monkeypatch.setattr("projfree.estimators.around.minimize", noted)
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 3000), density=0.02, random_state=rng, format="csr")
    ConstrainedClassifier(p=1.0, tol=1e-3).fit(X, rng.integers(0, 3, 60))
    assert asked
    assert all(isinstance(solver, AcceleratedProjectedGradient) for solver in asked)


def test_squares_that_leave_little_unexplained_go_without_trials(monkeypatch):
    """Trials could gain at most the share that is unexplained, times features over rows."""
    asked = []
    monkeypatch.setattr("projfree.estimators.around.around", lambda *a: asked.append(a) or RadiusChoice(1.0))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 10))
    u = X @ rng.standard_normal(10)
    noise = u.std() * rng.standard_normal(300)
    assert ConstrainedRegressor(p=1.5).fit(X, u + noise).radius_ == 1.0  # half is unexplained: 300 < 200 * 10 / 2
    assert len(asked) == 1
    found = ConstrainedRegressor(p=1.5).fit(X, u + 0.3 * noise)
    assert len(asked) == 1
    assert found.radius_ == pytest.approx(np.linalg.norm(found.coef_, 1.5), rel=1e-6)


def test_wide_tables_are_tried_although_their_fits_leave_nothing_unexplained(monkeypatch):
    asked = []
    monkeypatch.setattr("projfree.estimators.around.around", lambda *a: asked.append(a) or RadiusChoice(1.0))
    X, y = make_regression(60, 100, n_informative=60, noise=5.0, random_state=0)
    ConstrainedRegressor(p=1.5).fit(X, y)
    assert asked


def test_small_choices_keep_blas_to_one_thread(monkeypatch):
    """Its threads wait for each other where a core is busy: a choice of 60 x 300 took minutes instead of seconds."""
    from threadpoolctl import threadpool_info, threadpool_limits

    from projfree.estimators import auto

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    seen, chosen = [], auto._chosen
    monkeypatch.setattr(auto, "_chosen", lambda *a: seen.append(threads()) or chosen(*a))
    X, y = problem(0, ConstrainedRegressor)
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this BLAS has one thread")
        ConstrainedRegressor().fit(X, y)
        assert threads() == {2}
    assert seen == [{1}]


@pytest.mark.parametrize("shape", [(40, 300), (45, 300), (60, 1000)])
@pytest.mark.parametrize("seed", range(3))
def test_sparse_answers_are_found_where_ridge_regression_finds_little(shape, seed):
    """The best l_1 ball is a hundred times as large there as the norm of the ridge regression."""
    n, d = shape
    X, y = make_regression(n + 500, d, n_informative=5, noise=5.0, random_state=seed)
    found, peer = ConstrainedRegressor(p=1).fit(X[:n], y[:n]), LassoCV(cv=5).fit(X[:n], y[:n])
    assert found.score(X[n:], y[n:]) > peer.score(X[n:], y[n:]) - 0.03


@pytest.mark.parametrize("seed", range(3))
def test_larger_balls_are_not_tried_once_they_hold_nothing_back(seed):
    """Fits that leave nothing would go on to seem better, by rounding, up to the largest ball."""
    X, y = make_regression(80, 400, n_informative=3, noise=1.0, random_state=seed)
    found = choose_radius(Objective(Squared(), as_data(X, y), fit_intercept=True), LpBall(p=1, radius=1.0))
    assert found.radius < 100.0 * np.abs(found.start).sum()
