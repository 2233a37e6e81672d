"""How a run ends: the stopping rule, the recomputation at exit, and the result."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from projfree.algebra import UNIT, Point, same
from projfree.checks import Array
from projfree.numerics.compilation import compile_seconds
from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import NotFiniteError
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.rounding import reported_value
from projfree.run.certificate import Certificate
from projfree.run.progress import Run, next_check, reference
from projfree.run.result import Result, Status
from projfree.sets.base import ConstraintSet, NormBall
from projfree.solvers.base import State


def check_stopping(run: Run) -> tuple[Status, Certificate] | None:
    """Why the run should end now, with the recomputed certificate; None if it should continue.

    A run counts as converged only once its claim has been recomputed from the point alone. A recomputation that
    fails is not repeated before some passes have gone by.
    """
    if _is_refuted(run):
        return Status.NOT_CONVEX, recompute_certificate(run)
    done = run.state.done
    if not run.iteration or (run.passes < run.next_confirm and not done):
        return None
    # The scale of the gap may cost a read: it is computed only if there is a gap.
    proven = done or (math.isfinite(run.gap) and run.relative_gap <= max(run.tol, _precision(run)))
    if not (proven or _claims(run)):
        return None
    certificate = recompute_certificate(run, look_back=proven)
    relative = certificate.gap / run.scale
    if _is_refuted(run):
        return Status.NOT_CONVEX, certificate
    if relative <= run.tol:
        return _converged(run), certificate
    if done or relative <= _precision(run):
        smoothed = run.f.structure.smoothing_error > run.lower_bound.allowance
        return Status.SMOOTHED if smoothed else Status.PRECISION, certificate
    run.next_confirm = next_check(run.passes)
    return None


def certify_start(run: Run) -> tuple[Status, Certificate | None] | None:
    """The certificate of the start of a run, None if it does not reach the tolerance."""
    certificate = recompute_certificate(run, look_back=False)
    return (_converged(run), certificate) if certificate.gap <= run.tol * run.scale else None


def _claims(run: Run) -> bool:
    """Whether a step that did not optimise the intercept has a gap well within the tolerance.

    Its bound is lowered by the derivative along the intercept; the recomputation will prove more.
    """
    found = run.state.evaluation
    return found is not None and found.rest is not None and run.state.gap <= 0.5 * run.tol * run.scale


def _is_refuted(run: Run) -> bool:
    """Whether values contradict the user's statement that the function is convex."""
    return run.f.convex and not run.convex


def _converged(run: Run) -> Status:
    return Status.CONVERGED if run.convex else Status.STATIONARY


def _precision(run: Run) -> float:
    """The relative gap below which rounding, or the smoothing of the function, decides, not the solver."""
    return 2.0 * (run.lower_bound.allowance + run.f.structure.smoothing_error) / run.scale if run.convex else 0.0


def recompute_certificate(run: Run, look_back: bool = True) -> Certificate:
    """Recompute the value at the best point and a bound, trusting nothing that was stored but the points.

    If the run itself has read the best point from its parameter alone, that was the recomputation. The tangent at the
    point itself is tried first; if it does not reach the tolerance, that at the witness of the averages costs one more
    pass, unless ``look_back`` is False.
    """
    f = run.opened.reported.open()  # with an empty memory
    w = _scaled_inside(run)
    looked = _already_recomputed(run) if w is run.best.w else None
    if looked is None:
        looked = f.evaluate(f.point(w, run.best.intercept))
    run.best, run.value, run.gradient = looked.point, reported_value(f, looked), looked.slope.gradient
    if run.unproved:
        _discard_claims(run)
    if run.f.structure.smoothing_error and run.scale > abs(run.value):  # the value at the centre was only bounded
        run.centre_value = f.value(f.point(reference(f, run.ball)))
    at, bound = _recompute_bound(run, f, looked, look_back) if run.convex else (run.best, -math.inf)
    run.work_before += f.work
    if run.convex:
        return _certificate(run, at, bound, run.value - bound)
    if run.f.convex:
        run.lower_bound.reset()
        run.trace.withdraw()
    run.latest_gap = run.ball.gap(run.gradient, run.best.w)
    return _certificate(run, run.best, None, run.latest_gap)


def _recompute_bound(run: Run, f: SmoothFunction, looked: Evaluation, look_back: bool) -> tuple[Point, float]:
    """A witness and the bound that the tangent there proves, in the workspace of the check at exit."""
    x, m, lower = looked.point, looked.slope, run.lower_bound
    if not run.unproved:
        lower.evaluate(run.state.answer)
    run.support = run.ball.support(-m.gradient)
    at, bound = x, lower.offer(m, x.w, run.support)
    witness = lower.witness if look_back else None
    if run.value - bound > run.tol * run.scale and witness is not None and not same(witness, x.w):
        there = f.evaluate(f.point(witness, x.intercept))
        other = lower.offer(there.slope, there.point.w)
        at, bound = (there.point, other) if other > bound else (at, bound)
    least = f.structure.least
    if bound < least:  # as happens where the minimum is hidden by rounding
        bound = least
        lower.bound = max(lower.bound, bound)
    if f.contradicted is not None and (run.iteration <= 1 or not m.gradient.any()):
        _look_elsewhere(run, f)
    run.contradicted = bool(f.contradicted)
    if run.convex:
        refuse_contradiction(run.f, run.ball, run.value, run.bound, lower.allowance)
    return at, bound


