r"""Penalised fits: the problem that ``alpha`` and ``C`` define for an estimator without a radius.

With the mean loss f and a norm,

.. math:: \min_w\ f(w) + \frac{\lambda}{k} \|w\|^k , \qquad k = \min(p, 2) ,

where p is the outer exponent of the norm. The minimiser w also minimises f over the ball of radius :math:`r = \|w\|`,
where the multiplier of the constraint is :math:`\mu = \lambda r^{k-1}`. So a certificate over this ball certifies w.

The problem is solved by Newton's method for p = 2, and on working sets for p = 1 and for groups that are rows. For
other norms, the radius is the root of :math:`\mu(r) = \lambda r^{k-1}`, where :math:`\mu(r)` is the multiplier of the
ball, a decreasing function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import UNIT, inner
from projfree.checks import Array
from projfree.deadline import Expired, deadline, expired
from projfree.estimators.problem import ZERO_RADIUS, ball_norm, ball_through, inner_ball, nearest_feasible
from projfree.numerics.group_l1_qp import minimize_group_l1
from projfree.objectives.base import Evaluation, SmoothFunction
from projfree.objectives.hessian import Hessian
from projfree.objectives.quadratic import QuadraticForm
from projfree.run import Result, Status, minimize
from projfree.run.certificate import multiplier
from projfree.run.result import raise_if_interrupted
from projfree.runtime import single_blas_thread
from projfree.sets import ConstraintSet, GroupBall
from projfree.sets.base import resized
from projfree.solvers.choose import MOST_PARAMETERS
from projfree.solvers.working_set import MOST_DAMPING, SHARE, SMALLEST, FeatureModel, working_set

if TYPE_CHECKING:
    from projfree.estimators.base import FitSetup

#: Warnings if the radius of a fit does not match its penalty.
TIME_LIMIT_MESSAGE = (
    "`time_limit` ended before the penalised problem was solved, and the fit has another radius; raise it, or give one"
)
NO_RADIUS_MESSAGE = (
    "no radius was found that belongs to the penalty; give a `radius`, a stronger penalty or scaled columns"
)
#: Relative gap at which Newton's method stops, so that predictions have a relative error of about its square root, and
#: the maximum number of steps. It takes about ten; more than 60 mean that rounding errors prevent convergence.
NEWTON_GAP, MAX_NEWTON_STEPS = 1e-10, 60
#: Relative gap at which a solution on working sets counts as converged.
WORKING_SET_GAP = 1e-8
#: Relative tolerance of the optimality conditions of a minimiser. Newton's method needs only its square root, if
#: rounding allows no more. Above it, the root search follows.
OPTIMALITY_TOL = 1e-6
#: A dense Hessian of d parameters costs d products, and conjugate gradients take tens of products per step. So the
#: Hessian is formed for up to 50 parameters, and a step takes at most 500 products.
MAX_DENSE_HESSIAN, MAX_HESSIAN_PRODUCTS = 50, 500
#: ``(f, ball, weight, starting evaluation, relative gap)`` -> last evaluation, and whether it has this gap.
PenaltyMethod = Callable[[SmoothFunction, ConstraintSet, float, Evaluation, float], tuple[Evaluation, bool]]
#: Relative accuracy of a radius, the default tolerance of a fit.
RADIUS_TOL = 1e-6
#: Largest and smallest gap of a solve relative to mu r. The square root of the gap is about the error of mu, so the gap
#: decreases with the square of the last change of the radius. The iteration limit ends solves that stall.
GAP_SHARE, MIN_GAP_SHARE, MAX_SOLVE_ITER = 1e-3, 1e-8, 1_000
#: Maximum factor between consecutive radii, and maximum number of solves: bisection of all floats takes 31.
MAX_FACTOR, MAX_SOLVES = 10.0, 50
#: Maximum number of solves that stall: each takes as long as a whole fit may.
MAX_STALLS = 3
#: Relative difference below which values count as equal: several hundred rounding errors.
ROUNDING = 1e-13


def fit_penalised(setup: FitSetup, weight: float, limit: float | None) -> FitSetup:
    """Solve the penalised problem in half of the time limit, and return a setup with the ball of its solution."""
    f, ball, start = setup.problem.objective, setup.ball, setup.start
    start = start if start is not None and start.shape == f.shape else None
    # Limit the BLAS threads once here: each Hessian of a small problem would do it otherwise.
    with deadline(math.inf if limit is None else 0.5 * limit), single_blas_thread(f.shape[0] <= MOST_PARAMETERS):
        try:
            w, settled = minimize_penalised(f, ball, weight, start)
        except Expired:  # before the first evaluation
            w, settled = np.zeros(f.shape), False
        failure = "" if settled else TIME_LIMIT_MESSAGE if expired() else NO_RADIUS_MESSAGE
    return replace(setup, ball=ball_through(ball, w), start=w, start_is_optimal=True, failure=failure)


def norm_power(ball: ConstraintSet) -> float:
    """Return the exponent k of the penalty: the outer exponent of the norm, but at most 2."""
    inner = inner_ball(ball)
    return min(float(inner.q if isinstance(inner, GroupBall) else inner.p), 2.0)


def minimize_penalised(
    f: SmoothFunction, ball: ConstraintSet, weight: float, start: Array | None = None
) -> tuple[Array, bool]:
    """Minimise f plus ``weight / k`` times the k-th power of the norm of ``ball``, whose radius is ignored.

    Coefficients that the ball does not constrain are not penalised. ``start`` is an estimate of the minimiser.
    Returns the minimiser, and whether the method has converged.
    """
    begin, settled = np.zeros(f.shape) if start is None else start, False
    if (method := penalty_method(f, ball)) is not None:
        sets = method is minimize_with_penalty
        # Certificates multiply the gradient in free entries by their bound, so it has to vanish.
        own, gap = (
            (_small_quadratic_form(f) or f, WORKING_SET_GAP)
            if sets
            else (f, 0.0 if len(ball.structure(f.shape).free) else NEWTON_GAP)
        )
        current, settled = method(own, ball, weight, own.evaluate(own.point(begin), keep=True), gap)
        begin = current.point.w
    return (begin, settled) if settled or expired() else minimize_by_radius(f, ball, weight, begin)


def penalty_method(f: SmoothFunction, ball: ConstraintSet) -> PenaltyMethod | None:
    """Return `newton` for l_2, `minimize_with_penalty` for l_1 and group norms, and None for other norms."""
    structure = ball.structure(f.shape)
    lp = structure.lp if structure.weights is None else None
    if lp is not None and lp.p == 2.0:
        return newton
    flat = structure.group_l1
    sets = flat is not None and not flat.tight and f.structure.hessian and f.convex and not f.structure.smoothing_error
    return minimize_with_penalty if sets else None


def _small_quadratic_form(f: SmoothFunction) -> QuadraticForm | None:
    """Return least squares as a quadratic form, or None if it is larger than the data or than can be factorised."""
    d = f.shape[0]
    small = f.structure.quadratic_form and d <= (
        MOST_PARAMETERS if f.structure.n is None or d <= f.structure.n else MAX_DENSE_HESSIAN
    )
    return f.quadratic_form() if small else None


def newton(
    f: SmoothFunction, ball: ConstraintSet, weight: float, current: Evaluation, gap: float
) -> tuple[Evaluation, bool]:
    r"""Minimise :math:`f + \tfrac\lambda2 \|w\|^2` by Newton's method; also return whether it has reached the gap.

    The function is :math:`\lambda`-strongly convex in the entries inside the ball, so that a gradient s bounds the gap
    by :math:`\|s\|^2 / (2 \lambda)`.
    """
    d, form, penalty = f.shape[0], _small_quadratic_form(f), np.full(f.shape, weight)
    penalty[ball.structure(f.shape).free] = 0.0
    if form is not None:
        solve = _cholesky_solver(form.H + np.diag(penalty.reshape(d, -1)[:, 0]))
        w = solve(form.b.reshape(d, -1)).reshape(f.shape)
        if np.linalg.norm(form.H @ w + penalty * w - form.b) <= OPTIMALITY_TOL * np.linalg.norm(form.b):
            return f.evaluate(f.point(w), keep=True), True
    first, scale = float(np.linalg.norm(current.slope.gradient)), None
    for steps_left in reversed(range(MAX_NEWTON_STEPS + 1)):
        w, slope = current.point.w, current.slope.gradient + penalty * current.point.w
        size, goal = float(np.linalg.norm(slope)), math.sqrt(2.0 * weight * gap * abs(current.value)) + ROUNDING * first
        if size <= goal or not steps_left or expired():
            break
        try:
            hessian = f.hessian(current.point)
            assert hessian is not None
            if form is None and math.prod(f.shape) <= MAX_DENSE_HESSIAN and f.structure.hessian:
                step = _cholesky_solver(hessian.matrix + np.diag(penalty.ravel()))(slope.ravel()).reshape(f.shape)
            else:
                scale = hessian.diagonal() + penalty if scale is None else scale
                # Convergence is superlinear if the relative residual decreases with the gradient.
                rtol = max(0.1 * goal / size, 0.0 if f.structure.quadratic else min(0.1, math.sqrt(size / first)))
                step = _conjugate_gradients(hessian, penalty, slope, scale, rtol)
        except Expired:
            break
        trial = _backtrack(f, current, w - step, lambda v: 0.5 * float(np.vdot(penalty * v, v)))
        if trial is None:
            break
        current = trial
    return current, size <= max(goal, math.sqrt(OPTIMALITY_TOL) * float(np.linalg.norm(penalty * current.point.w)))


def _conjugate_gradients(hessian: Hessian, penalty: Array, slope: Array, scale: Array, rtol: float) -> Array:
    """Solve for a Newton step by preconditioned conjugate gradients, with at most `MAX_HESSIAN_PRODUCTS` products."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import LinearOperator, cg

    shape, own = slope.shape, penalty.ravel()
    H = LinearOperator(2 * (own.size,), lambda v: hessian.times(v.reshape(shape)).ravel() + own * v, dtype=float)
    M = diags_array(1.0 / np.where(scale > 0.0, scale, 1.0).ravel())
    return np.asarray(cg(H, slope.ravel(), rtol=min(rtol, 0.1), maxiter=MAX_HESSIAN_PRODUCTS, M=M)[0].reshape(shape))


