"""`MatrixCompletionCV` and scikit-learn: what is judged is what a fit to the same ratings would predict."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from completion.problems import entries
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

from projfree import MatrixCompletion, MatrixCompletionCV, load

USERS, ITEMS, Y = RATINGS = entries(40, 25, 400, seed=1, rank=3, noise=0.5)
PAIRS = np.column_stack([USERS, ITEMS])
FEATURES = np.random.default_rng(0).standard_normal((40, 3))
SETTINGS = {"rank": 4, "certify": False, "implicit": 0.0, "max_sweeps": 6}
#: The seed of a search whose ``random_state`` is zero.
SEED = np.random.RandomState(0).randint(2**31 - 1)


def search(**settings):
    return MatrixCompletionCV(**{"p": 1.0, "scoring": "neg_root_mean_squared_error", **SETTINGS, **settings})


@pytest.mark.parametrize("kind", [list, np.asarray, pd.DataFrame], ids=["list", "array", "frame"])
def test_it_is_a_regressor_of_pairs(kind):
    model = MatrixCompletion(radius=15.0, **SETTINGS)
    pairs = kind([tuple(pair) for pair in PAIRS.tolist()])
    if isinstance(pairs, pd.DataFrame):
        pairs.columns = ["user", "item"]
    scores = cross_val_score(model, pairs, Y, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.mean() > 0.0
    found = GridSearchCV(model, {"p": [1.0, 1.2]}, cv=2).fit(pairs, Y)
    assert clone(found.best_estimator_).get_params()["p"] == found.best_params_["p"]
    assert len(clone(model).get_params()) == 16


def test_a_path_is_judged_with_what_its_fold_knows():
    """Ids, offsets, counts, range and the scale of the loss are those of a fit without the ratings that judge it."""
    y = Y.copy()
    y[USERS < 3] += 40.0  # held out together, these widen the range, the mean and the scale of the loss
    held, seen = USERS < 3, []

    def scorer(model, pairs, ratings):
        seen.append(model)
        return -float(np.abs(model.predict(pairs) - ratings).mean())

    folds = [(np.flatnonzero(~held), np.flatnonzero(held))]
    search(cv=folds, scoring=scorer, loss="huber").fit(PAIRS, y)
    alone = MatrixCompletion(radius=5.0, loss="huber", **SETTINGS).fit(PAIRS[~held], y[~held])
    assert (seen[0].rating_range_, seen[0].settings_) == (alone.rating_range_, alone.settings_)
    for name in ("user_ids_", "item_ids_"):
        np.testing.assert_array_equal(getattr(seen[0], name), getattr(alone, name))
    for name in ("rows", "cols", "row_counts", "col_counts"):
        np.testing.assert_array_equal(getattr(seen[0].offset_model_, name), getattr(alone.offset_model_, name))


@pytest.mark.parametrize("folds", [GroupKFold(3), KFold(3, shuffle=True, random_state=0)], ids=["cold", "warm"])
@pytest.mark.parametrize("settings", [{}, {"user_features": FEATURES}, {"loss": "huber"}, {"implicit": 1.0}], ids=str)
def test_scores_are_those_of_models_of_the_other_ratings(folds, settings):
    """Also for users who have all of their ratings in a fold, and for empty rows of a matrix."""
    found, seen = [], []

    def scorer(model, pairs, ratings):
        found.append((len(model.ratings_), set(model.user_ids_.tolist()), model.predict(pairs)))
        seen.append(len(ratings))
        return -float(np.abs(found[-1][2] - ratings).mean())

    groups = USERS if isinstance(folds, GroupKFold) else None
    model = search(cv=folds, scoring=scorer, **settings).fit(PAIRS, Y, groups=groups)
    assert {n + held for (n, *_), held in zip(found, seen, strict=True)} == {400}
    if groups is not None and not settings.get("user_features", np.zeros(0)).size:
        assert all(len(users) < 40 for _, users, _ in found)  # those of the fold are new
    assert model.best_score_ == np.nanmax(model.scores_.mean(axis=2))
    table = search(cv=KFold(3)).fit(sp.coo_array((Y, (USERS, ITEMS)), shape=(60, 30)))
    assert table.factors_.left.shape[0] == 60


def test_a_path_finds_a_penalty_and_the_table_is_that_of_scikit_learn(tmp_path):
    found = search(p=(1.0, 1.2), cv=3, certify=True).fit(RATINGS)
    table = found.cv_results_
    assert found.best_score_ == np.nanmax(table["mean_test_score"])
    assert table["params"][found.best_index_] == found.best_params_
    assert set(found.best_params_) == {"p", "strength"}
    assert table["rank_test_score"][found.best_index_] == 1
    assert found.strength_ == pytest.approx(found.best_params_["strength"])
    assert found.settings_.p == found.p_ == found.best_params_["p"]
    assert found.bound_ <= found.value_
    stronger = search(p=(1.0, 1.2), cv=3, rule="one_standard_error").fit(RATINGS)
    assert stronger.strength_ >= found.strength_
    found.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is MatrixCompletionCV
    np.testing.assert_array_equal(again.predict(PAIRS), found.predict(PAIRS))
    assert 99 in again.partial_fit([(99, 3, 4.0)]).user_ids_
    assert found.certify_to(0.01).relative_gap_ <= 0.01
    assert found.score(PAIRS, Y) == pytest.approx(-found.rmse(PAIRS, Y))
    several = search(p=(1.0, 1.2), cv=3, n_jobs=2).fit(RATINGS)
    np.testing.assert_array_equal(several.scores_, found.scores_)


def test_an_automatic_weight_of_implicit_features_is_chosen_once():
    assert search(p=(1.0, 1.2), implicit="auto").fit(RATINGS).settings_.implicit in (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"p": ()}, r"^`MatrixCompletionCV\(p=...\)` must name at least one exponent, got none\.$"),
        ({"p": (1.0, 2.5)}, r"must be below 2, got 2.5"),
        ({"rule": "worst"}, r"^`rule` must be one of 'best', 'one_standard_error', got 'worst'"),
        ({"cv": 500}, r"n_splits=500 greater than the number of samples"),
    ],
    ids=str,
)
def test_searches_that_cannot_be(settings, words):
    with pytest.raises(ValueError, match=words):
        search(**settings).fit(RATINGS)


def test_a_search_over_constant_ratings_and_without_time():
    np.testing.assert_allclose(search().fit((USERS, ITEMS, np.full(400, 3.0))).predict(PAIRS), 3.0, rtol=1e-6)
    found = search(p=(1.0, 1.2), time_limit=1e-6).fit(RATINGS)
    assert found.n_iter_ == 0


def test_a_search_that_fails_leaves_all_as_it_was():
    found = search(cv=3, loss="huber").fit(RATINGS)
    before, kept = found.predict(PAIRS), {name: value for name, value in vars(found).items() if name.endswith("_")}
    with pytest.raises(ValueError, match=r"finite|NaN"):
        found.fit((USERS, ITEMS, np.where(np.arange(400) == 3, np.nan, Y)))

    def press(run):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
        found.set_params(callbacks=[press]).fit((USERS, ITEMS, Y[::-1]))
    np.testing.assert_array_equal(found.factors_.left.shape, kept["factors_"].left.shape)
    assert len(found.predict(PAIRS)) == len(before)
