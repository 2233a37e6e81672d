"""Recommendations, similar users and items, new users, reports and small files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from completion.problems import entries

from projfree import load
from projfree.estimators.completion import MatrixCompletion, ranking

USERS, ITEMS, Y = RATINGS = entries(30, 20, 300, seed=3)


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 15.0, "certify": False, "max_sweeps": 40, **settings})


@pytest.fixture(scope="module")
def model():
    return quick().fit(RATINGS)


# ---------------------------------------------------------------- the best of many


# ---------------------------------------------------------------- recommend


@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("block", [50, 1 << 22])
def test_recommendations_are_the_highest_predictions(model, exclude_seen, block, monkeypatch):
    monkeypatch.setattr(ranking, "BLOCK", block)
    everybody, scores = model.recommend(model.user_ids_, 5, exclude_seen)
    assert everybody.shape == scores.shape == (30, 5)
    for user, row, score in zip(model.user_ids_, everybody, scores, strict=True):
        u = model.decision_function((np.full(20, user), np.arange(20)))
        if exclude_seen:
            u[ITEMS[user == USERS]] = -np.inf
        best = np.argsort(-u, kind="stable")[:5]
        there = np.isfinite(u[best])
        np.testing.assert_array_equal(row, best)
        np.testing.assert_allclose(score, np.where(there, u[best], np.nan), rtol=1e-12)
        items, alone = model.recommend(user, 5, exclude_seen)
        np.testing.assert_array_equal(items, row[there])
        np.testing.assert_allclose(alone, score[there], rtol=1e-12)


def test_nobody_is_told_what_is_known_already():
    seen = [("ann", "up", 5.0), ("ann", "heat", 3.0), ("ann", "big", 2.0), ("bob", "up", 4.0)]
    model = MatrixCompletion(rank=1).fit(seen)
    items, scores = model.recommend("ann")
    assert len(items) == len(scores) == 0
    items, scores = model.recommend(["ann", "bob"], n=10)
    assert items.shape == scores.shape == (2, 3)
    assert np.isnan(scores[0]).all()
    assert np.isnan(scores[1]).tolist() == [False, False, True]
    assert set(items[1, :2]) == {"big", "heat"}
    nobody = model.recommend([], n=2)
    assert nobody[0].shape == nobody[1].shape == (0, 2)


def test_users_of_every_form(model):
    expected = model.recommend(np.array([3, 5]))[0]
    for users in ([3, 5], (3, 5), np.array([3.0, 5.0]), pd.Series([3, 5]), [np.int64(3), 5]):
        np.testing.assert_array_equal(model.recommend(users)[0], expected)
    for user in (3, np.int32(3), 3.0):
        np.testing.assert_array_equal(model.recommend(user)[0], expected[0])
    words = r"^`user` must be in the fit, got 77; for a new one use `fold_in` with some ratings\.$"
    with pytest.raises(ValueError, match=words):
        model.recommend([3, 77])
    with pytest.raises(ValueError, match=r"^`user` must be a vector of labels, got shape \(2, 2\)\.$"):
        model.recommend([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"^`recommend\(n=...\)` must be a whole number of at least 1, got 0"):
        model.recommend(3, n=0)


# ---------------------------------------------------------------- what is alike


@pytest.mark.parametrize("side", ["items", "users"])
def test_similarity_is_the_cosine_in_the_completed_matrix(model, side):
    f = model.factors_
    matrix = f.left @ f.right.T if side == "users" else f.right @ f.left.T
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    expected = unit @ unit.T
    np.fill_diagonal(expected, -np.inf)
    similar = getattr(model, f"similar_{side}")
    ids, cosines = similar([2, 7], n=6)
    for k, place in enumerate((2, 7)):
        order = np.argsort(-expected[place])[:6]
        np.testing.assert_array_equal(ids[k], order)
        np.testing.assert_allclose(cosines[k], expected[place][order], rtol=1e-9)
        one, alone = similar(place, n=6)
        np.testing.assert_array_equal(one, order)
        np.testing.assert_allclose(alone, cosines[k])
    everyone, _ = similar(2, n=1000)
    assert len(everyone) == len(matrix) - 1
    assert 2 not in everyone
    with pytest.raises(ValueError, match=rf"^`{side[:-1]}` must be in the fit, got 99; fit it with some ratings first"):
        similar(99)


def test_similarity_of_what_has_no_factors_is_zero():
    model = quick(radius=None, rank=3).fit((USERS, ITEMS, np.full(300, 4.0)))
    np.testing.assert_array_equal(model.similar_items(3)[1], 0.0)
    assert MatrixCompletion(rank=1).fit([(1, 2, 3.0)]).similar_items(2)[0].shape == (0,)


# ---------------------------------------------------------------- new users


@pytest.mark.parametrize(
    "settings", [{}, {"p": 1.2}, {"weight_power": 0.0}, {"loss": "huber"}, {"implicit": 1.0, "p": 1.2}], ids=str
)
def test_folding_in_a_known_user_gives_its_own_row(settings):
    model = quick(**{"max_sweeps": 300, "radius": 8.0, **settings}).fit(RATINGS)
    mine = USERS == 5
    users, rows = model.transform((USERS[mine], ITEMS[mine], Y[mine]))
    assert users.tolist() == [5]
    f = model.factors_
    expected = f.rows[5] + f.right @ f.left[5]
    np.testing.assert_allclose(rows[0, 0] + f.right @ rows[0, 1:], expected, atol=1e-3)
    predicted = model.fold_in((ITEMS[mine], Y[mine]))
    np.testing.assert_allclose(predicted, model.predict((np.full(20, 5), np.arange(20))), atol=1e-3)


def test_a_new_user_in_every_form(model):
    mine = {3: 5.0, 7: 1.0, 11: 2.0}
    items, values = list(mine), list(mine.values())
    expected = model.fold_in(mine)
    assert expected.shape == (20,)
    forms = [list(mine.items()), tuple(mine.items()), (items, values), (np.array(items), np.array(values))]
    forms += [np.column_stack([items, values]), pd.DataFrame({"item": items, "rating": values})]
    forms += [pd.Series(mine)]
    forms += [[*mine.items(), (999, 5.0)], [(3, 1.0), *mine.items()]]  # never seen; replaced
    for form in forms:
        np.testing.assert_allclose(model.fold_in(form), expected, rtol=1e-9)
    f, alone = model.factors_, model.offset_model_
    np.testing.assert_allclose(model.fold_in([]), np.clip(f.base + alone.shift + alone.cols, *model.rating_range_))
    users, rows = model.transform([("new", item, value) for item, value in mine.items()])
    assert users.tolist() == ["new"]
    by_hand = f.base + f.shift + rows[0, 0] + f.cols + f.right @ rows[0, 1:]
    np.testing.assert_allclose(np.clip(by_hand, *model.rating_range_), expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"^`ratings` must be what one user has rated: .*, got 3 columns\.$"):
        model.fold_in([(1, 2, 3.0)])
    for wrong in ((3, 5.0), None, sp.coo_array(np.ones((1, 20)))):
        with pytest.raises(ValueError, match=r"^`ratings` must be what one user has rated: "):
            model.fold_in(wrong)
    with pytest.raises(TypeError, match=r"^`items` must be whole numbers, as in the fit, got text"):
        model.fold_in({"up": 3.0})


@pytest.mark.parametrize("ratings", [{999: 3.0}, [(999, 3.0), (1000, 1.0)], pd.Series({999: 3.0})], ids=["1", "2", "3"])
def test_a_new_user_who_has_rated_nothing_of_the_fit_is_refused(model, ratings):
    """The answer would be that for a user without ratings, as if nothing had been given."""
    with pytest.raises(ValueError, match=r"^`ratings` must hold an item of the fit, got \[999.*\]; for a user without"):
        model.fold_in(ratings)


def test_a_later_rating_of_a_new_user_replaces_an_earlier_one(model):
    once = model.transform([(1, 3, 5.0), (1, 4, 2.0), (2, 3, 1.0)])[1]
    for first in ([(1, 3, 1.0)], [(1, 3, 1.0), (1, 3, 2.0)]):
        twice = model.transform([*first, (1, 3, 5.0), (1, 4, 2.0), (2, 3, 1.0)])[1]
        np.testing.assert_allclose(twice, once, rtol=1e-9)
    assert (model.transform([(1, 3, 1.0), (1, 4, 2.0)])[1][0] != once[0]).any()


def test_many_new_users_at_once_are_as_one_by_one(model):
    users, rows = model.transform((USERS, ITEMS, Y))
    for user in (3, 17):
        mine = user == USERS
        alone = model.transform((USERS[mine], ITEMS[mine], Y[mine]))[1][0]
        np.testing.assert_allclose(rows[users == user][0], alone, rtol=1e-6, atol=1e-8)


def test_new_users_who_like(model):
    likes = quick(loss="logistic", radius=None).fit((USERS, ITEMS, (Y > 3.0).astype(int)))
    assert set(likes.fold_in({3: 1, 7: 0})) <= {0.0, 1.0}


# ---------------------------------------------------------------- reports


def brute_report(model, given, k, threshold):
    precision, recall, told, known = [], [], set(), set(model.user_ids_)
    for user in sorted({u for u, _, _ in given} & known):
        liked = {i for u, i, r in given if u == user and r >= threshold}
        if liked:
            items = model.recommend(user, k)[0].tolist()
            told |= set(items)
            precision.append(len(liked & set(items)) / max(len(items), 1))
            recall.append(len(liked & set(items)) / len(liked))
    return np.mean(precision), np.mean(recall), len(told) / len(model.item_ids_), len(precision)


@pytest.mark.parametrize("k", [1, 5, 100])
def test_the_report_counts_what_is_recommended(k, monkeypatch):
    monkeypatch.setattr(ranking, "BLOCK", 100)
    order = np.random.default_rng(1).permutation(300)
    train, test = order[60:], order[:60]
    model = quick().fit((USERS[train], ITEMS[train], Y[train]))
    held = [(int(u), int(i), float(r)) for u, i, r in zip(USERS[test], ITEMS[test], Y[test], strict=True)]
    held += [(999, 3, 5.0), (4, 888, 9.0)]  # a user and an item never seen
    found = model.report(held, k=k, threshold=3.0)
    precision, recall, coverage, users = brute_report(model, held, k, 3.0)
    assert (found.precision, found.recall, found.coverage) == pytest.approx((precision, recall, coverage))
    assert (found.n_users, found.n_ratings, found.k, found.threshold) == (users, 62, k, 3.0)
    assert found.rmse == pytest.approx(model.rmse(held))
    errors = model.predict([pair[:2] for pair in held]) - [r for _, _, r in held]
    assert found.mae == pytest.approx(np.abs(errors).mean())
    assert found.recall > 0.0
    assert model.report(held).threshold == pytest.approx(np.mean([r for _, _, r in held]))


def test_a_report_without_anybody_who_likes_anything(model):
    found = model.report([(999, 3, 5.0)])
    assert np.isnan([found.precision, found.recall]).all()
    assert (found.coverage, found.n_users) == (0.0, 0)
    assert model.report([(4, 3, 1.0), (4, 3, 5.0)], threshold=4.0).n_users == 1


def test_scores_with_weights(model):
    from sklearn.metrics import r2_score

    weight = np.arange(300) % 3
    expected = r2_score(Y, model.predict((USERS, ITEMS)), sample_weight=weight)
    assert model.score((USERS, ITEMS), Y, sample_weight=weight) == expected
    assert model.score(RATINGS) == r2_score(Y, model.predict((USERS, ITEMS)))


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_model_saved_without_its_ratings(tmp_path, early_stopping):
    model = quick(early_stopping=early_stopping).fit(RATINGS)
    model.save(tmp_path / "all")
    model.save(tmp_path / "small", ratings=False)
    sizes = [sum(file.stat().st_size for file in (tmp_path / name).rglob("*")) for name in ("all", "small")]
    assert sizes[1] < sizes[0] - 300 * 16
    small, whole = load(tmp_path / "small"), load(tmp_path / "all")
    assert hasattr(model, "ratings_")
    np.testing.assert_array_equal(small.predict((USERS, ITEMS)), model.predict((USERS, ITEMS)))
    np.testing.assert_array_equal(small.fold_in({3: 5.0}), model.fold_in({3: 5.0}))
    np.testing.assert_array_equal(small.similar_items(3)[0], model.similar_items(3)[0])
    np.testing.assert_array_equal(small.recommend(3, 4, False)[0], model.recommend(3, 4, False)[0])
    np.testing.assert_array_equal(whole.recommend(3)[0], model.recommend(3)[0])
    why = r" needs the ratings, which were left out when the model was saved; "
    for call, way in [
        (lambda: small.recommend(3), r"^`recommend`" + why + r"use `exclude_seen=False`\.$"),
        (lambda: small.partial_fit([(1, 2, 3.0)]), r"^`partial_fit`" + why + r"save it with `ratings=True`\.$"),
        (lambda: small.certify_to(0.1), r"^`certify_to`" + why),
        (lambda: small.report(RATINGS), r"^`report`" + why + r"use `rmse`\.$"),
    ]:
        with pytest.raises(ValueError, match=way):
            call()
    small.fit(RATINGS)
    assert len(small.recommend(3)[0])
