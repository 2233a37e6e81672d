"""Features of users and items in the estimator: cold users and items, missing numbers, forms and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import projfree
from projfree.estimators.completion import MatrixCompletion, MatrixCompletionCV
from projfree.estimators.completion.features import FeatureTable


def groups(seed=0, m=160, n=90):
    """Users of four groups, which features tell, who like what their group likes; and kinds of items."""
    rng = np.random.default_rng(seed)
    group, kind = rng.integers(0, 4, m), rng.integers(0, 3, n)
    rows, cols = np.nonzero(rng.random((m, n)) < 0.15)
    taste = 1.2 * rng.standard_normal((4, 3))
    y = 3.0 + taste[group[rows], kind[cols]] + 0.4 * rng.standard_normal(len(rows))
    return (rows, cols, y), np.eye(4)[group], np.eye(3)[kind]


RATINGS, USERS, ITEMS = groups()
COLD_USER, COLD_ITEM = RATINGS[0] < 20, RATINGS[1] >= 80
WARM = tuple(part[~(COLD_USER | COLD_ITEM)] for part in RATINGS)


def fitted(**settings):
    return MatrixCompletion(**{"rank": 8, "certify": False, "user_features": USERS, "item_features": ITEMS, **settings})


@pytest.fixture(scope="module")
def model():
    return fitted(certify=True).fit(WARM)


@pytest.mark.parametrize("cold", [COLD_USER & ~COLD_ITEM, COLD_ITEM & ~COLD_USER, COLD_USER & COLD_ITEM])
def test_cold_users_and_items_are_predicted_from_their_features(model, cold):
    held = tuple(part[cold] for part in RATINGS)
    without = MatrixCompletion(rank=8, certify=False).fit(WARM)
    assert cold.sum() > 15
    assert model.rmse(held) < 0.8 * without.rmse(held)
    assert model.bound_ <= model.value_
    assert len(model.user_ids_) == 160


def test_what_is_known_of_cold_ids_works_everywhere(model, tmp_path):
    items, scores = model.recommend(3, 5)  # a user without ratings
    np.testing.assert_allclose(scores, model.decision_function(([3] * 5, items)), rtol=1e-12)
    group = USERS[3].argmax()
    like, _ = model.similar_users(3, 5)
    assert (USERS[like].argmax(axis=1) == group).mean() > 0.5
    folded = model.fold_in((), user_features=USERS[3])
    np.testing.assert_allclose(folded, model.predict(([3] * 90, np.arange(90))), atol=2e-2)
    mine = {int(c): float(v) for r, c, v in zip(*RATINGS, strict=True) if r == 3}
    both = model.fold_in(mine, user_features=USERS[3])
    errors = [np.mean([(found[c] - v) ** 2 for c, v in mine.items()]) for found in (folded, both)]
    assert errors[1] < errors[0]
    _, rows = model.transform([("new", c, v) for c, v in mine.items()], user_features=USERS[[3]])
    f = model.factors_
    np.testing.assert_allclose(
        np.clip(f.base + f.shift + rows[0, 0] + f.cols + f.right @ rows[0, 1:], *model.rating_range_)[:80], both[:80]
    )  # the items from 80 on have no ratings
    model.save(tmp_path / "m")
    for again in (projfree.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(RATINGS[:2]), model.predict(RATINGS[:2]))
        np.testing.assert_array_equal(again.fold_in((), user_features=USERS[3]), folded)
        assert again.certify_to(10.0).relative_gap_ <= 10.0
        more = again.partial_fit(([3], [0], [5.0]))
        assert len(more.user_ids_) == 160


def test_every_form_gives_the_same_model():
    ids, items = np.array([f"u{i:03d}" for i in range(160)]), np.array([f"i{j:02d}" for j in range(90)])
    named = (ids[WARM[0]], items[WARM[1]], WARM[2])
    order = np.random.default_rng(1).permutation(160)
    frame = pd.DataFrame(USERS[order], index=ids[order], columns=list("abcd"))
    forms = [
        frame,
        frame.rename_axis("user").reset_index(),
        pl.DataFrame({"user": ids[order], **{c: USERS[order, j] for j, c in enumerate("abcd")}}),
        (ids[order], USERS[order]),
        {label: row.tolist() for label, row in zip(ids[order], USERS[order], strict=True)},
    ]
    settings = {"radius": 30.0, "max_sweeps": 3, "item_features": (items, ITEMS)}
    first = fitted(**{**settings, "item_features": ITEMS}).fit(WARM).predict(RATINGS[:2])
    for form in forms:
        found = fitted(**{**settings, "user_features": form}).fit(named)
        np.testing.assert_allclose(found.predict((ids[RATINGS[0]], items[RATINGS[1]])), first, rtol=1e-9)
    sparse = fitted(radius=30.0, max_sweeps=3, user_features=sp.csr_array(USERS)).fit(WARM)
    again = fitted(radius=30.0, max_sweeps=3, user_features=sp.coo_matrix(USERS)).fit(WARM)
    np.testing.assert_array_equal(sparse.predict(RATINGS[:2]), again.predict(RATINGS[:2]))
    assert not sparse.user_features_.centre.any()


def gaps(table, part, seed=5):
    """The table with a part of its numbers missing."""
    return np.where(np.random.default_rng(seed).random(table.shape) < part, np.nan, table)


def test_missing_features_are_not_observed_and_the_rest_still_tells_of_cold_users(tmp_path):
    cold = COLD_USER & ~COLD_ITEM
    held = tuple(part[cold] for part in RATINGS)
    without = MatrixCompletion(rank=8, certify=False).fit(WARM)
    model = fitted(user_features=gaps(USERS, 0.2), item_features=gaps(ITEMS, 0.2), certify=True).fit(WARM)
    assert model.rmse(held) < 0.9 * without.rmse(held)
    assert 0.0 <= model.bound_ <= model.value_
    known = model.fold_in((), user_features=USERS[3])
    nothing = model.fold_in((), user_features=np.full(4, np.nan))
    np.testing.assert_allclose(nothing, model.fold_in(()), rtol=1e-12)  # nothing said is nothing known
    group = np.where(USERS[3] == 1.0, 1.0, np.nan)
    partly = model.fold_in((), user_features=group)
    assert np.abs(partly - nothing).max() > 0.1
    assert np.abs(partly - known).max() < np.abs(nothing - known).max()
    for ratings in ({0: 4.0, 3: 2.0}, {0: 4.0}):
        assert np.isfinite(model.fold_in(ratings, user_features=group)).all()
    model.save(tmp_path / "m")
    for again in (projfree.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(RATINGS[:2]), model.predict(RATINGS[:2]))
        np.testing.assert_array_equal(again.fold_in((), user_features=group), partly)
        assert np.isfinite(again.partial_fit(([3], [0], [5.0])).predict(([3], [1]))).all()


def test_a_feature_that_is_missing_is_no_zero_and_no_mean():
    """Neither the value nor what is learned of others depends on what would stand in its place."""
    table = gaps(USERS, 0.3)
    settings = {"radius": 30.0, "implicit": 0.5, "max_sweeps": 60, "certify": "sharp", "rank": 30}
    missing = fitted(**settings, user_features=table).fit(WARM)
    mean = np.where(np.isnan(table), np.nanmean(table, axis=0), table)
    filled = fitted(**settings, user_features=mean).fit(WARM)
    assert missing.value_ < filled.value_ - 1e-3  # fewer squares
    assert missing.value_ >= missing.bound_


def test_every_form_may_have_missing_numbers():
    table = gaps(USERS, 0.3)
    whole = fitted(radius=30.0, max_sweeps=3, user_features=table).fit(WARM).predict(RATINGS[:2])
    frame = pd.DataFrame(table, columns=list("abcd"))
    nullable = frame.astype({"a": "Int64", "b": "Float64"})
    mapping = {i: row.tolist() for i, row in enumerate(table)}
    polars = pl.DataFrame({"user": np.arange(160), **{c: pl.Series(frame[c]).fill_nan(None) for c in "abcd"}})
    for form in (frame, nullable, mapping, polars):
        found = fitted(radius=30.0, max_sweeps=3, user_features=form).fit(WARM)
        np.testing.assert_allclose(found.predict(RATINGS[:2]), whole, rtol=1e-9)
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    forms = (sp.csr_array(table), sparse)  # a zero that is not stored is a zero, NaN is missing
    first, second = (fitted(radius=30.0, max_sweeps=3, user_features=form).fit(WARM) for form in forms)
    np.testing.assert_array_equal(first.predict(RATINGS[:2]), second.predict(RATINGS[:2]))
    assert np.isnan(first.user_features_.values).sum() == np.isnan(table).sum()
    there = ~np.isnan(table)
    np.testing.assert_allclose(first.user_features_.scale, np.sqrt(np.nansum(table**2, axis=0) / there.sum(axis=0)))
    dense = FeatureTable.of(table, tuple("abcd"))
    np.testing.assert_allclose(dense.centre, np.nanmean(table, axis=0))
    np.testing.assert_allclose(dense.scale, np.nanstd(table, axis=0))


def test_a_feature_that_nobody_has_says_nothing():
    none = np.column_stack([USERS, np.full(160, np.nan)])
    settings = {"radius": 30.0, "max_sweeps": 200, "implicit": 0.5}  # as many as forget the first factors
    for found, plain in ((none, USERS), (sp.csr_array(none), sp.csr_array(USERS))):
        models = [fitted(**settings, user_features=table).fit(WARM) for table in (found, plain)]
        assert not models[0].factors_.beside[-1].any()
        np.testing.assert_allclose(*(model.predict(WARM[:2]) for model in models), atol=1e-6)


def test_new_users_with_features_come_later():
    model = fitted(user_features=(np.arange(150), USERS[:150]), item_features=None).fit(
        tuple(part[WARM[0] < 140] for part in WARM)
    )
    later = tuple(part[WARM[0] >= 150] for part in WARM)
    with pytest.raises(ValueError, match="a row for each of the users in the ratings, got none for 150"):
        model.partial_fit(later)
    model.set_params(user_features=USERS).partial_fit(later)
    assert len(model.user_ids_) == 160
    assert model.rmse(later) < 0.9 * np.std(later[2])


def test_a_scikit_learn_estimator():
    pairs, y = np.column_stack(WARM[:2]), WARM[2]
    model = fitted(radius=30.0, max_sweeps=3)
    assert clone(model).get_params()["user_features"].shape == USERS.shape
    score = cross_val_score(model, pairs, y, cv=3).mean()  # sorted by user: each fold has users of its own
    plain = clone(model).set_params(user_features=None, item_features=None)
    assert score > 0.05 + cross_val_score(plain, pairs, y, cv=3).mean()
    settings = {"rank": 4, "certify": False, "user_features": USERS, "item_features": ITEMS}
    search = MatrixCompletionCV(p=1.0, radii=[10.0, 40.0], cv=2, **settings).fit(WARM)
    assert search.factors_.beside.shape[0] == 4
    assert search.user_features_.names == ("x0", "x1", "x2", "x3")


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        (
            USERS[:100],
            ValueError,
            "a row for each of the users in the ratings, got none for 1",
        ),
        (np.where(np.arange(160)[:, None] == 7, np.inf, USERS), ValueError, "must be finite, or NaN .*, got inf"),
        (pd.DataFrame({"sex": ["F"] * 160}), TypeError, "must have numeric columns, got column 'sex' of type"),
        (pd.DataFrame({"age": [-np.inf] * 160}), ValueError, "must be finite, or NaN where a number is missing"),
        (np.zeros(160), ValueError, r"a row for each id and some features, got shape \(160,\)"),
        (3.0, ValueError, r"a row for each id and some features, got shape \(\)"),
        (pd.DataFrame({"user": np.arange(160)}), ValueError, r"and some features, got shape \(160, 0\)"),
        ({1: [1.0, 2.0], 2: [1.0]}, ValueError, r"as many numbers for each id, got shape \(1,\) for 2 "),
        ({1: 2.0, 2: 3.0}, ValueError, "must have a list of numbers for each id, got 2.0 for 1"),
        ({1: ["F"]}, TypeError, "`user_features` must hold real numbers, got dtype"),
        (1e200 * USERS, ValueError, "`user_features` has entries as large as .*; rescale its columns"),
        ((np.arange(159), USERS), ValueError, "must have an id for each row, got 159 ids and 160 rows"),
        ((np.zeros(160, int), USERS), ValueError, "must have one row for each id, got 0 160 times"),
        (([str(i) for i in range(160)], USERS), TypeError, "of the ratings as ids, which are whole numbers, got text"),
        (np.array([["a"]] * 160), TypeError, "`user_features`"),
    ],
    ids=str,
)
def test_bad_features(features, error, words):
    with pytest.raises(error, match=words):
        fitted(user_features=features).fit(WARM)


@pytest.mark.parametrize("value", [1e150, 1e23, 0.1])
def test_constant_columns_say_nothing(value):
    constant = np.full((60, 1), value)
    assert constant.mean() != value  # by rounding, which is large where the value is
    assert np.abs(FeatureTable.of(constant, ("since",)).values).max(initial=0.0) < 1e-12


def test_bad_features_of_new_users(model):
    with pytest.raises(ValueError, match=r"`user_features` must have the 4 columns of the fit, x0, x1, x2, x3, got 2"):
        model.fold_in({3: 4.0}, user_features=[1.0, 0.0])
    with pytest.raises(ValueError, match="must have a row for each of 1 users, got 2 rows"):
        model.fold_in({3: 4.0}, user_features=USERS[:2])
    plain = MatrixCompletion(radius=5.0, certify=False).fit(WARM)
    with pytest.raises(ValueError, match="`user_features` must be left out, since the model was fitted without them"):
        plain.fold_in({3: 4.0}, user_features=[1.0])
    with pytest.raises(ValueError, match=r"`MatrixCompletion\(features_weight=...\)` must be positive"):
        fitted(features_weight=0.0).fit(WARM)
