"""MatrixCompletion among the tools of scikit-learn, and the search with the words of the other searches."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from completion.problems import entries
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import get_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score, cross_validate

from projfree import MatrixCompletion, MatrixCompletionCV, load

USERS, ITEMS, Y = RATINGS = entries(30, 20, 300, seed=3, noise=1.0)
PAIRS = np.column_stack([USERS, ITEMS])


def quick(**settings):
    return MatrixCompletion(**{"rank": 3, "radius": 40.0, "max_sweeps": 6, "certify": False, **settings})


def search(**settings):
    given = {"p": 1.0, "cv": 3, "rank": 3, "max_sweeps": 6, "certify": False, "implicit": 0}
    return MatrixCompletionCV(**{**given, **settings})


# ---------------------------------------------------------------- the tools of scikit-learn


def pair_forms():
    names = np.array([f"u{u}" for u in USERS], dtype=object)
    return {
        "array": (PAIRS, Y),
        "objects": (np.column_stack([names, ITEMS.astype(object)]), Y),
        "tuples": (list(zip(USERS.tolist(), ITEMS.tolist(), strict=True)), list(Y)),
        "frame": (pd.DataFrame({"user": names, "item": ITEMS}), pd.Series(Y)),
        "triples": (np.column_stack([USERS, ITEMS, Y]), None),
        "frame with ratings": (pd.DataFrame({"user": USERS, "item": ITEMS, "rating": Y}), None),
    }


@pytest.mark.parametrize("form", pair_forms())
def test_cross_validation_over_pairs(form):
    X, y = pair_forms()[form]
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(quick(), X, y, cv=folds, error_score="raise")
    expected = []
    for train, test in folds.split(PAIRS):
        model = quick().fit((USERS[train], ITEMS[train], Y[train]))
        expected.append(model.score((USERS[test], ITEMS[test], Y[test])))
    np.testing.assert_allclose(scores, expected, atol=0.03)
    assert np.mean(scores) > 0.1


def test_grid_search_over_pairs():
    grid = GridSearchCV(
        quick(), {"rank": [1, 3], "p": [1.0, 1.2]}, cv=KFold(3, shuffle=True, random_state=0), error_score="raise"
    )
    grid.fit(PAIRS, Y, sample_weight=np.ones(300))
    assert grid.best_params_["rank"] in (1, 3)
    assert grid.predict(PAIRS).shape == (300,)
    found = cross_validate(quick(), PAIRS, Y, scoring=["r2", "neg_mean_absolute_error"], cv=3, error_score="raise")
    assert {"test_r2", "test_neg_mean_absolute_error"} <= set(found)


@pytest.mark.parametrize("model", [quick(), search(radii=[3.0, 9.0])], ids=lambda model: type(model).__name__)
def test_clones_and_pickles(model):
    fitted = clone(model).fit(RATINGS)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(PAIRS), fitted.predict(PAIRS))
    np.testing.assert_array_equal(again.recommend([3, 5])[0], fitted.recommend([3, 5])[0])
    other = clone(fitted)
    assert not hasattr(other, "factors_")
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(other.fit(RATINGS).predict(PAIRS), fitted.predict(PAIRS))


# ---------------------------------------------------------------- the search


@pytest.mark.parametrize("radii", [20, [3.0, 80.0, 4000.0]], ids=str)
def test_the_answer_is_a_plain_fit_with_the_chosen_radius(radii):
    found = search(p=(1.0, 1.2), radii=radii, scoring="neg_mean_absolute_error").fit(RATINGS)
    results = found.cv_results_
    assert results["rank_test_score"][found.best_index_] == 1
    assert found.best_params_ == results["params"][found.best_index_]
    assert found.best_score_ == pytest.approx(np.nanmax(results["mean_test_score"]))
    seed = np.random.RandomState(0).randint(2**31 - 1)
    plain = quick(p=found.p_, radius=found.best_params_["radius"], implicit=0, random_state=seed).fit(RATINGS)
    np.testing.assert_array_equal(found.predict(PAIRS), plain.predict(PAIRS))
    assert found.radius_ == plain.radius_ == found.best_params_["radius"]
    assert found.score(RATINGS) == pytest.approx(-mean_absolute_error(Y, plain.predict(PAIRS)))
    assert found.n_iter_ == 6
    np.testing.assert_array_equal(found.recommend(3)[0], plain.recommend(3)[0])


def test_a_path_finds_a_good_radius_and_its_radii_rise():
    rows, cols, y = entries(60, 40, 2000, seed=1, noise=0.5)
    train, test = slice(500, None), slice(None, 500)
    found = search(rank=8, cv=2, max_sweeps=15).fit((rows[train], cols[train], y[train]))
    assert all(a < b for a, b in pairwise(found.radii_[0]))
    assert 0 < found.best_index_ < found.radii_.shape[1] - 1
    held = (rows[test], cols[test], y[test])
    auto = MatrixCompletion(rank=8, certify=False, implicit=0).fit((rows[train], cols[train], y[train]))
    assert found.rmse(held) < 1.05 * auto.rmse(held)
    assert np.isfinite(found.scores_[0, found.best_index_]).all()


def test_splitters_see_the_rows_that_were_given():
    """Also where a rating is replaced by a later one, or has no weight."""
    users, items, y = np.append(USERS, USERS[:9]), np.append(ITEMS, ITEMS[:9]), np.append(Y, Y[:9])
    seen = []

    class Watched(GroupKFold):
        def split(self, X, y=None, groups=None):
            seen.append((len(X), len(y), len(groups)))
            yield from super().split(X, y, groups)

    weight = np.where(np.arange(309) == 20, 0.0, 1.0)
    judged = []

    def scorer(model, X, y):
        judged.append((len(y), set(X[0].tolist())))
        return 0.0

    search(radii=[3.0], cv=Watched(3), scoring=scorer).fit((users, items, y), sample_weight=weight, groups=users)
    assert seen == [(309, 309, 309)]
    assert sum(n for n, _ in judged[:3]) == 299
    assert not set.intersection(*(who for _, who in judged[:3]))  # users are held out whole


def test_weights_reach_the_scorer():
    weight = np.where(np.arange(300) % 2, 1.0, 1e-9)
    folds = list(KFold(2, shuffle=True, random_state=1).split(PAIRS))
    shifted = [(np.append(train + 1, 0), test + 1) for train, test in folds]  # behind a rating that is replaced
    given = {"radii": [9.0], "cv": shifted, "scoring": "neg_mean_squared_error"}
    more = [np.append(column[0], column) for column in RATINGS]
    found = search(**given).fit(tuple(more), sample_weight=np.append(5.0, weight))
    for k, (train, test) in enumerate(folds):
        model = quick(radius=9.0, implicit=0).fit((USERS[train], ITEMS[train], Y[train]), sample_weight=weight[train])
        errors = (model.predict(PAIRS[test]) - Y[test]) ** 2
        assert found.scores_[0, 0, k] == pytest.approx(-np.average(errors, weights=weight[test]), rel=0.05)


def test_metadata_are_routed():
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer("r2").set_score_request(sample_weight=True)
        found = search(radii=[3.0, 9.0], cv=GroupKFold(3), scoring=scorer).set_fit_request(sample_weight=True)
        found.fit(RATINGS, sample_weight=np.ones(300), groups=USERS)
    folds = list(GroupKFold(3).split(PAIRS, groups=USERS))
    plain = search(radii=[3.0, 9.0], cv=folds, scoring="r2").fit(RATINGS, sample_weight=np.ones(300))
    np.testing.assert_array_equal(found.scores_, plain.scores_)


def test_the_rule_of_one_standard_error_takes_a_smaller_radius():
    best = search(radii=20, cv=5).fit(RATINGS)
    small = search(radii=20, cv=5, rule="one_standard_error").fit(RATINGS)
    assert small.radius_ <= best.radius_
    with pytest.raises(ValueError, match=r"^`rule` must be one of 'best', 'one_standard_error', got 'worst'\.$"):
        search(rule="worst").fit(RATINGS)


@pytest.mark.slow
def test_processes_give_the_same():
    one = search(p=(1.0, 1.2), radii=20).fit(RATINGS)
    two = search(p=(1.0, 1.2), radii=20, n_jobs=2).fit(RATINGS)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.predict(PAIRS), two.predict(PAIRS))


def test_a_search_is_saved_and_goes_on(tmp_path):
    found = search(radii=[3.0, 9.0], cv=ShuffleSplit(2, random_state=0)).fit(RATINGS)
    found.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is MatrixCompletionCV
    assert again.best_params_ == found.best_params_
    np.testing.assert_array_equal(again.predict(PAIRS), found.predict(PAIRS))
    again.partial_fit([(99, 3, 4.0)])
    assert 99 in again.user_ids_
    assert found.certify_to(0.5).relative_gap_ <= 0.5


def test_an_automatic_weight_of_implicit_features_is_shared():
    found = search(p=(1.0, 1.2), radii=20, implicit="auto").fit(RATINGS)
    assert found.implicit_ in (0.0, 0.5, 1.0)
    assert search(radii=[3.0, 9.0], implicit="auto").fit(RATINGS).implicit_ == 0.0
    assert search(radii=20, implicit=0.5).fit(RATINGS).implicit_ == 0.5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"p": ()}, r"^`MatrixCompletionCV\(p=...\)` must name at least one exponent, got none\.$"),
        ({"p": (1.0, 2.5)}, r"must be below 2, got 2.5"),
        ({"radii": [0.0, 1.0]}, r"^`radii` must be positive"),
        ({"cv": 400}, r"n_splits=400 greater than the number of samples"),
    ],
    ids=str,
)
def test_searches_that_cannot_be(settings, words):
    with pytest.raises(ValueError, match=words):
        search(**settings).fit(RATINGS)
    with pytest.warns(UserWarning, match=r"the best radius, 12, is the largest that was tried, and larger ones may"):
        search(radii=[3.0, 6.0, 12.0], max_sweeps=15).fit(RATINGS)


def test_a_path_that_is_too_short_says_so():
    words = r"is the largest that was tried, and larger ones may score better; give larger `radii`, or raise their num"
    with pytest.warns(UserWarning, match=words):
        search(radii=3).fit(RATINGS)


def test_a_search_over_constant_ratings():
    found = search(radii=5).fit((USERS, ITEMS, np.full(300, 3.0)))
    np.testing.assert_allclose(found.predict(PAIRS), 3.0)


def test_a_search_ends_with_its_time():
    found = search(p=(1.0, 1.2), time_limit=1e-6).fit(RATINGS)
    assert found.radii_.shape == (2, 1)
    assert found.n_iter_ == 0
