"""Recorded runs beyond tables: completion, other objectives, every family of sets, paths and estimators."""

from __future__ import annotations

import numpy as np
from golden import tables as t
from golden.cases import Case, fixed, searching, seen, summary
from golden.linear import CORRECTIVE, FISTA, FW, L2, L15, PA, TASKED, logistic, of, squares

from projfree import (
    BlackBox,
    Box,
    ConstrainedClassifier,
    ConstrainedRegressor,
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    MatrixCompletion,
    Objective,
    OracleSet,
    Perturbed,
    Positive,
    PrimalAveraging,
    QuadraticForm,
    SchattenBall,
    Simplex,
    Squared,
    Weighted,
    path,
)
from projfree.sets import WithUnpenalized

BETWEEN = np.linspace(0.5, 2.0, t.D)
SCHATTEN = SchattenBall(1.2, 4.0)


def completion(factored, loss=Squared(), intercept=False, **given):  # noqa: B008 - a loss is frozen
    return lambda: Objective(loss, t.entries(factored, signs=loss.labels, **given), fit_intercept=intercept)


def hyperbola(w):
    """A smooth convex function behind a call."""
    scale = np.array([3.0, 2.0, 1.0, 0.3])
    r = np.sqrt(1 + (scale * w - 1) ** 2)
    return np.sum(r), scale * (scale * w - 1) / r


def disc(g):
    """The oracle of the Euclidean unit ball."""
    return -g / max(np.linalg.norm(g), 1e-300)


def form():
    return QuadraticForm(t.X.T @ t.X / t.N, t.X.T @ t.Y / t.N, 0.5)


def perturbed(f):
    return lambda: Perturbed(f(), 1e-2, np.cos(np.arange(t.D)))


def called():
    return BlackBox(hyperbola, 4, smoothness=9.0, name="hyperbola", convex=True)


def along(f, ball, radii):
    """A path of radii: what is seen of each, one after the other."""

    def run():
        return {"path": [seen(result) for result in path(f(), ball, radii).results]}

    return Case(run, fixed=False)


def fit(model, X, y, is_fixed=False, **given):
    """What is seen of an estimator's result, and its coefficients."""

    def run():
        model.fit(X, y, **given)
        return seen(model.result_) | {"w": summary(model.coef_), "intercept": summary(model.intercept_)}

    return Case(run, is_fixed)


def complete(**settings):
    """A completion by sweeps, of which the predictions, the value and the bound are seen."""

    def run():
        rows, cols, y = t.ratings()
        y = np.where(y > 3.0, 1.0, -1.0) if "loss" in settings else y
        model = MatrixCompletion(p=1.2, max_sweeps=10, rank=5, **settings).fit((rows, cols, y))
        found = {"value": model.value_, "bound": model.bound_, "gap": model.value_ - model.bound_, "passes": 0.0}
        return found | {"w": summary(model.predict((rows, cols))), "intercept": None, "status": "", "iterations": 0}

    return Case(run, fixed=True)


