"""Choosing radius and exponent: grids, scores, results, and what goes along."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoCV, MultiTaskLasso, Ridge
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from projfree import (
    AcceleratedProjectedGradient,
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    LpBall,
)

mpl.use("Agg")
RADII = np.geomspace(0.1, 20.0, 6)
MAE = make_scorer(mean_absolute_error, greater_is_better=False)
pytestmark = pytest.mark.filterwarnings("ignore:.*that was tried, and .* ones may score better:UserWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8))
    return X, X @ [2.0, -1.0, 0, 0, 0, 0, 0, 0] + 1.5 * rng.standard_normal(90), rng.uniform(0.2, 2.0, size=90)


def test_the_answer_is_a_plain_fit_with_the_chosen_radius(table):
    X, y, s = table
    search = ConstrainedRegressorCV(p=1.5, radii=RADII, tol=1e-10).fit(X, y, s)
    plain = ConstrainedRegressor(p=1.5, radius=search.radius_, tol=1e-10).fit(X, y, s)
    np.testing.assert_allclose(search.coef_, plain.coef_, atol=1e-6)
    assert search.multiplier_ == pytest.approx(plain.multiplier_, rel=1e-3)
    assert search.verify(X, y, s).ok
    path = search.path_
    assert path.coefs.shape == (6, 8)
    np.testing.assert_array_equal(path.coefs[list(path.radii).index(search.radius_)], search.coef_)
    norms = [LpBall(1.5, 1.0).norm(w) for w in path.coefs]
    assert np.all(np.array(norms) <= path.radii * (1 + 1e-9))
    assert np.all(np.diff(path.multipliers) <= 1e-6)


# ---------------------------------------------------------------------- the automatic grid

KINDS = {
    "l_1": {"p": 1},
    "l_2": {"p": 2},
    "between": {"p": 1.5},
    "positive": {"p": 1, "positive": True},
    "another solver": {"p": 1, "solver": AcceleratedProjectedGradient(), "tol": 1e-3},
    "free column": {"p": 2, "free": [1]},
    "scaled": {"p": 1, "standardize": True},
}


@pytest.mark.parametrize("classify", [False, True], ids=["squared", "logistic"])
@pytest.mark.parametrize("name", KINDS)
def test_the_grid_of_multipliers_begins_where_all_coefficients_are_zero(table, name, classify):
    X, y, _ = table
    kind = ConstrainedClassifierCV if classify else ConstrainedRegressorCV
    search = kind(radii=10, cv=3, **KINDS[name]).fit(X, y > 0 if classify else y)
    mu, radii = search.path_.multipliers, search.path_.radii
    assert radii[0] == 0.0
    assert np.all(np.diff(radii) >= 0.0)
    assert np.all(np.diff(mu) <= 0.0)
    assert mu[-1] / mu[0] < 1e-2
    np.testing.assert_array_equal(search.radii_[0], radii)
    assert radii[-1] > search.radius_ > 0.0
    assert search.multiplier_ == pytest.approx(mu[list(radii).index(search.radius_)], rel=0.05)
    assert search.verify(X, y > 0 if classify else y).ok


def test_multipliers_are_those_of_the_lasso(table):
    X, y, _ = table
    search = ConstrainedRegressorCV(p=1, radii=30, cv=KFold(4), tol=1e-8).fit(X, y)
    alphas = search.path_.multipliers / 2.0
    peer = LassoCV(alphas=alphas, cv=KFold(4), tol=1e-10).fit(X, y)
    single = [cross_val_score(Lasso(alpha=a, tol=1e-10), X, y, cv=KFold(4)).mean() for a in alphas]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], single, atol=3e-3)
    assert search.score(X, y) == pytest.approx(peer.score(X, y), abs=0.01)


def test_levels_of_other_norms_are_penalties_too(table):
    X, y, s = table
    search = ConstrainedRegressorCV(p=2, radii=8, cv=KFold(3)).fit(X, y, s)
    penalties = search.path_.multipliers[1:] / search.radii_[0, 1:] * s.sum() / 2.0
    for k, alpha in enumerate(penalties):
        np.testing.assert_allclose(search.path_.coefs[k + 1], Ridge(alpha).fit(X, y, s).coef_, atol=1e-2)
    Y = np.column_stack([y, X[:, 2] - X[:, 3], y])
    search = ConstrainedRegressorCV(norm="group", radii=8, cv=3, tol=1e-8).fit(X, Y)
    for k in (1, 4, 7):
        alpha = search.path_.multipliers[k] / 2.0
        np.testing.assert_allclose(search.path_.coefs[k], MultiTaskLasso(alpha).fit(X, Y).coef_, atol=3e-2)


@pytest.mark.parametrize(
    ("kind", "p"), [(ConstrainedRegressorCV, 2), (ConstrainedClassifierCV, 1.5), (ConstrainedClassifierCV, 2)]
)
def test_a_grid_goes_on_where_its_last_value_is_the_best(kind, p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = X @ [1.0, -2.0, 0.5] + 1e-3 * rng.standard_normal(120)
    y, scoring = (y, None) if kind is ConstrainedRegressorCV else (y + 0.1 * rng.logistic(size=120) > 0, "neg_log_loss")
    search = kind(p=p, radii=5, scoring=scoring, cv=3).fit(X, y)
    assert search.extended_ > 0
    assert search.radii_.shape[1] == 5 + search.extended_ == search.scores_.shape[1]
    assert search.best_score_ > search.scores_.mean(axis=2)[0, 4]


def test_a_path_ends_where_scores_have_fallen_for_ten_values():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 200)), rng.standard_normal(60)
    search = ConstrainedRegressorCV(p=1, cv=3).fit(X, y)
    assert 10 <= search.radii_.shape[1] < 50
    assert np.isfinite(search.scores_).all()
    several = ConstrainedRegressorCV(p=[1, 2], cv=3, radii=[0.1, 0.2]).fit(X, y)
    assert several.scores_.shape == (2, 2, 3)


@pytest.mark.parametrize("p", [[1, 2], [2, 1]])
def test_paths_of_several_exponents_may_differ_in_length(table, p):
    X, y, _ = table
    search = ConstrainedRegressorCV(p=p, cv=3).fit(X, y)
    tried = np.isfinite(search.radii_)
    np.testing.assert_array_equal(tried, np.isfinite(search.scores_).all(axis=2))
    assert len(search.cv_results_["params"]) == tried.sum()
    assert search.cv_results_["params"][search.best_index_] == {"p": search.p_, "radius": search.radius_}
    assert search.cv_results_["mean_test_score"][search.best_index_] == search.best_score_


# ---------------------------------------------------------------------- what a search has


def test_the_one_standard_error_rule_prefers_small_radii(table):
    X, y, _ = table
    best = ConstrainedRegressorCV().fit(X, y)
    small = ConstrainedRegressorCV(rule="one_standard_error").fit(X, y)
    assert small.radius_ < best.radius_
    with pytest.raises(ValueError, match=r"^`rule` must be one of 'best', 'one_standard_error', got 'worst'\.$"):
        ConstrainedRegressorCV(rule="worst").fit(X, y)


def test_scorers_splitters_and_labels(table):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    target = np.where(y > 0, "up", "down")
    search = ConstrainedClassifierCV(radii=RADII, cv=3, scoring="neg_log_loss").fit(frame, target)
    assert np.all(search.scores_ < 0)
    assert list(search.classes_) == ["down", "up"]
    assert search.predict_proba(frame).shape == (90, 2)
    own = ConstrainedRegressorCV(radii=RADII, scoring=make_scorer(mean_absolute_error, greater_is_better=False))
    assert np.all(own.fit(X, y).scores_ < 0)
    plain = ConstrainedRegressorCV(radii=RADII, scoring=lambda model, X, y: -abs(np.mean(model.predict(X) - y)))
    assert plain.fit(X, y, np.ones(90)).scores_.max() <= 0
    groups = np.repeat(np.arange(9), 10)
    assert ConstrainedRegressorCV(radii=RADII, cv=GroupKFold(3)).fit(X, y, groups=groups).scores_.shape == (1, 6, 3)
    with pytest.raises(TypeError, match=r"only with metadata routing; switch it on with"):
        own.fit(X, y, colour=groups)


def test_jobs_give_the_same_scores(table):
    X, y, s = table
    one = ConstrainedRegressorCV(p=[1.2, 2], radii=RADII, cv=3).fit(X, y, s)
    two = ConstrainedRegressorCV(p=[1.2, 2], radii=RADII, cv=3, n_jobs=2).fit(X, y, s)
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_metadata_routing(table):
    X, y, s = table
    groups = np.repeat(np.arange(9), 10)
    weighted = make_scorer(mean_absolute_error, greater_is_better=False)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = weighted.set_score_request(sample_weight=True)
        search = ConstrainedRegressorCV(radii=RADII, cv=GroupKFold(3), scoring=scorer).set_fit_request(
            sample_weight=True
        )
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), search).fit(
            X, y, sample_weight=s, groups=groups
        )
    folds = list(GroupKFold(3).split(X, y, groups))
    Z = pipeline[0].transform(X)
    fitted = ConstrainedRegressor(radius=RADII[2]).fit(Z[folds[0][0]], y[folds[0][0]], s[folds[0][0]])
    held = folds[0][1]
    expected = -mean_absolute_error(y[held], fitted.predict(Z[held]), sample_weight=s[held])
    assert pipeline[1].scores_[0, 2, 0] == pytest.approx(expected, rel=1e-3)


def test_tasks_and_outputs(table):
    X, y, _ = table
    with_task = np.column_stack([X, np.tile([0.0, 1.0, 2.0], 30)])
    search = ConstrainedRegressorCV(norm="group", p=2, radii=RADII, cv=3, task=8, tol=1e-4).fit(with_task, y)
    assert search.path_.coefs.shape == (6, 3, 8)
    Y = np.column_stack([y, X[:, 3]])
    assert ConstrainedRegressorCV(norm="schatten", p=2, radii=RADII, cv=3).fit(X, Y).coef_.shape == (2, 8)
    for settings in ({"p": 1}, {"p": 2}, {"norm": "group"}, {"p": 1.5, "radii": RADII}):
        search = ConstrainedRegressorCV(fit_intercept=False, cv=3, **{"radii": 8, **settings}).fit(X, Y)
        best = search.scores_.mean(axis=2).max()
        model = ConstrainedRegressor(**{**search.best_params_, "norm": search.norm}, fit_intercept=False)
        assert cross_val_score(model, X, Y, cv=3).mean() == pytest.approx(best, abs=1e-2)
        few = ConstrainedRegressorCV(fit_intercept=False, cv=3, **{"radii": 8, **settings}).fit(X[:6], Y[:6])
        assert few.path_.intercepts.shape == (len(few.path_.radii), 2)


def test_plots(table):
    X, y, _ = table
    search = ConstrainedRegressorCV(p=[1, 2], radii=RADII, cv=3).fit(pd.DataFrame(X, columns=list("abcdefgh")), y)
    ax = search.plot_scores()
    assert ax.get_xlabel() == "radius"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["p = 1", "p = 2"]
    ax = search.plot_path(most=3)
    assert {t.get_text() for t in ax.get_legend().get_texts()} > {"a", "b"}
    drawn = {tuple(np.round(line.get_ydata(), 12)) for line in ax.lines}
    assert tuple(np.round(search.path_.coefs[:, 0], 12)) in drawn
    mpl.pyplot.close("all")


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_folds_that_lack_a_class_are_refused_with_a_way_out(table):
    X, y, _ = table
    labels = np.where(y > 0.0, "yes", "no").astype(object)
    labels[7] = "perhaps"
    rule = r"`cv` must leave rows of every class to fit, got none of 'perhaps', which has 1 in all, in fold \d; give"
    with pytest.raises(ValueError, match=rule):
        ConstrainedClassifierCV(radii=RADII).fit(X, labels)
    first = np.arange(90)
    halves = [(first[y > 0.0], first[y <= 0.0])]
    with pytest.raises(ValueError, match=r"got none of 'no', which has .* fit ConstrainedClassifier with a radius"):
        ConstrainedClassifierCV(radii=RADII, cv=halves).fit(X, np.where(y > 0.0, "yes", "no"))
    assert ConstrainedClassifierCV(radii=RADII, fit_intercept=False).fit(X, labels).radius_ > 0.0


@pytest.mark.filterwarnings("ignore:R\\^2 score is not well-defined")
def test_scores_that_are_never_defined_choose_nothing(table):
    """R^2 of one row is not defined, and any radius would be the best."""
    X, y = table[0][:12], table[1][:12]
    with pytest.raises(
        ValueError, match=r"^`scoring` gave no finite score in 12 folds, so that no radius is the best;"
    ):
        ConstrainedRegressorCV(cv=LeaveOneOut(), radii=3).fit(X, y)
    found = ConstrainedRegressorCV(cv=LeaveOneOut(), radii=3, scoring="neg_mean_squared_error").fit(X, y)
    assert np.isfinite(found.best_score_)


# ---------------------------------------------------------------------- radii that are given


@pytest.fixture(scope="module")
def scaled_table(table):
    X, y, s = table
    return X * [1, 1, 1, 5, 1, 0.2, 1, 1] + 3.0, y, s


CASES = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "scaled": {"standardize": True},
    "shuffled": {"cv": KFold(3, shuffle=True, random_state=0)},
    "overlapping": {"cv": ShuffleSplit(3, random_state=0)},
    "time": {"cv": TimeSeriesSplit(3)},
    "another scorer": {"scoring": MAE},
    "mean square": {"scoring": "neg_mean_squared_error"},
}


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_separate_fits(scaled_table, name, p):
    X, y, _ = scaled_table
    settings = {"cv": 4, **CASES[name]}
    search = ConstrainedRegressorCV(p=p, radii=RADII, **settings, tol=1e-8).fit(X, y)
    own = {k: v for k, v in settings.items() if k not in ("cv", "scoring")}
    for k, radius in enumerate(RADII):
        model = ConstrainedRegressor(p=p, radius=radius, tol=1e-9, **own)
        expected = cross_val_score(model, X, y, cv=settings["cv"], scoring=settings.get("scoring"))
        np.testing.assert_allclose(search.scores_[0, k], expected, atol=1e-6, rtol=1e-6)
    chosen = ConstrainedRegressor(p=p, radius=search.radius_, tol=1e-9, **own).fit(X, y)
    np.testing.assert_allclose(search.coef_, chosen.coef_, atol=1e-5)
    assert search.verify(X, y).ok
    assert search.result_.relative_gap <= 1e-8


@pytest.mark.parametrize("radii", [0, 1, -1, -0.5, [1.0, 0.0], [-1.0, 2.0], [], True])
def test_radii_and_exponents_must_be_some(table, radii):
    X, y, _ = table
    with pytest.raises((ValueError, TypeError), match=r"^`radii` must be "):
        ConstrainedRegressorCV(radii=radii).fit(X, y)
    with pytest.raises(ValueError, match=r"^`radii` must be finite, got inf at index 1"):
        ConstrainedRegressorCV(radii=[1.0, np.inf]).fit(X, y)
    with pytest.raises(ValueError, match=r"^`p` must be a number, or several"):
        ConstrainedRegressorCV(p=[]).fit(X, y)


def test_radii_that_were_given_are_all_that_is_tried(table):
    X, y, _ = table
    with pytest.warns(
        UserWarning, match=r"^ConstrainedRegressorCV: the best radius, 0\.2, is the largest that was tried"
    ):
        search = ConstrainedRegressorCV(radii=[0.2, 0.05, 0.1]).fit(X, y)
    np.testing.assert_array_equal(search.radii_, [[0.05, 0.1, 0.2]])


def test_results_are_those_of_a_grid_search(table):
    X, y, _ = table
    ours = ConstrainedRegressorCV(p=[1.0, 2.0], radii=RADII[:4], cv=4, tol=1e-9).fit(X, y)
    grid = GridSearchCV(ConstrainedRegressor(tol=1e-9), {"p": [1.0, 2.0], "radius": list(RADII[:4])}, cv=4).fit(X, y)
    assert set(ours.cv_results_) <= set(grid.cv_results_)
    assert ours.cv_results_["params"] == grid.cv_results_["params"]
    for name in ["mean_test_score", "std_test_score", *(f"split{k}_test_score" for k in range(4))]:
        np.testing.assert_allclose(ours.cv_results_[name], grid.cv_results_[name], atol=1e-6)
    np.testing.assert_array_equal(ours.cv_results_["rank_test_score"], grid.cv_results_["rank_test_score"])
    np.testing.assert_array_equal(ours.cv_results_["param_radius"], grid.cv_results_["param_radius"])
    assert (ours.best_index_, ours.best_params_) == (grid.best_index_, grid.best_params_)
    assert ours.best_score_ == pytest.approx(grid.best_score_, abs=1e-6)
    assert np.all(ours.cv_results_["mean_fit_time"] > 0)


def test_score_uses_the_scorer(table):
    X, y, s = table
    search = ConstrainedRegressorCV(radii=RADII, cv=3, scoring=MAE).fit(X, y)
    assert search.score(X, y) == pytest.approx(-mean_absolute_error(y, search.predict(X)))
    weighted = -mean_absolute_error(y, search.predict(X), sample_weight=s)
    assert search.score(X, y, s) == pytest.approx(weighted)
    plain = ConstrainedRegressorCV(radii=RADII, cv=3).fit(X, y)
    assert plain.score(X, y, s) == pytest.approx(r2_score(y, plain.predict(X), sample_weight=s))
    labels = y > np.median(y)
    sure = ConstrainedClassifierCV(radii=RADII, cv=3, scoring="neg_log_loss").fit(X, labels)
    assert sure.score(X, labels) == pytest.approx(-log_loss(labels, sure.predict_proba(X)))
    plain = ConstrainedClassifierCV(radii=RADII, cv=3).fit(X, labels)
    assert plain.score(X, labels) == pytest.approx(accuracy_score(labels, plain.predict(X)))


def test_radii_with_many_minimisers_are_scored_by_what_is_delivered():
    """Beyond the radius at which the rows are fitted exactly, the walk and a run end at different interpolations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 120))
    w = np.where(np.arange(120) < 4, 2.0, 0.0)
    y = X @ w + 0.1 * rng.standard_normal(40)
    search = ConstrainedRegressorCV(p=1, radii=[20.0, 40.0], cv=4, standardize=False).fit(X, y)
    for radius, score in zip(search.radii_[0], search.cv_results_["mean_test_score"], strict=True):
        single = ConstrainedRegressor(p=1, radius=float(radius), standardize=False)
        assert score == pytest.approx(np.mean(cross_val_score(single, X, y, cv=4)), abs=0.05)


