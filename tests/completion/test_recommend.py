"""Recommendations, similar users and items, new users, reports and small files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from completion.problems import entries

from projfree import MatrixCompletion
from projfree.completion import recommend

USERS, ITEMS, Y = RATINGS = entries(30, 20, 300, seed=3)


def quick(**settings):
    return MatrixCompletion(**{"rank": 4, "radius": 15.0, "certify": False, "max_sweeps": 40, **settings})


@pytest.fixture(scope="module")
def model():
    return quick().fit(RATINGS)


# ---------------------------------------------------------------- recommend


@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("scores", [50, 10_000])
def test_recommendations_by_rating_are_the_highest_predictions(model, exclude_seen, scores, monkeypatch):
    monkeypatch.setattr(recommend, "MAX_SCORES", scores)
    everybody, scores = model.recommend(n=5, exclude_seen=exclude_seen, by="rating")
    assert everybody.shape == scores.shape == (30, 5)
    for user, row, score in zip(model.user_ids_, everybody, scores, strict=True):
        u = model.decision_function((np.full(20, user), np.arange(20)))
        if exclude_seen:
            u[ITEMS[user == USERS]] = -np.inf
        best = np.argsort(-u, kind="stable")[:5]
        there = np.isfinite(u[best])
        np.testing.assert_array_equal(row[there], best[there])
        np.testing.assert_allclose(score, np.where(there, u[best], np.nan), rtol=1e-12)
        items, alone = model.recommend(user, 5, exclude_seen, by="rating")
        np.testing.assert_array_equal(items, row[there])
        np.testing.assert_allclose(alone, score[there], rtol=1e-12)


@pytest.mark.parametrize("implicit", [0.0, 1.0])
def test_likely_items_are_those_with_the_highest_scores(implicit):
    """The indicator of what was rated, or popularity, plus a little of the prediction."""
    model = quick(implicit=implicit).fit(RATINGS)
    f, counts, deviation = model.factors_, np.bincount(ITEMS, minlength=20), Y.std()
    u = np.reshape([model.decision_function(([i] * 20, np.arange(20))) for i in range(30)], (30, 20))
    if implicit:
        chance = f.left @ f.right_extra.T + f.left_extra @ f.right.T + recommend.RATING_WEIGHT * u / deviation
    else:
        chance = np.log(counts + 0.5) + recommend.RATING_WEIGHT * u / deviation
    chance[USERS, ITEMS] = -np.inf
    items, scores = model.recommend(n=4)
    for row, found, each in zip(chance, items, scores, strict=True):
        there = ~np.isnan(each)
        np.testing.assert_array_equal(found[there], np.argsort(-row, kind="stable")[:4][there])
    np.testing.assert_allclose(scores[0], u[0][items[0]], rtol=1e-12)


@pytest.mark.parametrize("implicit", [0.0, 1.0])
def test_lists_are_better_than_popularity(implicit):
    """Users of two groups rate what their group likes; some items are popular with both."""
    rng = np.random.default_rng(0)
    group, kind, often = rng.integers(0, 2, 300), rng.integers(0, 2, 150), rng.pareto(1.5, 150) + 0.3
    chance = np.clip(0.05 * often * np.where(group[:, None] == kind, 1.6, 0.4), 0.0, 0.9)
    rows, cols = np.nonzero(rng.random((300, 150)) < chance)
    y = 3.0 + (group[rows] == kind[cols]) + 0.5 * rng.standard_normal(len(rows))
    held = rng.random(len(y)) < 0.2
    model = MatrixCompletion(rank=6, implicit=implicit).fit((rows[~held], cols[~held], y[~held]))
    found = model.report((rows[held], cols[held], y[held]))
    assert found.precision >= found.popular_precision > 0.0
    assert found.recall >= found.popular_recall
    assert f"{found.precision:.4g}" in str(found)


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
    with pytest.raises(ValueError, match="`by` must be 'likely' or 'rating', got 'stars'"):
        model.recommend("bob", by="stars")
    nobody = model.recommend([], n=2)
    assert nobody[0].shape == nobody[1].shape == (0, 2)


def test_users_of_every_form(model):
    expected = model.recommend(np.array([3, 5]))[0]
    for users in ([3, 5], (3, 5), np.array([3.0, 5.0]), pd.Series([3, 5]), [np.int64(3), 5]):
        np.testing.assert_array_equal(model.recommend(users)[0], expected)
    for user in (3, np.int32(3), 3.0):
        np.testing.assert_array_equal(model.recommend(user)[0], expected[0])
    with pytest.raises(
        ValueError, match=r"^`user` must be in the fit, got 77; `fold_in` takes the ratings of a new user"
    ):
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
    with pytest.raises(ValueError, match=rf"^`{side[:-1]}` must be in the fit, got 99; "):
        similar(99)


def test_similarity_of_what_has_no_factors_is_zero():
    model = quick(radius=None, rank=3).fit((USERS, ITEMS, np.full(300, 4.0)))
    np.testing.assert_array_equal(model.similar_items(3)[1], 0.0)
    assert MatrixCompletion(rank=1).fit([(1, 2, 3.0)]).similar_items(2)[0].shape == (0,)


# ---------------------------------------------------------------- new users


@pytest.mark.parametrize("settings", [{}, {"p": 1.2}, {"loss": "huber"}, {"implicit": 1.0, "p": 1.2}], ids=str)
def test_folding_in_a_known_user_gives_its_own_row(settings):
    model = quick(**{"max_sweeps": 300, "radius": 8.0, **settings}).fit(RATINGS)
    mine = USERS == 5
    predicted = model.fold_in((ITEMS[mine], Y[mine]))
    np.testing.assert_allclose(predicted, model.predict((np.full(20, 5), np.arange(20))), atol=1e-3)
    for by in ("rating", "likely"):
        items, scores = model.fold_in((ITEMS[mine], Y[mine]), n=4, by=by)
        known = model.recommend(5, 4, by=by)
        np.testing.assert_array_equal(items, known[0])
        np.testing.assert_allclose(scores, known[1], atol=2e-3)
    assert len(model.fold_in((ITEMS[mine], Y[mine]), n=20, exclude_seen=False)[0]) == 20
    assert not set(model.fold_in((ITEMS[mine], Y[mine]), n=20)[0]) & set(ITEMS[mine])


def test_a_new_user_in_every_form(model):
    mine = {3: 5.0, 7: 1.0, 11: 2.0}
    items, values = list(mine), list(mine.values())
    expected = model.fold_in(mine)
    assert expected.shape == (20,)
    forms = [list(mine.items()), tuple(mine.items()), (items, values), (np.array(items), np.array(values))]
    forms += [np.column_stack([items, values]), pd.Series(mine)]
    forms += [[*mine.items(), (999, 5.0)], [(3, 1.0), *mine.items()]]  # never seen; replaced
    for form in forms:
        np.testing.assert_allclose(model.fold_in(form), expected, rtol=1e-9)
    f, alone = model.factors_, model.offset_model_
    np.testing.assert_allclose(model.fold_in([]), np.clip(f.base + alone.shift + alone.cols, *model.rating_range_))
    items, _ = model.fold_in({}, n=3)  # by popularity and offsets
    assert set(items) <= set(np.argsort(-np.bincount(ITEMS, minlength=20))[:10])
    for wrong in ([(1, 2, 3.0)], None, sp.coo_array(np.ones((1, 20))), pd.DataFrame({"item": items, "rating": values})):
        with pytest.raises(ValueError, match=r"^`ratings` must be what one user has rated: "):
            model.fold_in(wrong)
    with pytest.raises(TypeError, match=r"^`items` must be whole numbers, as in the fit, got text"):
        model.fold_in({"up": 3.0})


@pytest.mark.parametrize("ratings", [{999: 3.0}, [(999, 3.0), (1000, 1.0)], pd.Series({999: 3.0})], ids=["1", "2", "3"])
def test_a_new_user_who_has_rated_nothing_of_the_fit_is_refused(model, ratings):
    """The answer would be that for a user without ratings, as if nothing had been given."""
    with pytest.raises(ValueError, match=r"^`ratings` must hold an item of the fit, got \[999.*\]; for a user without"):
        model.fold_in(ratings)


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
    monkeypatch.setattr(recommend, "MAX_SCORES", 100)
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


def test_what_to_know_about_a_model_is_said():
    rng = np.random.default_rng(0)
    assert quick(certify=True, max_sweeps=40).fit(RATINGS).notes() == ()
    model = quick(certify=True, radius=40.0, rank=1, max_sweeps=1).fit(RATINGS)
    assert model.relative_gap_ > 0.1
    assert "certify_to(0.01)" in model.notes()[0]
    alone = quick(radius=None).fit((USERS, ITEMS, rng.standard_normal(30)[USERS] + 0.5 * rng.standard_normal(300)))
    assert any("the same for everyone" in note for note in alone.notes())
    zeros = quick().fit((USERS, ITEMS, (rng.random(300) < 0.2) * 1.0))
    assert any("implicit feedback" in note and "implicit=1.0" in note for note in zeros.notes())
    assert zeros.report((USERS, ITEMS, Y)).notes == zeros.notes()
