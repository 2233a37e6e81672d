"""Callbacks of scikit-learn."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from projfree import ConstrainedClassifier, ConstrainedRegressor, ConstrainedRegressorCV, FrankWolfe

callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks yet")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    return X, X @ [1.0, 2.0, 0.0, -1.0] + 0.1 * rng.standard_normal(60)


class Watch:
    """Counts what it is told, and asks to stop after some iterations."""

    def __init__(self, stop=10**9):
        self.stop, self.told, self.scores = stop, [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.told.append(context.task_name)
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X, y))
        return self.told.count("iteration") >= self.stop


@pytest.mark.parametrize("model", [ConstrainedRegressor, ConstrainedClassifier])
def test_every_iteration_is_told(table, model):
    X, y = table
    y = y if model is ConstrainedRegressor else y > 0
    watch = Watch()
    fitted = model(solver=FrankWolfe(), tol=1e-3, radius=1.5).set_callbacks(watch).fit(X, y)
    assert watch.told == ["setup", *["iteration"] * fitted.n_iter_, "fit", "teardown"]
    assert watch.scores[-1] == pytest.approx(fitted.score(X, y), abs=0.05)
    assert watch.scores[-1] > watch.scores[0] - 1e-9


def test_a_callback_may_stop_the_fit(table):
    X, y = table
    model = ConstrainedRegressor(radius=1.0, solver=FrankWolfe(), tol=1e-12).set_callbacks(Watch(stop=3)).fit(X, y)
    assert model.n_iter_ == 3
    assert model.result_.status.name == "CALLBACK"


def test_progress_bar_and_searches(table, capsys):
    X, y = table
    ConstrainedRegressor().set_callbacks(callback.ProgressBar()).fit(X, y)
    watch = Watch()
    ConstrainedRegressorCV(radii=3, cv=2).set_callbacks(watch).fit(X, y)
    assert watch.told == ["setup", "fold", "fold", "refit", "fit", "teardown"]
    GridSearchCV(ConstrainedRegressor(), {"radius": [1, 2]}, cv=2).set_callbacks(callback.ProgressBar()).fit(X, y)