COMPLETION = {
    "entries, squares, intercept, PA": fixed(completion(False, intercept=True), SCHATTEN, PA),
    "entries, logistic, FISTA": fixed(completion(False, Logistic(), weighted=True), SchattenBall(1.0, 4.0), FISTA, 8),
    "factored, squares, intercept, PA": fixed(completion(True, intercept=True), SCHATTEN, PA),
    "factored, huber, FW": fixed(completion(True, Huber(0.5), weighted=True), SchattenBall(1.0, 4.0), FW),
    "factored, squares, Schatten-2, plan": searching(completion(True), SchattenBall(2.0, 4.0)),
    "factored, logistic, corrective": searching(completion(True, Logistic()), SCHATTEN, CORRECTIVE, 1e-4),
}
OBJECTIVES = {
    "perturbed, PA": fixed(perturbed(logistic(intercept=True)), L15, PA),
    "perturbed, plan": searching(perturbed(squares()), L15),
    "black box, PA": fixed(called, L15, PA),
    "black box, plan": searching(called, L2, tol=1e-5),
    "form, PA": fixed(form, L15, PA),
    "form, plan": searching(form, LpBall(1.0, 1.0)),
    "path, squares": along(squares(intercept=True), L15, [0.5, 1.0, 2.0]),
    "path, logistic": along(logistic(intercept=True), LpBall(1.0, 1.0), [0.3, 0.9]),
}
SETS = {
    "l_1, FW": fixed(logistic(), LpBall(1.0, 1.2), FW),
    "l_3, PA": fixed(squares(), LpBall(3.0, 1.2), PA),
    "l_inf, FISTA": fixed(logistic(), LpBall(np.inf, 0.4), FISTA),
    "groups of a vector, PA": fixed(logistic(), GroupBall(2.0, 1.0, 1.0, groups=(0, 0, 1, 1, 2, 2, 2)), PA),
    "rows of a matrix, l_{2,1}, FISTA": fixed(of(Squared(), t.X, t.MANY), GroupBall(2.0, 1.0, 2.0), FISTA),
    "Schatten-1, plan": searching(of(Squared(), t.X, t.MANY), SchattenBall(1.0, 2.0)),
    "tasks, Schatten, FW": fixed(TASKED, SchattenBall(1.5, 2.0), FW),
    "simplex, PA": fixed(logistic(weight=t.WEIGHT, intercept=True), Simplex(1.0), PA),
    "box, FW": fixed(logistic(), Box(-BETWEEN / 4, 0.3), FW),
    "weighted, PA": fixed(squares(intercept=True), Weighted(L15, BETWEEN), PA),
    "weighted, plan": searching(logistic(), Weighted(LpBall(2.0, 1.0), BETWEEN)),
    "positive, plan": searching(squares(), Positive(L15)),
    "free columns, PA": fixed(logistic(), WithUnpenalized(L15, (0, 3), 20.0), PA),
    "free columns, plan": searching(logistic(), WithUnpenalized(L15, (0, 3), 20.0)),
    # The user's oracle may be asked less often than it was: bounds and passes may move, within limits.
    "user's oracle, PA": searching(logistic(), OracleSet(disc, np.linalg.norm, diameter=2.0), PA, 1e-3),
}
FITS = {
    "regressor, l_2": fit(ConstrainedRegressor(p=2, radius=1.2), t.X, t.Y),
    "regressor, l_1, standardised": fit(ConstrainedRegressor(p=1, radius=2.0, standardize=True), t.SHIFTED, t.Y),
    "regressor, huber, outputs": fit(
        ConstrainedRegressor("huber", norm="schatten", p=1.5, radius=1.5), t.X, t.MANY, sample_weight=t.WEIGHT
    ),
    "regressor, tasks": fit(
        ConstrainedRegressor(norm="group", p=2, q=1.5, radius=1.5, task=t.D), np.column_stack([t.X, t.TASK]), t.Y
    ),
    "regressor, free columns": fit(ConstrainedRegressor(radius=1.0, free=[1, 2]), t.X, t.Y),
    "classifier, l_2": fit(ConstrainedClassifier(p=2, radius=1.5), t.X, t.SIGNS),
    "classifier, l_1.5, classes": fit(
        ConstrainedClassifier(p=1.5, radius=2.0, class_weight="balanced"), t.X, t.CLASSES, sample_weight=t.WEIGHT
    ),
    "classifier, positive, sparse": fit(ConstrainedClassifier(p=1.5, radius=1.0, positive=True), t.HOLES, t.SIGNS),
    "classifier, PA": fit(
        ConstrainedClassifier(p=1.5, radius=1.0, solver=PrimalAveraging(), tol=1e-12, max_iter=25),
        t.X,
        t.SIGNS,
        is_fixed=True,
    ),
    "completion": complete(),
    "completion, logistic": complete(radius=5.0, loss="logistic"),
}
