"""Features of users and items in the estimator: cold users and items, missing numbers, forms and errors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import projfree
from projfree import MatrixCompletion
from projfree.completion.features import FeatureTable


def groups(seed=0, m=160, n=90):
    """Users of four groups, which features tell, who like what their group likes; and kinds of items."""
    rng = np.random.default_rng(seed)
    group, kind = rng.integers(0, 4, m), rng.integers(0, 3, n)
    rows, cols = np.nonzero(rng.random((m, n)) < 0.15)
    rating_weight = 1.2 * rng.standard_normal((4, 3))
    y = 3.0 + rating_weight[group[rows], kind[cols]] + 0.4 * rng.standard_normal(len(rows))
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


@pytest.mark.parametrize("implicit", [0.0, 1.0])
def test_a_new_user_may_have_no_features(implicit):
    model = fitted(implicit=implicit, radius=30.0, max_sweeps=3).fit(WARM)
    mine = {int(c): float(v) for r, c, v in zip(*RATINGS, strict=True) if r == 40}
    without, told = model.fold_in(mine), model.fold_in(mine, user_features=USERS[40])
    assert 0.0 < np.abs(without - told).max() < 1.0
    assert len(model.fold_in(mine, n=3)[0]) == 3


def gaps(table, part, seed=5):
    """The table with a part of its numbers missing."""
    return np.where(np.random.default_rng(seed).random(table.shape) < part, np.nan, table)


def test_a_missing_feature_counts_as_the_mean_of_its_column(tmp_path):
    table = gaps(USERS, 0.2)
    mean = np.where(np.isnan(table), np.nanmean(table, axis=0), table)
    model, filled = (fitted(user_features=each).fit(WARM) for each in (table, mean))
    scale = model.user_features_.scale / filled.user_features_.scale  # of the numbers that are there
    assert (scale > 1.0).all()
    held = tuple(part[COLD_USER & ~COLD_ITEM] for part in RATINGS)
    assert model.rmse(held) < 0.9 * MatrixCompletion(rank=8, certify=False).fit(WARM).rmse(held)
    partly = model.fold_in((), user_features=np.where(USERS[3] == 1.0, 1.0, np.nan))
    known, nothing = model.fold_in((), user_features=USERS[3]), model.fold_in(())
    assert np.abs(partly - known).max() < np.abs(nothing - known).max()
    model.save(tmp_path / "m")
    for again in (projfree.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(RATINGS[:2]), model.predict(RATINGS[:2]))
        assert np.isfinite(again.partial_fit(([3], [0], [5.0])).predict(([3], [1]))).all()


def test_every_form_may_have_missing_numbers():
    table = gaps(USERS, 0.3)
    whole = fitted(radius=30.0, max_sweeps=3, user_features=table).fit(WARM).predict(RATINGS[:2])
    frame = pd.DataFrame(table, columns=list("abcd"))
    nullable = frame.astype({"a": "Int64", "b": "Float64"})
    polars = pl.DataFrame({"user": np.arange(160), **{c: pl.Series(frame[c]).fill_nan(None) for c in "abcd"}})
    for form in (frame, nullable, polars):
        found = fitted(radius=30.0, max_sweeps=3, user_features=form).fit(WARM)
        np.testing.assert_allclose(found.predict(RATINGS[:2]), whole, rtol=1e-9)
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    forms = (sp.csr_array(table), sparse)  # a zero that is not stored is a zero, NaN is missing
    first, second = (fitted(radius=30.0, max_sweeps=3, user_features=form).fit(WARM) for form in forms)
    np.testing.assert_array_equal(first.predict(RATINGS[:2]), second.predict(RATINGS[:2]))


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
        ({1: [1.0, 2.0]}, TypeError, "`user_features` must hold real numbers, got dtype"),
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
    with pytest.raises(ValueError, match="`user_features` must have one row, that of the user, got 2 rows"):
        model.fold_in({3: 4.0}, user_features=USERS[:2])
    plain = MatrixCompletion(radius=5.0, certify=False).fit(WARM)
    with pytest.raises(ValueError, match="`user_features` must be left out, since the model was fitted without them"):
        plain.fold_in({3: 4.0}, user_features=[1.0])
