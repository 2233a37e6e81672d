"""Fits over a grid of radii: each the start of the next."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data.gram import Gram
from projfree.estimators.balls import inside, own_norm
from projfree.estimators.base import ConstrainedModel, PreparedFit
from projfree.estimators.penalty import total_weight
from projfree.estimators.table import Table
from projfree.objectives import Objective
from projfree.run import Path, path
from projfree.run.callbacks import Callback
from projfree.run.result import Interrupted
from projfree.sets import ConstraintSet, LpBall, WithFree
from projfree.sets.base import resized

#: The default grid goes from the norm of a ridge regression divided by the first number to it times the second,
BELOW, ABOVE = 30.0, 30.0
#: with the penalty of ``alpha=1``, as `Ridge` has it by default.
PENALTY = 2.0


@dataclass(frozen=True, eq=False)
class RadiusPath:
    """Coefficients for many radii.

    Attributes
    ----------
    p : float
        The exponent of the norm.
    radii : ndarray of shape (m,)
        In increasing order.
    coefs : ndarray of shape (m, ...)
        ``coef_`` for each radius.
    intercepts : ndarray of shape (m, ...)
    multipliers : ndarray of shape (m,)
        The penalty that each radius amounts to; NaN where the set has no norm.
    values, gaps : ndarray of shape (m,)
        The mean loss on the training rows and its relative gap.
    """

    p: float
    radii: Array
    coefs: Array
    intercepts: Array
    multipliers: Array
    values: Array
    gaps: Array

    def __repr__(self) -> str:
        radii = f"{len(self.radii)} from {self.radii[0]:.4g} to {self.radii[-1]:.4g}"
        coefs = " x ".join(map(str, self.coefs.shape))
        return f"RadiusPath(p: {self.p:g}, radii: {radii}, coefs: {coefs}, largest gap: {np.max(self.gaps):.2g})"

    @classmethod
    def of(cls, p: float, radii: Array, models: list[ConstrainedModel]) -> RadiusPath:
        """From the models of `fit_path`."""
        return cls(
            p,
            radii,
            np.stack([m.coef_ for m in models]),
            np.stack([np.asarray(m.intercept_) for m in models]),
            np.array([np.nan if m.multiplier_ is None else m.multiplier_ for m in models]),
            np.array([m.result_.value for m in models]),
            np.array([m.result_.relative_gap for m in models]),
        )


def fit_path(
    model: ConstrainedModel,
    table: Table,
    radii: Array,
    seed: int,
    start: Array | None = None,
    gram: Gram | None = None,
    callbacks: Sequence[Callback] = (),
) -> list[ConstrainedModel]:
    """A fitted copy of the model for each radius, from the smallest to the largest.

    The scale of a robust loss is found once, over the largest ball. ``start`` is where the first radius begins, and
    ``gram`` the moments of the rows, where these are known; ``callbacks`` are called in each run.
    """
    model.radius = float(radii[-1])
    prepared = model._prepared(table)
    problem = prepared.problem
    if gram is not None and not model._standardizes():
        problem.objective.use_gram(gram)
    begin = inside(prepared.ball, start, problem.objective.shape)
    try:
        settings = {**model._settings(seed, prepared), "callbacks": callbacks}
        found = path(problem.objective, prepared.ball, radii, record=0, start=begin, **settings)
    except Interrupted as stop:
        models = _models(model, prepared, stop.found)
        raise FitInterrupted(models, f"interrupted at radius {len(models)} of a path") from stop
    return _models(model, prepared, found)


class FitInterrupted(Interrupted):
    """Ctrl-C in `fit_path`; ``found`` are the models of the radii that were solved, the last one interrupted."""


def _models(model: ConstrainedModel, prepared: PreparedFit, found: Path) -> list[ConstrainedModel]:
    """A copy of the model for each result."""
    models = []
    for radius, result in zip(found.radii.tolist(), found.results, strict=True):
        fitted = copy.copy(model)
        fitted.radius = radius
        fitted._adopt(PreparedFit(prepared.problem, resized(prepared.ball, radius), None), result)
        models.append(fitted)
    return models


def grid(model: ConstrainedModel, table: Table, radii: Any) -> Array:
    """The radii of a path: those given, in increasing order, or so many around a ridge regression of these rows."""
    if isinstance(radii, int | np.integer):
        problem = model._problem(table, model._losses(table))
        model.radius = 1.0
        return radius_grid(problem.objective, model._ball(table, problem), int(radii))
    chosen: Array = radii
    return chosen


def radius_grid(f: Objective, ball: ConstraintSet, count: int) -> Array:
    """``count`` radii in geometric progression around the norm of a ridge regression of all rows."""
    from projfree.estimators.regularization import penalised_point

    euclidean: ConstraintSet = LpBall(2.0, 1.0)
    if isinstance(ball, WithFree):
        euclidean = WithFree(euclidean, ball.free, ball.bound)
    norm = own_norm(ball, penalised_point(f, euclidean, PENALTY / total_weight(f.data))[0])
    middle = norm if 0.0 < norm < np.inf else 1.0
    return np.geomspace(middle / BELOW, middle * ABOVE, count) if count > 1 else np.array([middle])
