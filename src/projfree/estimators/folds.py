"""The two ways to score radii on the folds of a search: paths of runs, and moments for least squares."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from projfree.checks import Array
from projfree.estimators.base import ConstrainedModel
from projfree.estimators.fold_grams import FoldMoments, FoldRows, Solutions, fold_grams, gap_on_rows
from projfree.estimators.many_scores import AT_ONCE
from projfree.estimators.paths import RadiusPath, fit_path
from projfree.estimators.table import Table
from projfree.losses.squared import Squared, is_squared
from projfree.numerics.lp_norm import lp_norm
from projfree.run.callbacks import Callback
from projfree.run.path import solves_as_form
from projfree.runtime import single_blas
from projfree.sets.base import resized

#: Exponents with one decomposition for all radii use it up to so many features: a second or two a fold.
MOST_FEATURES = 2_000
#: How many radii the plan is asked for: about as many as a grid has.
SOME_RADII = 20
#: A point whose norm is less than this part of the radius lies inside the ball.
INSIDE = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class Scoring:
    """What judges a model: the scorer, the rows as they were given, and what else it is given of them."""

    scorer: Any
    scoring: Any
    X: Any
    y: Any
    params: dict[str, Any]

    def part(self, rows: Array) -> tuple[Any, Any, dict[str, Any]]:
        """The scorer's arguments after the model, for some rows."""
        own = {name: value if value is None else _safe_indexing(value, rows) for name, value in self.params.items()}
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), own


@dataclass(frozen=True, eq=False)
class PathFolds:
    """Runs along the radii, each begun at the last, in processes of joblib over exponents and folds."""

    table: Table
    folds: list[FoldRows]
    judge: Scoring
    seed: int
    n_jobs: int | None

    def scores(self, models: list[ConstrainedModel], radii: Array, tell: Callable[[], None]) -> tuple[Array, Array]:
        """Scores of shape (exponents, radii, folds), and seconds of shape (exponents, folds)."""
        jobs = [(model, grid, fold) for model, grid in zip(models, radii, strict=True) for fold in self.folds]
        tasks = (
            delayed(_fold_scores)(
                model, self.table.part(rows), grid, self.seed, self.judge.scorer, *self.judge.part(held)
            )
            for model, grid, (rows, held) in jobs
        )
        found = []
        for done in Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks):
            found.append(done)
            tell()
        shape = (len(models), len(self.folds), -1)
        scores = np.reshape([scores for scores, _ in found], shape)
        return np.swapaxes(scores, 1, 2), np.reshape([seconds for _, seconds in found], shape[:2])

    def refit(
        self, model: ConstrainedModel, radii: Array, at: int, seed: int, callbacks: Sequence[Callback] = ()
    ) -> tuple[ConstrainedModel, RadiusPath]:
        """The model of one of the radii on all rows, and the path of all of them."""
        fitted = fit_path(model, self.table, radii, seed, callbacks=callbacks)
        return fitted[at], RadiusPath.of(float(model.p), radii, fitted)


def _fold_scores(
    model: ConstrainedModel, table: Table, radii: Array, seed: int, scorer: Any, X: Any, y: Any, params: dict[str, Any]
) -> tuple[list[float], float]:
    begun = time.perf_counter()
    fitted = fit_path(model, table, radii, seed)
    took = time.perf_counter() - begun
    return [float(scorer(one, X, y, **params)) for one in fitted], took


