"""Choosing radius and exponent."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from projfree import ConstrainedClassifierCV, ConstrainedRegressor, ConstrainedRegressorCV, LpBall

mpl.use("Agg")
RADII = np.geomspace(0.1, 20.0, 6)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 8))
    return X, X @ [2.0, -1.0, 0, 0, 0, 0, 0, 0] + 1.5 * rng.standard_normal(90), rng.uniform(0.2, 2.0, size=90)


def test_scores_are_those_of_cross_validation(table):
    X, y, _ = table
    cv = KFold(4, shuffle=True, random_state=1)
    search = ConstrainedRegressorCV(p=[1.5, 2], radii=RADII, cv=cv, tol=1e-9).fit(X, y)
    for i, p in enumerate((1.5, 2)):
        for j, radius in enumerate(RADII):
            scores = cross_val_score(ConstrainedRegressor(p=p, radius=radius, tol=1e-9), X, y, cv=cv)
            np.testing.assert_allclose(search.scores_[i, j], scores, atol=1e-6)
    means = search.scores_.mean(axis=2)
    i, j = np.unravel_index(means.argmax(), means.shape)
    assert (search.p_, search.radius_, search.best_score_) == ((1.5, 2)[i], RADII[j], means.max())


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
    assert np.all(np.diff(path.values) <= 1e-9)
    assert np.all(np.diff(path.multipliers) <= 1e-6)
    assert np.all(path.gaps <= 1e-10)


def test_the_default_grid_spans_the_norm_of_a_ridge_regression(table):
    X, y, _ = table
    search = ConstrainedRegressorCV(p=[1, 2], radii=5, standardize=True).fit(X, y)
    assert search.radii_.shape == (2, 5)
    coef = Ridge().fit(scale(X), y).coef_
    for p, radii in zip((1, 2), search.radii_, strict=True):
        middle = np.linalg.norm(coef, p)
        np.testing.assert_allclose(radii, np.geomspace(middle / 30, middle * 30, 5))


def test_the_one_standard_error_rule_prefers_small_radii(table):
    X, y, _ = table
    best = ConstrainedRegressorCV(radii=12).fit(X, y)
    small = ConstrainedRegressorCV(radii=12, rule="one_standard_error").fit(X, y)
    assert small.radius_ <= best.radius_
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


def test_robust_paths(table):
    X, y, _ = table
    spoiled = y.copy()
    spoiled[::10] = 100
    search = ConstrainedRegressorCV("huber", radii=RADII, cv=3, scoring="neg_median_absolute_error").fit(X, spoiled)
    np.testing.assert_allclose(search.coef_[:2], [2, -1], atol=0.6)


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
