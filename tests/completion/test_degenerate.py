"""Problems whose answer has no matrix, or no unique one."""

from __future__ import annotations

import numpy as np
import pytest
from completion.problems import entries

from projfree.estimators.completion import MatrixCompletion
from projfree.estimators.completion.convex_problem import ConvexProblem

RATINGS = entries(30, 20, 300, seed=3)
PAIRS = RATINGS[:2]
CONSTANT = (*PAIRS, np.full(300, 3.0))


@pytest.mark.parametrize("settings", [{}, {"radius": 1e-9}, {"n_models": 2}], ids=str)
def test_a_certified_answer_without_components_can_go_on(settings):
    model = MatrixCompletion(rank=3, **settings).fit(CONSTANT).certify_to(1e-6)
    assert len(model.factors_.sigma) == 0
    np.testing.assert_allclose(model.fold_in({3: 3.0, 4: 3.0}), 3.0, rtol=1e-6)
    model.partial_fit(([0, 31], [1, 1], [5.0, 4.0]))
    assert model.factors_.left.shape[1] >= 3  # begun anew
    assert np.isfinite(model.predict(PAIRS)).all()
    assert np.isfinite(model.relative_gap_)


@pytest.mark.parametrize("p", [1.0, 1.3])
def test_further_ratings_begin_with_balanced_factors(p, monkeypatch):
    """Their frequencies change the norm, and with it the singular values that the ridge of p > 1 is made of."""
    model, seen = MatrixCompletion(p=p, rank=3, radius=9.0, certify=False).fit(RATINGS), []
    within = ConvexProblem.within

    def noted(self, rank, radius, state, **given):
        w = state.x.w.low.scaled(self.unit.rows, self.unit.cols).toarray()
        seen.append((state.sigma, np.linalg.svd(w, compute_uv=False)[:3]))
        return within(self, rank, radius, state, **given)

    monkeypatch.setattr(ConvexProblem, "within", noted)
    strength = model.strength_
    model.partial_fit((np.full(20, 7), np.arange(20), np.full(20, 4.0)))
    ((sigma, exact),) = seen
    np.testing.assert_allclose(sigma, exact, rtol=1e-6)
    assert model.strength_ == pytest.approx(strength, rel=0.5)
