"""The penalty that new users and further ratings get: that of the answer, whichever stage has found it."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries

import projfree
from projfree import persist
from projfree.estimators.completion import MatrixCompletion, certifying, growth

RATINGS = entries(30, 20, 300, seed=3)


def fitted(weight=None, **settings):
    given = {"rank": 20, "radius": 12.0, "clip": False, "certify": False, "max_sweeps": 400, **settings}
    return MatrixCompletion(**given).fit(RATINGS, sample_weight=weight)


def assert_users_get_their_rows_back(model, rtol=1e-4):
    every = np.arange(20)
    for user in range(0, 30, 5):
        own = RATINGS[0] == user
        features = None if model.user_features_ is None else model.user_features[user]
        folded = model.fold_in((RATINGS[1][own], RATINGS[2][own]), user_features=features)
        np.testing.assert_allclose(folded, model.predict((np.full(20, user), every)), rtol=0.0, atol=rtol)


@pytest.mark.parametrize("implicit", [0.0, 1.0])
@pytest.mark.parametrize(("p", "loss"), [(1.0, "squared"), (1.0, "huber"), (1.3, "squared")])
def test_a_convex_answer_has_the_penalty_of_sweeps_that_have_converged(p, loss, implicit):
    settings = {"p": p, "loss": loss, "implicit": implicit}
    swept, model = fitted(**settings, rank=40), fitted(**settings, max_sweeps=1).certify_to(1e-6)
    rtol = 1e-3 if p == 1.0 or not implicit else 1e-2  # the larger matrix has more components than the sweeps
    assert model.strength_ == pytest.approx(swept.strength_, rel=rtol)
    norm, sigma = model.norm_, model.factors_.sigma
    by_multiplier = 0.5 * 300 * model.result_.multiplier * (sigma[0] / norm) ** (p - 1.0)
    assert model.strength_ == pytest.approx(by_multiplier, rel=1e-4)
    assert_users_get_their_rows_back(model, 1e-3)


def test_an_answer_of_more_components_has_its_own_penalty(monkeypatch):
    swept = fitted()
    monkeypatch.setattr(certifying, "worth_growing", lambda problem: True)
    monkeypatch.setattr(growth, "SWEEPS", 200)
    model = fitted(rank=2, max_sweeps=1).certify_to(1e-3)
    assert model.result_ is None  # no convex solver was needed
    assert model.strength_ == pytest.approx(swept.strength_, rel=1e-2)


def test_a_ball_wider_than_the_answer_leaves_a_positive_penalty():
    with pytest.warns(UserWarning, match="larger than these ratings need"):
        model = fitted(radius=1e4, rank=3, max_sweeps=50)
    problem = model._problem(model.ratings_)
    turned = model.factors_.stretched(1.0 + 1e-6)  # beyond the minimum, where the gradient points inwards
    assert 0.0 < problem.strength_of(turned) < 1e-6 * problem.strongest()
    assert problem.strength_of(model.factors_.stretched(0.0)) == problem.strongest()


FEATURES = np.random.default_rng(1).standard_normal((30, 3))


@pytest.mark.parametrize("settings", [{"implicit": 1.0}, {"user_features": FEATURES}], ids=["implicit", "features"])
@pytest.mark.parametrize("ratings", [True, False])
def test_with_sample_weights_users_get_their_rows_back(settings, ratings, tmp_path):
    """The squares of what was rated, and those of features, have their weight over the sum of the sample weights."""
    model = fitted(np.full(300, 10.0), **settings, tol=1e-7)
    assert model.total_weight_ == 3000.0
    assert_users_get_their_rows_back(model)
    model.save(tmp_path / "m", ratings=ratings)
    given = {"user_features": FEATURES[2]} if "user_features" in settings else {}
    expected = model.fold_in({3: 5.0, 4: 2.0}, **given)
    np.testing.assert_array_equal(projfree.load(tmp_path / "m").fold_in({3: 5.0, 4: 2.0}, **given), expected)
    tree = persist.load(tmp_path / "m", kind="model")
    del tree["fitted"]["total_weight_"]  # as an earlier version wrote it
    persist.save(tmp_path / "m", tree, kind="model")
    assert projfree.load(tmp_path / "m").total_weight_ == (3000.0 if ratings else 300)


def test_weights_of_ratings_held_out_do_not_count(tmp_path):
    model = fitted(np.arange(300) + 1.0, early_stopping=True, max_sweeps=2)
    assert model.total_weight_ == pytest.approx(float(np.sum((np.arange(300) + 1.0)[~model.held_out_])))
    model.save(tmp_path / "m")
    tree = persist.load(tmp_path / "m", kind="model")
    del tree["fitted"]["total_weight_"]
    persist.save(tmp_path / "m", tree, kind="model")
    assert projfree.load(tmp_path / "m").total_weight_ == pytest.approx(model.total_weight_)


def test_weights_ten_times_as_large_change_the_part_of_features_alone():
    plain, larger = (fitted(weight, max_sweeps=20).predict(RATINGS[:2]) for weight in (None, np.full(300, 10.0)))
    np.testing.assert_allclose(plain, larger, rtol=1e-9)
    given = [(None, 0.1), (np.full(300, 10.0), 1.0)]
    tenth, one = (fitted(weight, implicit=w, max_sweeps=20).predict(RATINGS[:2]) for weight, w in given)
    np.testing.assert_allclose(tenth, one, rtol=1e-6)