# At the best radius hardly a loss is left, so that smoothing or rounding hides it, as the last digits have it.
@pytest.mark.filterwarnings("ignore:.*limit of (the smoothed loss|floating-point precision)")
@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_losses_without_curvature_at_zero_have_a_grid(loss):
    """Where hardly a row lies within the scale of the loss, its curvature at zero says nothing about the path."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(120)
    X = np.column_stack([X, -y])
    model = ConstrainedRegressorCV(loss, norm="l2").fit(X, y)
    assert len(model.radii_[0]) > 10
    assert model.score(X, y) > 0.99


def test_tasks_of_a_classifier():
    """Their objective has no Hessian; as projected gradients over many balls this took a minute."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    table, y = np.column_stack([X, np.arange(60) % 3]), X[:, 0] + rng.standard_normal(60) > 0
    model = ConstrainedClassifierCV(task=5, cv=3, radii=10).fit(table, y)
    penalties = model.path_.multipliers[1:] / model.radii_[0, 1:]
    single = ConstrainedClassifier(task=5, C=1.0 / (60 * penalties[4])).fit(table, y)
    np.testing.assert_allclose(model.path_.coefs[5], single.coef_, atol=1e-2)


@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_l_1_grids_of_losses_without_curvature_at_zero(loss):
    X, y = make_regression(30, 40, n_informative=3, noise=5.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that nearly meets all rows has no relative gap
        model = ConstrainedRegressorCV(loss, norm="l1", cv=2, radii=10).fit(X, y)
    assert model.radius_ > 0.0
    assert model.score(X, y) > 0.5
