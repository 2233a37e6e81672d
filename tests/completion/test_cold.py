"""Users and items without ratings: no worse than offsets alone, better with features, the same in every call."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import projfree
from projfree import MatrixCompletion

SHAPE = (150, 70)


def shared_taste(seed):
    """Everybody likes the same items, more or less, so that the mean of the matrix over users is far from zero.

    The first 20 users and the last 10 items are to be held out. Users rate rather what they like.
    """
    rng = np.random.default_rng(seed)
    rating_weight, quality = 1.0 + 0.6 * rng.standard_normal(SHAPE[0]), rng.standard_normal(SHAPE[1])
    liked = np.outer(rating_weight, quality)
    rows, cols = np.nonzero(rng.random(SHAPE) < 0.15 / (1.0 + np.exp(-liked)) + 0.03)
    y = 3.0 + liked[rows, cols] + 0.5 * rng.standard_normal(len(rows))
    cold_user, cold_item = rows < 20, cols >= 60
    parts = [~cold_user & ~cold_item, cold_user & ~cold_item, ~cold_user & cold_item, cold_user & cold_item]
    return [(rows[at], cols[at], y[at]) for at in parts], np.column_stack(
        [rating_weight, rng.standard_normal(SHAPE[0])]
    )


def biases(train, ridge=3.0):
    """The best offsets by their normal equations, as a function of pairs."""
    rows, cols, y = train
    m, n = SHAPE
    A = np.zeros((len(y), 1 + m + n))
    A[:, 0] = A[np.arange(len(y)), 1 + rows] = A[np.arange(len(y)), 1 + m + cols] = 1.0
    b = np.linalg.solve(A.T @ A + ridge * np.eye(A.shape[1]), A.T @ (y - y.mean()))
    return lambda rows, cols: y.mean() + b[0] + b[1 + rows] + b[1 + m + cols]


def root(errors):
    return float(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("settings", [{"radius": 60.0}, {"implicit": 1.0}], ids=str)
def test_cold_pairs_are_no_worse_than_biases(seed, settings):
    (train, *held), _ = shared_taste(seed)
    model, offsets = MatrixCompletion(rank=6, certify=False, **settings).fit(train), biases(train)
    for rows, cols, y in held:
        assert root(model.decision_function((rows, cols)) - y) <= 1.002 * root(offsets(rows, cols) - y)


def test_features_help_where_they_say_something_and_hardly_hurt_where_not():
    found = []
    for seed in range(4):
        (train, held, *_), features = shared_taste(seed)
        tables = (None, features, np.random.default_rng(seed).standard_normal((SHAPE[0], 2)))
        models = (MatrixCompletion(rank=6, certify=False, user_features=given).fit(train) for given in tables)
        found.append([model.rmse(held) for model in models])
    plain, told, noise = np.mean(found, axis=0)
    assert told < 0.95 * plain
    assert noise < 1.02 * plain


@pytest.fixture(scope="module")
def known():
    """A model of whose users and items some have no ratings, and features of users."""
    (train, *_), features = shared_taste(0)
    table = sp.coo_array((train[2], train[:2]), shape=SHAPE)
    return MatrixCompletion(rank=4, certify=False, user_features=features).fit(table), features


def test_every_call_says_the_same(known, tmp_path):
    model, features = known
    every = tuple(part.ravel() for part in np.indices(SHAPE))
    whole = model.decision_function(every).reshape(SHAPE)
    users = [3, 50, 7, 140]  # without and with ratings
    items, scores = model.recommend(users, 70, exclude_seen=False, by="rating")
    np.testing.assert_allclose(scores, np.take_along_axis(whole[users], items, axis=1), rtol=1e-10)
    np.testing.assert_allclose(
        model.fold_in((), user_features=features[3]), np.clip(whole[3], *model.rating_range_), rtol=1e-10
    )
    nobody = model.decision_function(([999] * 70, np.arange(70)))
    np.testing.assert_allclose(model.fold_in(()), np.clip(nobody, *model.rating_range_), rtol=1e-10)
    np.testing.assert_allclose(nobody[60:], model.decision_function([(999, 999)])[0], rtol=1e-10)
    model.save(tmp_path / "m")
    np.testing.assert_allclose(projfree.load(tmp_path / "m").decision_function(every), whole.ravel(), rtol=1e-12)


def test_a_first_rating_later_ends_the_cold(known):
    (train, held, *_), features = shared_taste(0)
    model = MatrixCompletion(rank=4, certify=False, user_features=features).fit(train)
    mine = held[0] == 3
    before = model.predict((held[0][mine], held[1][mine]))
    model.partial_fit(tuple(part[mine] for part in held))
    assert model.offset_model_.row_counts[3] == mine.sum()
    f = model.factors_
    expected = f.margin(held[0][mine], held[1][mine])
    np.testing.assert_allclose(model.decision_function((held[0][mine], held[1][mine])), expected, rtol=1e-12)
    assert root(model.predict((held[0][mine], held[1][mine])) - held[2][mine]) < root(before - held[2][mine])
