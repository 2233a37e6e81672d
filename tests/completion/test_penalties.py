"""The penalty that new users and further ratings get: that of the answer, whichever stage has found it."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries

import projfree
from projfree.estimators.completion import MatrixCompletion

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


@pytest.mark.parametrize(("p", "loss", "implicit"), [(1.0, "squared", 1.0), (1.0, "huber", 0.0), (1.3, "squared", 0.0)])
def test_a_convex_answer_has_the_penalty_of_sweeps_that_have_converged(p, loss, implicit):
    settings = {"p": p, "loss": loss, "implicit": implicit}
    swept, model = fitted(**settings, rank=40), fitted(**settings, max_sweeps=1).certify_to(1e-6)
    rtol = 1e-3 if p == 1.0 or not implicit else 1e-2  # the larger matrix has more components than the sweeps
    assert model.strength_ == pytest.approx(swept.strength_, rel=rtol)
    norm, sigma = model.norm_, model.factors_.sigma
    by_multiplier = 0.5 * 300 * model.result_.multiplier * (sigma[0] / norm) ** (p - 1.0)
    assert model.strength_ == pytest.approx(by_multiplier, rel=1e-4)
    assert_users_get_their_rows_back(model, 1e-3)


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
    model = fitted(np.full(300, 10.0), **settings, tol=1e-7)
    assert_users_get_their_rows_back(model)
    model.save(tmp_path / "m", ratings=ratings)
    given = {"user_features": FEATURES[2]} if "user_features" in settings else {}
    expected = model.fold_in({3: 5.0, 4: 2.0}, **given)
    np.testing.assert_array_equal(projfree.load(tmp_path / "m").fold_in({3: 5.0, 4: 2.0}, **given), expected)


@pytest.mark.parametrize("settings", [{}, {"implicit": 1.0}, {"user_features": FEATURES}])
def test_of_weights_only_ratios_count(settings):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    given = {"max_sweeps": 20, **settings}
    # A power of two changes no rounding, which sweeps that have not converged would amplify.
    one, other = (fitted(each, **given).predict(RATINGS[:2]) for each in (weight, 16.0 * weight))
    np.testing.assert_allclose(one, other, rtol=1e-12)
