"""The best of a handful of radii around one that suits the Euclidean ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.estimators.balls import inside
from projfree.estimators.climbing import ascend
from projfree.estimators.freedom import freedom, freedom_of_products
from projfree.estimators.left_out import FULL, left_out_loss
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.symmetric import Formed
from projfree.objectives import Objective
from projfree.objectives.base import SmoothFunction
from projfree.run import Result, minimize
from projfree.run.path import carried
from projfree.run.result import one_of_many
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.solvers.direct import minimise_form
from projfree.solvers.model import minimise_model
from projfree.solvers.projected_gradient import AcceleratedProjectedGradient
from projfree.steps import BacktrackingGradient

if TYPE_CHECKING:
    from projfree.estimators.auto import RadiusChoice, Ridge

#: Radii are powers of this number times the one to begin with, so many of them below and above it; the first one that
#: is tried lies so many powers below it, from where the answers of smaller balls serve larger ones. Where the largest
#: are still the best for squares they go on to so many, as long as the slope of the loss in the logarithm of the radius
#: is this part of the loss of the smallest ball: a ridge regression that finds little says nothing of sparse answers.
RATIO, DOWN, UP, FIRST = 1.6, 8, 5, 3
FURTHEST, SLACK = 25, 1e-4
#: With fewer rows for each parameter than this one begins further below, and scores may fall and rise again: so many
#: radii are tried in vain. With more than this the first radius is close.
FEW_ROWS, LOWER, PATIENCE = 1.5, 4, 4
MANY_ROWS, CLOSE = 10.0, 1
#: Radii end where the next one is expected to be worse by this part: degrees of freedom are estimates, and tiny balls
#: all predict about alike. With more rows than this scores are smooth, and need no patience.
SMOOTH, WORSE = 1_000, 5e-3
#: Models are solved to this part of the gap at the start, or of that at zero where the norm has curvature.
SHARE, ROUGH = 1e-6, 1e-4
#: Runs end at this relative gap.
TOL, ITERATIONS = 3e-3, 200


@dataclass(frozen=True, eq=False)
class FitOverBall:
    """The answer over a ball, its loss, that of rows left out, the multiplier, and the run where there was one."""

    w: Array
    value: float
    score: float
    multiplier: float
    run: Result | None = None

    @property
    def share(self) -> float:
        """What the fit uses up of what the rows can tell, as generalised cross-validation has it."""
        return 1.0 - math.sqrt(self.value / self.score) if self.score > self.value > 0.0 else 0.0


def around(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, radius: float, n: float) -> RadiusChoice:
    """The radius with the smallest loss of rows left out, and its answer."""
    from projfree.estimators.auto import RadiusChoice

    tries = Tries(f, ball, ridge, radius, n)
    best = ascend(tries.score, tries.first, (0, tries.last), tries.ended)
    if len(tries.fits) == 1 and expired():  # one score says nothing about the others
        return RadiusChoice(radius, ridge.w)
    fit = tries.near(best)
    return RadiusChoice(tries.radius(best), fit.w, fit.run)


class Tries:
    """Fits at radii around one, by the power of the ratio."""

    def __init__(self, f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, radius: float, n: float) -> None:
        self.f, self.ball, self.ridge, self.middle, self.n = f, ball, ridge, radius, n
        rows = n / math.prod(f.shape)
        self.first = DOWN - (LOWER if rows < FEW_ROWS else FIRST if rows < MANY_ROWS else CLOSE)
        self.last = DOWN + (FURTHEST if f.quadratic else UP)
        self.patience = PATIENCE if rows < FEW_ROWS and n < SMOOTH else 0
        self.fits: dict[float, FitOverBall] = {}

    def radius(self, k: float) -> float:
        return float(self.middle * RATIO ** (k - DOWN))

    def near(self, k: float) -> FitOverBall:
        """The fit over the next smaller ball, which this one contains, or over the smallest so far."""
        below = [j for j in self.fits if j <= k]
        return self.fits[max(below) if below else min(self.fits)]

    def score(self, k: float) -> float:
        """The loss of rows left out of the fit over a ball, which begins at the answer over a smaller one."""
        here, f = self.ball.resized(self.radius(k)), self.f
        if self.fits and expired():  # the best of those tried is taken
            return np.inf
        found = _fitted(f, here, self.ridge, self.near(k) if self.fits else None, self.n)
        if k > DOWN + UP and not found.multiplier * self.radius(k) > SLACK * self.near(0).value:
            found = replace(found, score=np.inf)  # the ball holds nothing back, and what is left is rounding
        self.fits[k] = found
        return found.score

    def ended(self, best: float, k: float) -> float | None:
        """What to expect of the radius after the last one, ``k``, where that is not worth a try; else None."""
        if k not in self.fits or self.fits[k].score == np.inf:
            return np.inf
        if k - 1 not in self.fits:
            return None
        ahead, lowest = self._expected(k), self.fits[best].score
        if k - best < self.patience and ahead < np.inf:
            return None
        far = k >= DOWN + UP and k > best
        return ahead if far or ahead > lowest + WORSE * abs(lowest) else None

    def _expected(self, k: float) -> float:
        """The next score; infinite if so large a ball would leave nothing to tell.

        The multiplier is the slope of the loss in the radius, and falls by the same factor again. The share that the
        fit uses up of what the rows can tell grows by a number between the last difference and the last factor.
        """
        before, here = self.fits[k - 1], self.fits[k]
        last, now = before.share, here.share
        factor = min(now / last, RATIO**2) if last > 0.0 else RATIO**2
        share = math.sqrt(max(2.0 * now - last, 0.0) * max(factor, 1.0) * now)
        falls = min(here.multiplier / before.multiplier, 1.0 - 1e-6) if before.multiplier > 0.0 else 0.0
        mean = here.multiplier * (1.0 - falls) / -math.log(falls) if falls > 0.0 else 0.0
        value = max(here.value - mean * (self.radius(k + 1) - self.radius(k)), 0.0)
        return value / (1.0 - share) ** 2 if share < FULL else np.inf


def _fitted(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, near: FitOverBall | None, n: float) -> FitOverBall:
    """The answer over a ball, on the model where there is one."""
    H, b, form = ridge.H, ridge.b, ridge.form
    if H is None or b is None or not (ball.projects_quickly or form is not None):
        return _from_rows(f, ball, ridge, near, n)
    start = _start(f, ball, ridge.w if near is None else near.w)
    w = _minimised(f, ball, H, b, start) if ball.projects_quickly else _run(form or f, ball, start).w
    slope = (H @ w.reshape(len(H), -1)).reshape(w.shape) - b
    used, mu = freedom(ball, w, slope, H), ball.multiplier(slope) or 0.0
    if form is None:
        assert isinstance(f, Objective)
        x = f.point(w)
        return FitOverBall(w, f.value(x), left_out_loss(f, x, used, n), mu)
    left, value = 1.0 - (used + ridge.intercepts) / (n * math.prod(f.shape[1:])), max(form.value(form.point(w)), 0.0)
    return FitOverBall(w, value, value / left**2 if left > 0.01 else np.inf, mu)


def _from_rows(f: SmoothFunction, ball: ConstraintSet, ridge: Ridge, near: FitOverBall | None, n: float) -> FitOverBall:
    """The same where no matrix was formed: a run, which takes over what the one over a smaller ball has found."""
    assert isinstance(f, Objective)
    if near is not None and near.run is not None and ball.contains(near.run.state.x.w):
        result = _run(f, ball, None, near.run.solver, carried(f, ball, near.run))
    else:  # where most coefficients are zero at the answer, they are zero at the start
        first = np.zeros(f.shape) if ball.as_flat(f.shape) is not None else ridge.w
        result = _run(f, ball, _start(f, ball, first if near is None else near.w), _solver(f, ball))
    x = f.point(result.w, result.intercept)
    mu = ball.multiplier(f.minorant(x).gradient) or 0.0
    used = freedom_of_products(ball, x.w, mu, f.hessian_at(x), n)
    return FitOverBall(x.w, result.value, left_out_loss(f, x, used, n), mu, result)


def _start(f: SmoothFunction, ball: ConstraintSet, w: Array) -> Array:
    found = inside(ball, w, f.shape)
    return np.zeros(f.shape) if found is None else found


def _solver(f: Objective, ball: ConstraintSet) -> Solver | Literal["auto"]:
    """Steps of a known cost where outputs are coupled: models of all of them are slow on singular faces."""
    coupled = f.loss.coupled and ball.as_flat(f.shape) is not None
    return AcceleratedProjectedGradient(BacktrackingGradient()) if coupled else "auto"


def _run(
    f: SmoothFunction,
    ball: ConstraintSet,
    start: Array | None,
    solver: Solver | Literal["auto"] = "auto",
    state: State | None = None,
) -> Result:
    settings: dict[str, Any] = {"tol": TOL, "max_iter": ITERATIONS, "record": 0}
    return one_of_many(minimize(f, ball, solver, start=start, state=state, **settings))


def _minimised(f: SmoothFunction, ball: ConstraintSet, H: Array, b: Array, start: Array) -> Array:
    """The minimiser of the model over a ball."""
    shared = len(H) == f.shape[0]
    flat = ball.as_flat(f.shape)
    if flat is None or flat.groups is not None:
        return minimise_form(ball, H, b, start) if f.quadratic else minimise_model(H, b, ball, start, ROUGH)
    if not shared:
        flat = ball.as_flat((b.size,)) if len(f.shape) > 1 else flat
        if flat is None:
            return minimise_model(H, b, ball, start, ROUGH)
        b, start = b.ravel(), start.ravel()
    level = flat.level(H @ start - b)
    return minimise_flat(Formed(H), b, flat, start, level, SHARE).w.reshape(f.shape)
