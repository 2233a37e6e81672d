"""The best of a handful of radii around one that suits the Euclidean ball."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.estimators.balls import inside, multiplier
from projfree.estimators.climbing import climb, rise
from projfree.estimators.freedom import freedom, freedom_of_products
from projfree.estimators.left_out import left_out_loss
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.symmetric import Formed
from projfree.objectives import Objective
from projfree.objectives.base import SmoothFunction
from projfree.run import Result, minimize
from projfree.run.result import one_of_many
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver
from projfree.solvers.direct import minimise_form
from projfree.solvers.model import minimise_model
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient
from projfree.steps import BacktrackingGradient

if TYPE_CHECKING:
    from projfree.estimators.auto import Choice, Ridge

#: Radii are powers of this number times the one to begin with, so many of them below and above it.
RATIO, DOWN, UP = 1.6, 8, 3
#: With fewer rows for each parameter than this, radii are tried from the smallest up, until so many are no better.
FEW_ROWS, PATIENCE = 1.5, 4
#: With more rows than this scores are smooth: every second radius is enough, and they end where the next one is
#: expected to be worse by this part: degrees of freedom are estimates, and tiny balls all predict about alike.
SMOOTH, WORSE = 1_000, 5e-3
#: Models are solved to this part of the gap at the start.
SHARE = 1e-6
#: Runs end at this relative gap.
TOL, ITERATIONS = 3e-3, 200


def around(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, radius: float, n: float) -> Choice:
    """The radius with the smallest loss of rows left out, and its answer."""
    from projfree.estimators.auto import Choice

    tries = Tries(f, ball, ridge, radius, n)
    if n < FEW_ROWS * math.prod(f.shape):  # what fits the rows closely says little, so that one comes from below
        best = rise(tries.score, DOWN + UP + 1, tries.step, tries.ended)
    else:
        best = float(climb(tries.score, DOWN, DOWN + UP + 1, (1,)))
    return Choice(tries.radius(best), tries.fits[tries.nearest(best)])


class Tries:
    """Fits at radii around one: the answers, their losses, and those of rows left out, by the power of the ratio."""

    def __init__(self, f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, radius: float, n: float) -> None:
        self.f, self.ball, self.ridge, self.middle, self.n = f, ball, ridge, radius, n
        self.step = 1 if n < SMOOTH else 2
        self.fits: dict[float, Array] = {}
        self.values: dict[float, float] = {}
        self.scores: dict[float, float] = {}

    def radius(self, k: float) -> float:
        return float(self.middle * RATIO ** (k - DOWN))

    def nearest(self, k: float) -> float:
        """The power nearest to ``k`` that was tried, the smaller one of two."""
        return min(self.fits, key=lambda j: (abs(j - k), j))

    def score(self, k: float) -> float:
        """The loss of rows left out of the fit over a ball, which begins at the nearest answer so far."""
        here, fits, f = self.ball.resized(self.radius(k)), self.fits, self.f
        if fits and expired():  # the best of those tried is taken
            return np.inf
        near = fits[self.nearest(k)] if fits else self.ridge.w
        start = inside(here, near, f.shape)
        begin = np.zeros(f.shape) if start is None else start
        fits[k], self.values[k], self.scores[k] = _fitted(f, here, self.ridge, begin, self.n)
        return self.scores[k]

    def ended(self, best: float, k: float) -> float | None:
        """What to expect of the radius after the last one, ``k``, where that is not worth a try; else None."""
        if self.scores[k] == np.inf or k < self.step:
            return self.scores[k] if self.scores[k] == np.inf else None
        ahead = self._expected(k)
        over = k - best >= PATIENCE if self.n < SMOOTH else ahead > self.scores[best] + WORSE * abs(self.scores[best])
        return ahead if over else None

    def _expected(self, k: float) -> float:
        """The next score if the loss falls by the same factor again, and its distance to the score grows as before."""
        before, here = self.values[k - self.step], self.values[k]
        grown = 2.0 * (self.scores[k] - here) - (self.scores[k - self.step] - before)
        return here * min(here / before, 1.0) + grown if before > 0.0 else grown


def _fitted(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, start: Array, n: float) -> tuple[Array, float, float]:
    """The answer over a ball, on the model where there is one, its loss, and that of rows left out."""
    H, b, form = ridge.H, ridge.b, ridge.form
    if H is None or b is None or not (ball.projects_quickly or form is not None):
        return _from_rows(f, ball, start, n)
    w = _minimised(f, ball, H, b, start) if ball.projects_quickly else _run(form or f, ball, start).w
    slope = (H @ w.reshape(len(H), -1)).reshape(w.shape) - b
    used = freedom(ball, w, slope, H)
    if form is None:
        assert isinstance(f, Objective)
        x = f.point(w)
        return w, f.value(x), left_out_loss(f, x, used, n)
    left, value = 1.0 - (used + ridge.intercepts) / (n * math.prod(f.shape[1:])), max(form.value(form.point(w)), 0.0)
    return w, value, value / left**2 if left > 0.01 else np.inf


def _from_rows(f: SmoothFunction, ball: ConstraintSet, start: Array, n: float) -> tuple[Array, float, float]:
    """The same where no matrix was formed."""
    assert isinstance(f, Objective)
    result = _run(f, ball, start, _solver(f, ball))
    x = f.point(result.w, result.intercept)
    used = freedom_of_products(ball, x.w, multiplier(ball, f.minorant(x).gradient) or 0.0, f.hessian_at(x), n)
    return x.w, result.value, left_out_loss(f, x, used, n)


def _solver(f: Objective, ball: ConstraintSet) -> Solver | Literal["auto"]:
    """Steps of a known cost where outputs are coupled: models of all of them are slow on singular faces."""
    coupled = f.loss.coupled and ball.as_flat(f.shape) is not None
    return AcceleratedProjectedGradient(BacktrackingGradient()) if coupled else "auto"


def _run(f: SmoothFunction, ball: ConstraintSet, start: Array, solver: Solver | Literal["auto"] = "auto") -> Result:
    return one_of_many(minimize(f, ball, solver, start=start, tol=TOL, max_iter=ITERATIONS, record=0))


def _minimised(f: SmoothFunction, ball: ConstraintSet, H: Array, b: Array, start: Array) -> Array:
    """The minimiser of the model over a ball."""
    shared = len(H) == f.shape[0]
    flat = ball.as_flat(f.shape)
    if flat is None or flat.groups is not None:
        return minimise_form(ball, H, b, start) if f.quadratic else minimise_model(H, b, ball, start)
    if not shared:
        flat = ball.as_flat((b.size,)) if len(f.shape) > 1 else flat
        if flat is None:
            return minimise_model(H, b, ball, start)
        b, start = b.ravel(), start.ravel()
    level = flat.level(H @ start - b)
    return minimise_flat(Formed(H), b, flat, start, level, SHARE).w.reshape(f.shape)
