"""Recorded runs on tables: every loss, storage and solver."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from golden import tables as t
from golden.cases import Case, fixed, searching, seen

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BacktrackingGradient,
    BiWeight,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    Direct,
    ExactLineSearch,
    FrankWolfe,
    Gamma,
    GroupBall,
    Growing,
    Huber,
    InverseSqrt,
    LastGradient,
    LogAdaptive,
    Logistic,
    LpBall,
    Minibatch,
    Objective,
    OpenLoop,
    PairwiseFrankWolfe,
    Poisson,
    PrimalAveraging,
    ProjectedGradient,
    Quantile,
    SchattenBall,
    ShortStep,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
    as_data,
    minimize,
)
from projfree.data.sparse import TaskData

PA, FW, PG, FISTA = PrimalAveraging(), FrankWolfe(OpenLoop()), ProjectedGradient(), AcceleratedProjectedGradient()
CORRECTIVE = CorrectivePrimalAveraging()
L15, L2, ROWS = LpBall(1.5, 1.2), LpBall(2.0, 1.5), GroupBall(2.0, 1.5, 1.5)


def of(loss, X, y, weight=None, intercept=False, **settings):
    """An objective that is built when it is asked for."""
    return lambda: Objective(loss, as_data(X, y, weight, **settings), fit_intercept=intercept)


def squares(**given):
    return of(Squared(), t.X, t.Y + 3.0, **given)


def logistic(**given):
    return of(Logistic(), t.X, t.SIGNS, **given)


def tasks(loss, y):
    return lambda: Objective(loss, TaskData(t.X, y, t.TASK, t.WEIGHT))


def from_file(loss, y, solver, intercept, max_iter=25):
    """A run on rows that are read chunk by chunk from a file of NumPy."""

    def run():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            np.save(path, np.tile(t.X, (2000, 1)))
            f = Objective(loss, as_data(path, np.tile(y, 2000), memory=1 << 22), fit_intercept=intercept)
            return seen(minimize(f, L15, solver, tol=0.0, max_iter=max_iter))

    return Case(run, fixed=True)


SINGLE, FORTRAN = t.X.astype(np.float32), np.asfortranarray(t.X)
COUPLED = of(Softmax(), t.X, t.CLASSES, intercept=True)
TASKED = tasks(Squared(), t.Y)

LOSSES = {
    "squares, PA": fixed(squares(), L15, PA),
    "squares, weights, intercept, PA": fixed(squares(weight=t.WEIGHT, intercept=True), L15, PA),
    "logistic, PA": fixed(logistic(), L15, PA),
    "logistic, weights, intercept, PA": fixed(logistic(weight=t.WEIGHT, intercept=True), L15, PA),
    "huber, intercept, PA": fixed(of(Huber(0.6), t.X, t.Y + 3.0, intercept=True), L15, PA),
    "softmax, weights, intercept, PA": fixed(
        of(Softmax(), t.X, t.CLASSES, t.WEIGHT, intercept=True), LpBall(1.5, 2.0), PA
    ),
    "softmax, FW": fixed(of(Softmax(), t.X, t.CLASSES), ROWS, FW),
    "biweight, PA": fixed(of(BiWeight(0.8), t.X, t.Y), L15, PA),
    "sigmoid, weights, intercept, FW": fixed(
        of(SquaredSigmoid(), t.X, t.SIGNS, t.WEIGHT, intercept=True), L15, FW, max_iter=15
    ),
    "biweight, exact": searching(of(BiWeight(0.8), t.X, t.Y), L15, FrankWolfe(), max_iter=15),
    "squares, 3 outputs, intercept, PA": fixed(of(Squared(), t.X, t.MANY, intercept=True), ROWS, PA),
    "logistic, 3 outputs, intercept, PA": fixed(of(Logistic(), t.X, t.MANY_SIGNS, intercept=True), ROWS, PA),
    "huber, 3 outputs, weights, FISTA": fixed(of(Huber(0.6), t.X, t.MANY, t.WEIGHT), SchattenBall(1.5, 1.5), FISTA),
    "squared hinge, weights, intercept, PA": fixed(of(SquaredHinge(), t.X, t.SIGNS, t.WEIGHT, intercept=True), L15, PA),
    "quantile, intercept, PA": fixed(of(Quantile(0.7, 0.02), t.X, t.Y + 3.0, intercept=True), L15, PA),
    "quantile, plan": searching(of(Quantile(0.7, 0.001), t.X, t.Y + 3.0, intercept=True), L15, tol=1e-3),
    "poisson, PA": fixed(of(Poisson(), t.X, t.COUNTS), LpBall(1.5, 0.3), PA),
    "poisson, weights, intercept, FW": fixed(of(Poisson(), t.X, t.COUNTS, t.WEIGHT, intercept=True), L2, FW),
    "gamma, 3 outputs, intercept, PA": fixed(of(Gamma(), t.X, t.AMOUNTS, intercept=True), ROWS, PA),
    "gamma, plan": searching(of(Gamma(), t.X, t.AMOUNTS[:, 0]), L15),
}
STORAGE = {
    "Fortran order, logistic, PA": fixed(of(Logistic(), FORTRAN, t.SIGNS, intercept=True), L15, PA),
    "single, logistic, PA": fixed(of(Logistic(), SINGLE, t.SIGNS, intercept=True), L15, PA),
    "single, squares, FW": fixed(of(Squared(), SINGLE, t.Y, t.WEIGHT), L15, FW),
    "sparse, squares, intercept, PA": fixed(of(Squared(), t.HOLES, t.Y, intercept=True), L15, PA),
    "sparse, logistic, weights, FW": fixed(of(Logistic(), t.HOLES, t.SIGNS, t.WEIGHT), LpBall(1.0, 1.0), FW),
    "sparse, softmax, plan": searching(of(Softmax(), t.HOLES, t.CLASSES, intercept=True), LpBall(1.5, 2.0)),
    "file, logistic, intercept, PA": from_file(Logistic(), t.SIGNS, PA, True),
    "file, squares, FISTA": from_file(Squared(), t.Y, FISTA, False, 8),
    "standardised, squares, PA": fixed(of(Squared(), t.SHIFTED, t.Y, intercept=True, centre=True, scale=True), L15, PA),
    "scaled sparse, logistic, PA": fixed(of(Logistic(), t.HOLES, t.SIGNS, t.WEIGHT, scale=True), L15, PA),
    "tasks, squares, PA": fixed(TASKED, ROWS, PA),
    "tasks, logistic, plan": searching(tasks(Logistic(), t.SIGNS), ROWS),
    "large, squares, intercept, PA": fixed(lambda: _large(Squared(), 1, True), L15, PA, 12),
    "large, logistic, intercept, FW": fixed(lambda: _large(Logistic(), 2, True), L15, FW, 12),
    "large, softmax, PA": fixed(lambda: _large(Softmax(), 3, False), ROWS, PA, 6),
    "large, logistic, plan": searching(lambda: _large(Logistic(), 2, True), L2),
    "large sparse, logistic, PA": fixed(lambda: Objective(Logistic(), as_data(*t.large_sparse())), L15, PA, 12),
}
SOLVERS = {
    "PA, ell 4": fixed(logistic(), L15, PrimalAveraging(OpenLoop(4))),
    "PA, adaptive, l_1": fixed(squares(), LpBall(1.0, 1.2), PrimalAveraging(LogAdaptive())),
    "PA, last gradient": fixed(logistic(intercept=True), L15, PrimalAveraging(average=LastGradient())),
    "PA, search": searching(logistic(intercept=True), L15, PrimalAveraging(search=ExactLineSearch()), 1e-4),
    "corrective, logistic": searching(logistic(intercept=True), L15, CORRECTIVE, 1e-8),
    "corrective, softmax": searching(COUPLED, LpBall(1.5, 2.0), CORRECTIVE, 1e-5),
    "corrective, squares": searching(squares(intercept=True), L2, CORRECTIVE, 1e-8),
    "FW, adaptive": fixed(squares(), L15, FrankWolfe(LogAdaptive())),
    "FW, short": fixed(logistic(), L15, FrankWolfe(ShortStep())),
    "FW, short with L": fixed(squares(intercept=True), L15, FrankWolfe(ShortStep(L=10.0)), 12),
    "FW, exact": searching(logistic(intercept=True), L15, FrankWolfe(), 1e-4),
    "FW, backtracking": searching(logistic(), L15, FrankWolfe(Backtracking()), 1e-4),
    "pairwise, logistic, l_1": searching(logistic(intercept=True), LpBall(1.0, 1.2), PairwiseFrankWolfe(), 1e-8),
    "pairwise, softmax, l_inf": searching(COUPLED, LpBall(np.inf, 0.4), PairwiseFrankWolfe(), 1e-6),
    "pairwise, squares, plain": searching(squares(), LpBall(1.0, 1.2), PairwiseFrankWolfe(corrections=0), 1e-6),
    "PG": fixed(logistic(intercept=True), L2, PG),
    "PG, square root": fixed(logistic(), L2, ProjectedGradient(InverseSqrt())),
    "PG, backtracking": searching(logistic(), L2, ProjectedGradient(BacktrackingGradient())),
    "FISTA": fixed(squares(intercept=True), L2, FISTA, 12),
    "FISTA, backtracking": searching(logistic(), L2, AcceleratedProjectedGradient(BacktrackingGradient())),
    "Newton, logistic": searching(logistic(weight=t.WEIGHT, intercept=True), L15, ConstrainedNewton(), 1e-9),
    "Newton, softmax, l_1": searching(COUPLED, LpBall(1.0, 2.0), ConstrainedNewton(), 1e-8),
    "Newton, sigmoid": searching(of(SquaredSigmoid(), t.X, t.SIGNS), L2, ConstrainedNewton()),
    "direct, l_1": searching(squares(intercept=True), LpBall(1.0, 1.0), Direct(), 1e-9),
    "direct, outputs": searching(of(Squared(), t.X, t.MANY, t.WEIGHT, True), L2, Direct(), 1e-9),
    "plan, logistic": searching(logistic(intercept=True), LpBall(1.0, 1.0)),
    "plan, squares": searching(squares(weight=t.WEIGHT, intercept=True), L15),
    "PA, growing": fixed(logistic(weight=t.WEIGHT), L15, PrimalAveraging(sampling=Growing(2)), seed=3),
    "PA, growing, intercept": fixed(logistic(intercept=True), L15, PrimalAveraging(sampling=Growing(1.5)), seed=4),
    "PA, last gradient, growing": fixed(
        squares(intercept=True), L15, PrimalAveraging(average=LastGradient(), sampling=Growing(4)), seed=5
    ),
    "FW, minibatch": fixed(squares(), L15, FrankWolfe(ShortStep(L=10.0), sampling=Minibatch(8))),
    "PG, single rows": fixed(logistic(), L2, ProjectedGradient(InverseSqrt(), sampling=Minibatch(1)), 120),
    "PA, minibatch, sparse": fixed(
        of(Logistic(), t.HOLES, t.SIGNS, intercept=True), L15, PrimalAveraging(sampling=Minibatch(16))
    ),
}


def _large(loss, column, intercept):
    table = t.large()
    return Objective(loss, as_data(table[0], table[column]), fit_intercept=intercept)
