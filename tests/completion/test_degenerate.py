"""Problems whose answer has no matrix, or no unique one."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries

from projfree.algebra import LowRank
from projfree.estimators.completion import MatrixCompletion
from projfree.estimators.completion.factors import Factors

RATINGS = entries(30, 20, 300, seed=3)
PAIRS = RATINGS[:2]
CONSTANT = (*PAIRS, np.full(300, 3.0))


def _empty(model):
    """The point without a matrix, as the convex solver gives it, and what it is a point of."""
    problem, offsets = model._problem(model.ratings_), model.factors_
    f = problem.f
    return f, problem.ball(model.radius_), LowRank(f.shape, ()), offsets.point(f).intercept


@pytest.mark.parametrize("settings", [{}, {"radius": 1e-9}], ids=str)
def test_a_certified_answer_without_components_can_go_on(settings):
    model = MatrixCompletion(rank=3, **settings).fit(CONSTANT)
    model.factors_ = Factors.of_point(*_empty(model))
    assert len(model.factors_.sigma) == 0
    model.certify_to(1e-6)
    np.testing.assert_allclose(model.fold_in({3: 3.0, 4: 3.0}), 3.0, rtol=1e-6)
    model.partial_fit(([0, 31], [1, 1], [5.0, 4.0]))
    assert model.factors_.left.shape[1] >= 3  # begun anew
    assert np.isfinite(model.predict(PAIRS)).all()
    assert np.isfinite(model.relative_gap_)


TABLE = np.random.default_rng(2).standard_normal((30, 3))
MISSING = np.where(np.random.default_rng(3).random((30, 3)) < 0.2, np.nan, TABLE)


@pytest.mark.parametrize(
    "settings",
    [{"implicit": 1.0}, {"user_features": TABLE}, {"implicit": 1.0, "user_features": MISSING}],
    ids=["implicit", "features", "both"],
)
@pytest.mark.parametrize(("m", "n"), [(7, 5), (30, 20)])
def test_constant_ratings_in_a_wide_ball_have_regressions(m, n, settings):
    """The ratings leave no penalty, and the squares of what was rated have an exact factorisation."""
    rows, cols = np.divmod(np.arange(m * n), n)
    if "user_features" in settings:
        settings = {**settings, "user_features": settings["user_features"][:m]}
    radius = 4.0 * np.sqrt(m * n)
    model = MatrixCompletion(radius=radius, rank=5, max_sweeps=200, certify=False, **settings)
    with pytest.warns(UserWarning, match="larger than these ratings need"):
        model.fit((rows, cols, np.full(m * n, 3.0)))
    np.testing.assert_allclose(model.predict((rows, cols)), 3.0, rtol=1e-6)
    assert np.isfinite(model.factors_.below).all()
    assert model._problem(model.ratings_).f(model.factors_.point(model._problem(model.ratings_).f)) < 0.01
