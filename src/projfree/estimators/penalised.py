r"""Penalised problems of scikit-learn, solved so that their answer gives the radius of a ball.

.. math:: \min_w f(w) + \tfrac\lambda2 \|w\|_2^2 \qquad\text{or}\qquad \min_w f(w) + \mu \|w\|

with the norm that is flat: l_1, or the sum of the norms of rows. The answer w also minimises f over the ball of radius
:math:`\|w\|`, whose certificate is then about the constrained problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from projfree.algebra import Point
from projfree.checks import Array
from projfree.estimators.ridge_models import EigenModel
from projfree.numerics.flat_quadratic import minimise_penalised
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation
from projfree.sets.base import ConstraintSet
from projfree.solvers import ConstrainedNewton, Direct, plan

#: Slopes are made as small as this part of what they are at zero, in at most so many steps of Newton's method.
ACCURACY, STEPS = 1e-11, 60
#: Conditions for a minimum that are met up to this part of the penalty are met, where rounding allows no more.
SETTLED = 1e-6
#: The most parameters for which Hessians are formed where the plan does without.
FEW = 200
#: Features that a step looks at, at least, and twice as many as are not zero.
SMALLEST = 100
#: Halvings of a step that does not lead down.
HALVINGS = 30
#: Values that differ by this part are equal.
ROUNDING = 1e-13


def ridge_point(f: SmoothFunction, ball: ConstraintSet, penalty: float) -> Array:
    """The minimiser of f plus half of ``penalty`` times the squared Euclidean norm; ``ball`` is where a fit follows."""
    if f.has_quadratic_form and (f.shape[0] <= FEW or isinstance(plan(f, ball, 1e-6).solver, Direct)):
        form = f.quadratic_form()
        assert form is not None
        return EigenModel(form.H, form.b).point(penalty)
    # What the fit itself forms is no more than a fit's work.
    formed = f.has_hessian and not f.quadratic
    formed = formed and (math.prod(f.shape) <= FEW or isinstance(plan(f, ball, 1e-6).solver, ConstrainedNewton))
    x = f.point(np.zeros(f.shape))
    here = f.evaluate(x)
    goal = ACCURACY * float(np.linalg.norm(here.slope.gradient))
    for _ in range(STEPS):
        w, slope = here.point.w, here.slope.gradient + penalty * here.point.w
        if float(np.linalg.norm(slope)) <= goal:
            break
        step = _newton_step(f, here.point, slope, penalty, goal, formed)
        new = _descended(f, here, w + step, lambda v: 0.5 * penalty * float(np.vdot(v, v)))
        if new is None:
            break
        here = new
    return here.point.w


def flat_point(f: SmoothFunction, level: float, *, rows: bool) -> Array:
    """The minimiser of f plus ``level`` times the sum of the sizes of entries, or of the norms of rows."""
    zero = f.evaluate(f.point(np.zeros(f.shape)))
    here = _settled(f, zero, level, rows)
    if _flat_slope(here.point.w, here.slope.gradient, level, rows) > SETTLED * level:
        # Too many features at once make the face singular. From larger penalties they come in a few at a time.
        here = zero
        highest = max(float(np.max(_sizes(zero.slope.gradient, rows))), level)
        for penalty in np.geomspace(highest, level, 2 + math.ceil(math.log(highest / level, 2.0))):
            here = _settled(f, here, float(penalty), rows)
    return here.point.w


def _settled(f: SmoothFunction, here: Evaluation, level: float, rows: bool) -> Evaluation:
    """Where Newton's method on ever other features leads from ``here``."""
    for _ in range(STEPS):
        w, g = here.point.w, here.slope.gradient
        if _flat_slope(w, g, level, rows) <= ACCURACY * level:
            break
        features = _features(w, g, level)
        if not len(features):
            break
        H = f.hessian_among(here.point, features)
        part, slope = w[features], g[features]
        shared = len(H) == len(features)
        flat = part if shared else part.ravel()
        b = H @ flat - slope.reshape(flat.shape)
        new = w.copy()
        new[features] = minimise_penalised(H, b, flat, level, rows=rows).reshape(part.shape)
        there = _descended(f, here, new, lambda v: level * float(_sizes(v, rows).sum()))
        if there is None:
            break
        here = there
    return here


def _features(w: Array, g: Array, level: float) -> Array:
    """The features in use, and as many others with slopes above the level, the steepest first."""
    used = w.reshape(len(w), -1).any(axis=1)
    pull = np.linalg.norm(g.reshape(len(g), -1), axis=1)
    most = max(SMALLEST, 2 * int(used.sum()))
    others = np.flatnonzero(~used & (pull > level * (1.0 - 1e-12)))
    others = others[np.argsort(-pull[others], kind="stable")[:most]]
    return np.sort(np.concatenate([np.flatnonzero(used), others]))


def _sizes(w: Array, rows: bool) -> Array:
    return np.linalg.norm(w.reshape(len(w), -1), axis=1) if rows else np.abs(w)


def _flat_slope(w: Array, g: Array, level: float, rows: bool) -> float:
    """How far the conditions for the minimum are from being met."""
    sizes = _sizes(w, rows)
    by = np.where(sizes > 0.0, sizes, 1.0).reshape(len(w), *([1] * (w.ndim - 1)) if rows else sizes.shape[1:])
    on, off = _sizes(g + level * w / by, rows), np.maximum(_sizes(g, rows) - level, 0.0)
    return float(np.max(np.where(sizes > 0.0, on, off), initial=0.0))


def _newton_step(f: SmoothFunction, x: Point, slope: Array, penalty: float, goal: float, formed: bool) -> Array:
    if formed:
        H = f.hessian(x)
        H[np.diag_indices(len(H))] += penalty
        return -np.linalg.solve(H, slope.ravel()).reshape(f.shape)
    from scipy.sparse.linalg import LinearOperator, cg

    products = f.hessian_at(x)

    def times(v: Array) -> Array:
        return np.asarray(products.product(v.reshape(f.shape)).ravel() + penalty * v.ravel())

    size = float(np.linalg.norm(slope))
    # Newton converges quadratically where its steps are as accurate as the slope is small.
    rtol = ACCURACY if f.quadratic else max(min(0.1, math.sqrt(size)), 0.1 * goal / size)
    found, _ = cg(LinearOperator((slope.size, slope.size), times), -slope.ravel(), rtol=min(rtol, 0.1), maxiter=1_000)
    return np.asarray(found).reshape(f.shape)


def _descended(f: SmoothFunction, here: Evaluation, new: Array, penalty: Callable[[Array], float]) -> Evaluation | None:
    """The evaluation at the first of ever shorter steps that leads down, None where rounding has won."""
    old, start = here.value + penalty(here.point.w), here.point.w
    if (new == start).all():
        return None
    for k in range(HALVINGS):
        w = start + 0.5**k * (new - start) if k else new
        there = f.evaluate(f.point(w, here.point.intercept))
        if there.value + penalty(w) <= old + ROUNDING * abs(old):
            return there
    return None