def _look_elsewhere(run: Run, f: SmoothFunction) -> None:
    """Evaluate a user's function at three random points of the set.

    A maximum or a saddle that was said to be a minimum would not show otherwise.
    """
    rng, centre = np.random.default_rng(run.state.seed), run.ball.centre(f.shape)
    for share in (1.0, 1.0, 0.5):  # two vertices and a point halfway, as many as are remembered with it
        vertex = run.ball.lmo(rng.standard_normal(f.shape))
        with suppress(NotFiniteError):  # infinity is above any tangent
            f.evaluate(f.point(centre + share * (vertex - centre)))


def _already_recomputed(run: Run) -> Evaluation | None:
    """The evaluation of the best point, if a read of the run was what a recomputation would be; else None."""
    if run.unproved or run.f.reported is not run.f:
        return None
    found = run.opened.recomputed(run.best)
    return found if found is not None and found.rest is None else None


def remembered_certificate(run: Run) -> Certificate:
    """The certificate if rows are out of reach: what the run has found itself, without a recomputation."""
    if run.unproved:
        run.lower_bound.reset()
    if math.isnan(run.centre_value):
        run.centre_value = 0.0  # gaps are then relative to the value itself
    return _certificate(run, run.best, run.bound if run.convex else None, run.gap)


def _discard_claims(run: Run) -> None:
    """Forget what a file said about bounds and values, and refuse a point that is not in the set.

    The averages of tangents stay: they tell when a recomputation may be worthwhile, and prove nothing.
    """
    run.lower_bound.reset()
    if run.scale > abs(run.value):  # then the value at the centre decides, which the file may have named too
        run.centre_value = math.nan
    if not run.lower_bound.factored and not run.ball.contains(run.best.w):  # factors are scaled back
        raise ValueError(f"the checkpoint leads to a point outside {run.ball!r}; begin anew with `start=`.")


def _scaled_inside(run: Run) -> Array:
    """The best parameter; one in factors is scaled back if compressions let it out of the ball."""
    w, ball = run.best.w, run.ball
    if run.lower_bound.factored and isinstance(ball, NormBall) and (norm := ball.norm(w)) > ball.radius:
        return w * (ball.radius / norm * (1.0 - 4.0 * UNIT))
    return w


def refuse_contradiction(f: SmoothFunction, ball: ConstraintSet, value: float, bound: float, allowance: float) -> None:
    """Raise ValueError if a bound lies above a value: what the user said about f or the set is not so."""
    if bound > value + 1e-9 * max(abs(value), abs(bound)) + 4.0 * allowance:
        raise ValueError(
            f"the lower bound {bound:.10g} exceeds the value {value:.10g}: {type(f.reported).__name__} is not convex, "
            f"or `support` of {ball!r} is too small, or either is less accurate than it says (`rtol=`, "
            "`support_rtol=`); `check_gradient(f, w)` says whether the gradient is right."
        )


def _certificate(run: Run, at: Point, bound: float | None, gap: float) -> Certificate:
    return Certificate(
        ball=run.ball,
        w=run.best.w,
        intercept=run.best.intercept,
        value=run.value,
        bound=bound,
        gap=gap,
        tolerance=run.tol * run.scale,
        witness=at.w,
        witness_intercept=at.intercept,
        loss=run.f.reported.structure.loss,
    )


def finish(run: Run, status: Status, certificate: Certificate | None, compiled: float, *, keep: bool) -> Result:
    """The result; recomputes value and bound unless the stopping rule has just done so.

    Parameters
    ----------
    compiled : float
        `compile_seconds` when the run began.
    keep : bool
        Whether another run may continue from the state.
    """
    if certificate is None:
        status, certificate = _last_certificate(run, status)
    stopped_short = status in (Status.MAX_ITER, Status.PRECISION) and run.iteration
    if stopped_short and not run.f.reported.structure.predictions and not run.value < run.first_value:
        status = Status.STALLED
    # If f is convex, with the support that the bound was made of.
    support = run.support if run.convex else None
    w, state = run.best.w.copy(), State(run.iteration, Point(run.best.w))
    if keep:
        state = replace(run.state, evaluation=None, found=(), solver=run.solver, problem=run.problem)
    return Result(
        w=w,
        intercept=None if run.best.intercept is None else run.best.intercept.copy(),
        value=run.value,
        bound=run.bound if run.convex else None,
        gap=run.gap,
        relative_gap=run.relative_gap,
        smallest_gap=None if run.convex else min(run.smallest_gap, (run.latest_gap, run.iteration)),
        n_iter=run.iteration,
        n_passes=run.passes,
        seconds=run.seconds,
        status=status,
        trace=run.trace,
        certificate=certificate,
        state=state,
        solver=run.solver,
        multiplier=None if run.gradient is None else run.ball.multiplier(run.gradient, support),
        plan=run.plan,
        compile_seconds=compile_seconds() - compiled,
    )


def _last_certificate(run: Run, status: Status) -> tuple[Status, Certificate]:
    """The certificate of a run that was stopped, and the status, which may be that the tolerance was just reached."""
    interrupted = status is Status.INTERRUPTED
    try:
        run.settle()
    except NotFiniteError:
        status = Status.NOT_FINITE
    certificate = recompute_certificate(run, look_back=status is not Status.NOT_FINITE)
    limited = status in (Status.MAX_ITER, Status.TIME_LIMIT) and math.isfinite(certificate.gap)
    if limited and certificate.gap <= run.tol * run.scale:
        status = _converged(run)
    if _is_refuted(run):
        status = Status.NOT_CONVEX
    return Status.INTERRUPTED if interrupted else status, certificate  # an interrupt ends other runs too