def _cholesky_solver(H: Array) -> Callable[[Array], Array]:
    """Factorise a positive definite matrix, and return its solver; least squares if it is singular."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    try:
        factor = cho_factor(H, lower=True)
    except LinAlgError:
        return lambda b: lstsq(H, b)[0]
    return lambda b: cho_solve(factor, b)


def _backtrack(
    f: SmoothFunction, current: Evaluation, new: Array, penalty: Callable[[Array], float]
) -> Evaluation | None:
    """Halve the step towards ``new`` until the penalised value decreases; return the evaluation or None."""
    old, start = current.value + penalty(current.point.w), current.point.w
    share = 1.0
    while share > ROUNDING and (new != start).any():
        w = start + share * (new - start) if share < 1.0 else new
        trial = f.evaluate(f.point(w, current.point.intercept), keep=True)
        if trial.value + penalty(w) <= old + ROUNDING * abs(old):
            return trial
        share *= 0.5
    return None


def minimize_with_penalty(
    f: SmoothFunction, ball: ConstraintSet, level: float, current: Evaluation, tol: float
) -> tuple[Evaluation, bool]:
    """Minimise f plus ``level`` times the norm of a ball; also return whether the relative gap is reached.

    It takes the Newton steps on working sets of the constrained problem, with a fixed multiplier. The radius is
    ignored.
    """
    structure = ball.structure(f.shape)
    flat, free = structure.group_l1, structure.free
    assert flat is not None
    least = 0.0 if isinstance(f, QuadraticForm) else f.structure.least  # quadratic forms are those of least squares
    held, bound = np.delete(np.arange(f.shape[0]), free), structure.free_bound if len(free) else 0.0

    def evaluate(current: Evaluation) -> tuple[Evaluation, float, float]:
        """Return the evaluation, the penalised value and the duality gap."""
        w, g = current.point.w, current.slope.gradient
        norm = flat.norm(w[held])
        value = current.value + level * norm
        # The norm of the minimiser is at most (value - lower bound) / level.
        above = max(flat.level(g[held]) - level, 0.0) * max(norm, (value - least) / level)
        slopes = bound * float(np.abs(g[free]).sum())
        return current, value, inner(g, w) + level * norm + above + slopes

    def at(w: Array) -> Evaluation:
        return f.evaluate(f.point(w, current.intercept), keep=True)

    (current, value, gap), damping = evaluate(current), 0.0
    for _ in range(MAX_NEWTON_STEPS):
        if gap <= (0.0 if tol <= WORKING_SET_GAP else tol * abs(value)) or expired():
            break
        w, g = current.point.w, current.slope.gradient
        try:
            features = np.append(held[working_set(flat, w[held], g[held], level, SMALLEST)], free)
            model = FeatureModel(f, ball, current.point, g, features, damping)
        except Expired:
            break
        norm, slopes = flat.norm(w[held]), inner(g[free], w[free]) + bound * float(np.abs(g[free]).sum())
        # The gap over the ball through w, which the model can close; at w = 0, the gap over all points.
        near = inner(g[held], w[held]) + norm * max(flat.level(g[held]), level) + slopes if norm > 0.0 else gap
        goal = SHARE * near if gap > tol * abs(value) else 0.0
        penalty = replace(model.ball, radius=math.inf)
        own = model.columns, model.slope, penalty, model.start
        new = model.parameter(minimize_group_l1(*own, level, goal, free=model.free, bound=model.bound).w)
        trial, share = evaluate(at(new)), 1.0
        rounding, raised = 4.0 * UNIT * abs(value), min(max(4.0 * damping, 1.0), MOST_DAMPING)
        while trial[1] >= value - rounding and not (trial[1] <= value + rounding and trial[2] < gap):
            share *= 0.5
            if share <= UNIT or expired():
                break
            trial = evaluate(at(w + share * (new - w)))
        else:
            current, value, gap = trial
            damping = 0.5 * damping if share == 1.0 else raised
            continue
        if damping == raised or expired():
            break
        damping = raised  # without curvature the model has no minimum nearby
    return current, gap <= tol * abs(value)


def minimize_by_radius(f: SmoothFunction, ball: ConstraintSet, weight: float, start: Array) -> tuple[Array, bool]:
    r"""Find the radius r with :math:`\mu(r) = \lambda r^{k-1}`; return the minimiser, and whether r was found.

    The function :math:`\lambda(r) = \mu(r) / r^{k-1}` is decreasing, and :math:`r^{1-k}` is about linear in
    :math:`\lambda`: exactly so for small r, and nearly so elsewhere if k = 2 (More and Sorensen, 1983). For k = 1, r
    itself is about linear. So the next radius comes from the secant through the last two, and from bisection if that
    leaves the bracket. The search has converged if the radius is known to `RADIUS_TOL`, even if rounding or a kink
    determines its multiplier, or if the multiplier equals the target.
    """
    power = norm_power(ball)
    zero = evaluate_at_zero(f, ball)
    steepest = multiplier(resized(ball, 1.0), zero.slope.gradient) or 0.0
    if not steepest > (weight if power == 1.0 else 0.0):
        return zero.point.w, True
    linear = 1.0 if power == 1.0 else 1.0 - power  # r to this power is about linear
    # Upper bound of the root: the penalty is at most the decrease of f, and its slope at most that of f at zero.
    low, high = 0.0, float(power * max(zero.value - f.structure.least, 0.0) / weight) ** (1.0 / power)
    if power > 1.0 and high > 0.0:
        high = math.exp(min(math.log(high), math.log(steepest / weight) / (power - 1.0)))
    if not high > ZERO_RADIUS:
        return zero.point.w, True
    norm, w, value = ball_norm(ball, start), start, zero.value
    curvature = 0.0 if norm > 0.0 else curvature_at_zero(f, ball, zero)
    radius = norm if norm > 0.0 else min(high, steepest / curvature if curvature > 0.0 else 1.0)
    previous, share = (steepest, 0.0) if power == 1.0 else None, GAP_SHARE
    radius_found, stalled, slope = False, 0, 1.0 / steepest
    for _ in range(MAX_SOLVES):
        result = _minimize(f, resized(ball, radius), w, share * weight * radius**power / (abs(value) or 1.0))
        w, value = result.w, result.value
        norm = min(ball_norm(ball, w) or radius, radius)  # an inexact solve may end at its start, zero
        level = (result.multiplier or 0.0) / radius ** (power - 1.0)
        slack = 0.0 if share == MIN_GAP_SHARE else math.sqrt(share)  # the error of an inexact multiplier
        if level > weight:
            low = max(low, radius - slack * radius)
        else:
            high = min(high, norm + slack * norm)
        current = level, norm**linear
        # The secant through two radii that agree up to their accuracy is meaningless.
        if previous is not None and level != previous[0] and abs(current[1] / (previous[1] or 1.0) - 1.0) > RADIUS_TOL:
            slope = (previous[1] - current[1]) / (previous[0] - level)
        x, previous = current[1] + slope * (weight - level), current
        log_step = math.log(x) / linear - math.log(radius) if x > 0.0 else math.inf if level > weight else -math.inf
        new = radius * math.exp(min(max(log_step, -math.log(MAX_FACTOR)), math.log(MAX_FACTOR)))
        if not low <= new <= high:
            most = min(
                high, MAX_FACTOR * radius
            )  # a form of moments has no least value, and no root is known to be below
            new = math.sqrt(low) * math.sqrt(most) if low > 0.0 else 0.5 * most
        change, stalled = abs(new / radius - 1.0), stalled + (result.status is Status.MAX_ITER)
        radius_found = share == MIN_GAP_SHARE and (change <= RADIUS_TOL or high <= low * (1.0 + RADIUS_TOL))
        if radius_found or expired() or stalled == MAX_STALLS or not new > ZERO_RADIUS:
            break
        share, radius = min(max(change**2, MIN_GAP_SHARE), GAP_SHARE), new
    return w, (radius_found and not stalled) or abs(level - weight) <= math.sqrt(GAP_SHARE) * weight


def evaluate_at_zero(f: SmoothFunction, ball: ConstraintSet) -> Evaluation:
    """Evaluate f at zero, with entries outside the ball at their optimum."""
    zero = f.evaluate(f.point(np.zeros(f.shape)))
    free = ball.structure(f.shape).free
    if not len(free):
        return zero
    result = _minimize(f, resized(ball, ZERO_RADIUS), None, GAP_SHARE)
    w = np.zeros(f.shape)
    w[free] = result.w[free]
    return f.evaluate(f.point(w, result.intercept))


def curvature_at_zero(f: SmoothFunction, ball: ConstraintSet, zero: Evaluation) -> float:
    """Return the curvature of f at zero in the direction of the first Frank-Wolfe vertex; 0 if it is unknown."""
    hessian = f.hessian(zero.point)
    if hessian is None:
        return 0.0
    vertex = resized(ball, 1.0).lmo(zero.slope.gradient)
    vertex[ball.structure(f.shape).free] = 0.0
    return float(np.vdot(vertex, hessian.times(vertex)))


def _minimize(f: SmoothFunction, ball: ConstraintSet, start: Array | None, tol: float) -> Result:
    return raise_if_interrupted(
        minimize(f, ball, start=nearest_feasible(ball, start, f.shape), tol=tol, max_iter=MAX_SOLVE_ITER, record=0)
    )