@dataclass(frozen=True, eq=False)
class MomentFolds:
    """Least squares over l_p balls: each fold is solved for all radii from its moments, exactly."""

    table: Table
    folds: list[FoldRows]
    judge: Scoring
    moments: list[FoldMoments]
    #: Of all rows.
    whole: FoldMoments

    def scores(self, models: list[ConstrainedModel], radii: Array, tell: Callable[[], None]) -> tuple[Array, Array]:
        """Scores of shape (exponents, radii, folds), and seconds of shape (exponents, folds)."""
        scores = np.empty((len(models), radii.shape[1], len(self.folds)))
        seconds = np.empty((len(models), len(self.folds)))
        with single_blas():
            for i, (model, grid) in enumerate(zip(models, radii, strict=True)):
                for k in range(len(self.folds)):
                    begun = time.perf_counter()
                    rows = partial(self.table.part, self.folds[k][0])
                    found = self._solved(model, self.moments[k], rows, grid)
                    if not np.all(found.gaps <= model.tol):
                        raise TooCoarseError
                    seconds[i, k] = time.perf_counter() - begun
                    scores[i, :, k] = self._judged(model, found, self.folds[k][1])
                    tell()
        return scores, seconds

    def refit(
        self, model: ConstrainedModel, radii: Array, at: int, seed: int, callbacks: Sequence[Callback] = ()
    ) -> tuple[ConstrainedModel, RadiusPath]:
        """The model of one of the radii on all rows, with its certificate, and the path of all of them."""
        with single_blas():
            found = self._solved(model, self.whole, lambda: self.table, radii)
        wide = self.table.features > len(self.table.y)
        if wide and lp_norm(found.w[at], model.p) < INSIDE * radii[at]:
            raise TooCoarseError  # there are many minimisers, and a run may end at another than was scored
        known = {"start": found.w[at], "gram": self.whole.gram}
        fitted = fit_path(model, self.table, radii[at : at + 1], seed, callbacks=callbacks, **known)[0]
        shaped = [model._shaped(*pair) for pair in zip(found.coefs, found.intercepts, strict=True)]
        shaped[at] = {"coef_": fitted.coef_, "intercept_": fitted.intercept_}
        coefs, intercepts = (np.stack([np.asarray(one[name]) for one in shaped]) for name in ("coef_", "intercept_"))
        return fitted, RadiusPath(float(model.p), radii, coefs, intercepts, found.multipliers, found.values, found.gaps)

    @staticmethod
    def _solved(model: ConstrainedModel, moments: FoldMoments, rows: Callable[[], Table], radii: Array) -> Solutions:
        """The minimisers; where the rounding of the moments hides the tolerance, the rows say how exact they are."""
        found = moments.solve(model.p, radii)
        unproved = np.flatnonzero(~(found.gaps <= model.tol))
        if len(unproved):
            table = rows()
            problem = model._problem(table, model._losses(table))
            ball = model._ball(table, problem)
            for k in unproved:
                found.gaps[k] = gap_on_rows(problem.objective, resized(ball, float(radii[k])), found.w[k])
        return found

    def _judged(self, model: ConstrainedModel, found: Any, held: Array) -> Any:
        at_once = AT_ONCE.get(self.judge.scoring) if isinstance(self.judge.scoring, str | None) else None
        if at_once is not None and set(self.judge.params) <= {"sample_weight"} and len(held) > 1:
            rows, weight = self.table.part(held), self.judge.params.get("sample_weight")
            return at_once(rows.y, found.predict(rows.X), None if weight is None else np.asarray(weight)[held])
        X, y, params = self.judge.part(held)
        scores, fitted = [], copy.copy(model)
        fitted.loss_ = Squared()
        for coef, intercept in zip(found.coefs, found.intercepts, strict=True):
            for name, value in model._shaped(coef, intercept).items():
                setattr(fitted, name, value)
            scores.append(float(self.judge.scorer(fitted, X, y, **params)))
        return scores


class TooCoarseError(ArithmeticError):
    """The sums in the moments are rounded by more than the tolerance, or do not tell which minimiser a run ends at."""


def moment_folds(
    models: list[ConstrainedModel], table: Table, folds: list[FoldRows], judge: Scoring
) -> MomentFolds | None:
    """The folds of least squares from their moments, None where models are of another kind or too large for it."""
    if table.task is not None or any(model.free is not None or model.positive for model in models):
        return None
    if not all(_direct(model, table) for model in models):
        return None
    settings: dict[str, Any] = {
        "intercept": bool(models[0].fit_intercept),
        "standardize": models[0]._standardizes(),
    }
    with single_blas():
        whole, each = fold_grams(table, folds)
        moments = [FoldMoments.of(gram, **settings) for gram in each]
        all_rows = FoldMoments.of(whole, **settings)
    if all_rows is None or any(one is None for one in moments):
        return None
    return MomentFolds(table, folds, judge, [one for one in moments if one is not None], all_rows)


def _direct(model: ConstrainedModel, table: Table) -> bool:
    if not (model.loss == "squared" or is_squared(model.loss)):
        return False
    model.radius = 1.0
    problem = model._problem(table, model._losses(table))
    f, ball = problem.objective, model._ball(table, problem)
    lp = ball.structure(f.shape).plain_lp
    if lp is None or lp.p != model.p:
        return False
    # What is too much for one radius pays off for many, where one decomposition serves all of them. A walk over l_1
    # balls takes about as many pivots as there are rows, so that it pays off also for few.
    wide = f.shape[0] > len(table.y)
    shared = lp.p == 1.0 and len(f.shape) == 1 if wide else lp.p in (1.0, 2.0)
    many = shared and model.solver == "auto" and f.shape[0] <= MOST_FEATURES
    return many or solves_as_form(f, ball, model.solver, SOME_RADII)
