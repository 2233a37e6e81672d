"""Ctrl-C during `fit`: what was found is kept, and the exception goes on to whoever asked for the fit."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    LpBall,
    MatrixCompletion,
    Objective,
    PrimalAveraging,
    Squared,
    Status,
    as_data,
    path,
)

RNG = np.random.default_rng(0)
N = 60
X = RNG.standard_normal((N, 4))
Y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * RNG.standard_normal(N)
LABELS = np.where(Y > 0, "yes", "no")


@dataclass(frozen=True, repr=False)
class Pressed(PrimalAveraging):
    """Ctrl-C at an iteration of runs on so many rows over balls of at least some radius."""

    at: int = 3
    rows: int = 0
    least: float = 0.0

    def step(self, f, ball, state):
        if state.t + 1 >= self.at and self.rows in (0, f.structure.n) and ball.radius >= self.least:
            raise KeyboardInterrupt
        return super().step(f, ball, state)


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedRegressor(radius=1.0, solver=Pressed()),
        ConstrainedRegressor(radius=1.0, solver=Pressed(), loss="huber"),
        ConstrainedClassifier(radius=1.0, solver=Pressed()),
    ],
    ids=["regressor", "huber", "classifier"],
)
def test_fit_keeps_the_best_point_and_raises(model):
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, LABELS if hasattr(model, "decision_function") else Y)
    assert model.result_.status is Status.INTERRUPTED
    assert model.n_iter_ == 2
    assert model.result_.bound <= model.result_.value
    assert np.abs(model.coef_).sum() > 0.0
    assert model.radius_ == 1.0
    assert len(model.predict(X)) == N


def test_partial_fit_leaves_the_model_as_it_was():
    """Coefficients of rows that were not added would count them twice when the call is repeated."""
    model = ConstrainedRegressor(p=1.5, radius=1.0, tol=1e-3).partial_fit(X[:40], Y[:40])
    before = {name: np.copy(getattr(model, name)) for name in ("coef_", "intercept_")}
    with pytest.raises(KeyboardInterrupt):
        model.set_params(solver=Pressed()).partial_fit(X[40:], Y[40:])
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)
    model.set_params(solver="auto", tol=1e-10).partial_fit(X[40:], Y[40:])
    due = ConstrainedRegressor(p=1.5, radius=1.0, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.coef_, due.coef_, rtol=1e-6)


RADII = [0.25, 0.5, 1.0, 2.0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*that was tried:UserWarning")
@pytest.mark.parametrize("kind", [ConstrainedRegressorCV, ConstrainedClassifierCV])
def test_a_search_keeps_what_the_refit_has_found(kind):
    """The folds are done, and callbacks are called in the final fit alone."""

    def press(run):
        raise KeyboardInterrupt

    y = Y if kind is ConstrainedRegressorCV else LABELS
    settings = {"p": 1.5, "cv": 3, "solver": PrimalAveraging(), "tol": 1e-6, "max_iter": 50}
    due = kind(**settings, radii=[0.5, 5.0]).fit(X, y)
    model = kind(**settings, radii=[0.5, 5.0], callbacks=press)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    np.testing.assert_array_equal(model.scores_, due.scores_)
    assert model.best_score_ == due.best_score_
    assert model.result_.status is Status.INTERRUPTED
    assert (model.p_, model.radius_) == (1.5, due.radius_)
    np.testing.assert_array_equal(model.path_.radii, [0.5, 5.0])
    assert model.score(X, y) > 0.0


def test_a_search_that_was_interrupted_in_a_fold_is_not_fitted():
    model = ConstrainedRegressorCV(p=1.5, radii=RADII, cv=3, solver=Pressed(), tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_path_says_what_it_has():
    f = Objective(Squared(), as_data(X, Y), fit_intercept=True)
    with pytest.raises(KeyboardInterrupt, match=r"interrupted at the radius 2$") as caught:
        path(f, LpBall(1.5, 1.0), [4.0, 2.0, 0.5, 1.0], solver=Pressed(least=2.0), tol=1e-3)
    found = caught.value.found
    assert found.radii.tolist() == [2.0, 0.5, 1.0]  # in the order in which they were given
    assert [result.status.converged for result in found.results] == [False, True, True]
    assert pickle.loads(pickle.dumps(caught.value)).found.radii.tolist() == [2.0, 0.5, 1.0]


USERS, ITEMS = RNG.integers(0, 12, 150), RNG.integers(0, 15, 150)
RATINGS = np.column_stack([USERS, ITEMS, RNG.integers(1, 6, 150)])


def press_at(sweep):
    def press(seen):
        if seen.iteration == sweep:
            raise KeyboardInterrupt

    return press


def test_completion_keeps_the_last_sweep():
    model = MatrixCompletion(p=1.0, radius=5.0, rank=3, callbacks=(press_at(3),))
    with pytest.raises(KeyboardInterrupt):
        model.fit(RATINGS)
    assert model.n_iter_ == 3
    assert model.norm_ <= 5.0 * (1 + 1e-9)
    assert np.isnan(model.bound_)
    due = MatrixCompletion(p=1.0, radius=5.0, rank=3, max_sweeps=3).fit(RATINGS)
    np.testing.assert_allclose(model.factors_.left, due.factors_.left, rtol=1e-9, atol=1e-12)
    assert len(model.predict(RATINGS[:5, :2])) == 5


def test_completion_that_is_being_certified():
    model = MatrixCompletion(p=1.2, radius=5.0, rank=3, max_sweeps=2).fit(RATINGS)
    before = model.value_
    model.set_params(callbacks=[press_at(2)])
    with pytest.raises(KeyboardInterrupt):
        model.certify_to(1e-9)
    assert model.bound_ <= model.value_ <= before
