"""How a run ends: the verdict, the recomputation at exit, and the result."""

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
from projfree.run.progress import Run
from projfree.run.result import Result
from projfree.run.status import Status
from projfree.sets.base import ConstraintSet, NormBall
from projfree.solvers.base import State

#: The part of the tolerance at which a gap is worth a recomputation soon after one that disappointed.
MUCH = 0.1
#: And the one at which it is worth one at all: an intercept that is searched for moves the gap a little.
LIKELY = 0.5


def verdict(run: Run) -> tuple[Status, Certificate] | None:
    """Why the run should end now, with the recomputed certificate; None if it should go on.

    A run counts as converged only once its claim has been recomputed from the point alone. A recomputation that
    disappoints is not repeated before some passes have gone by, or the claim has become much better.
    """
    if _refuted(run):
        return Status.NOT_CONVEX, confirm(run)
    begun = run.iteration > 0
    done = begun and (run.state.done or run.state.too_large)
    if not done and (not begun or (run.passes < run.next_confirm and not _claims(run, MUCH))):
        return None  # without asking for the value, which may cost a read
    # Without a value and a bound there is no gap, and its scale, which may cost a read, is not asked for.
    proven = done or (math.isfinite(run.gap) and run.relative_gap <= max(run.tol, floor(run)))
    if not (proven or _claims(run, LIKELY)):
        return None
    certificate = confirm(run, look_back=proven)
    if _refuted(run):
        return Status.NOT_CONVEX, certificate
    relative = certificate.gap / run.scale
    if relative <= run.tol:
        return _reached(run), certificate
    if relative > floor(run) and run.state.too_large:
        return Status.TOO_LARGE, certificate
    if done or relative <= floor(run):
        return Status.SMOOTHED if run.f.excess > run.ladder.allowance else Status.PRECISION, certificate
    run.next_confirm = run.after(run.passes)
    return None


def certified(run: Run) -> tuple[Status, Certificate | None] | None:
    """The certificate of the start of a run, None where it does not reach the tolerance."""
    certificate = confirm(run, look_back=False)
    return (_reached(run), certificate) if certificate.gap <= run.tol * run.scale else None


def _claims(run: Run, part: float) -> bool:
    """Whether a step without a search for the intercept has a gap of this part of the tolerance.

    The bound that it has proven is less than what the recomputation will prove.
    """
    found = run.state.evaluation
    return found is not None and found.rest is not None and run.state.gap <= part * run.tol * run.scale


def _refuted(run: Run) -> bool:
    """Whether values contradict the user's statement that the function is convex."""
    return run.f.convex and not run.convex


def _reached(run: Run) -> Status:
    return Status.CONVERGED if run.convex else Status.STATIONARY


def floor(run: Run) -> float:
    """The relative gap below which rounding, or how much of the function was smoothed, decides, not the solver."""
    return 2.0 * (run.ladder.allowance + run.f.excess) / run.scale if run.convex else 0.0


def confirm(run: Run, look_back: bool = True) -> Certificate:
    """Recompute the value at the best point and a bound, trusting nothing that was kept but the points.

    Where the run itself has read the best point from its parameter alone, that was the recomputation. The tangent at
    the point itself is tried first; where it does not reach the tolerance, that at the ladder's witness costs one more
    pass, unless nobody is to look back at it.
    """
    f = run.opened.reported.open()  # what is verified was not remembered
    w = _inside(run)
    known = _recomputed(run) if w is run.best.w else None
    looked = f.evaluate(f.point(w, run.best.intercept)) if known is None else known
    x, m = looked.point, looked.slope
    run.best, run.value = x, reported_value(f, looked)
    run.gradient = m.gradient
    if run.unproved:
        _prove_anew(run)
    if run.f.excess and run.scale > abs(run.value):  # gaps are relative to the centre, whose value was only bounded
        run.centre_value = f.value(f.point(f.reference(run.ball)))
    at, bound = _bound(run, f, looked, look_back) if run.convex else (x, -math.inf)
    run.work_before += f.work
    if run.convex:
        return _certificate(run, at, bound, run.value - bound)
    if run.f.convex:
        run.ladder.forget()
        run.trace.withdraw()
    run.latest_gap = run.ball.gap(m.gradient, x.w)
    return _certificate(run, x, None, run.latest_gap)


def _bound(run: Run, f: SmoothFunction, looked: Evaluation, look_back: bool) -> tuple[Point, float]:
    """A witness and the bound that the tangent there proves, in the workspace of the check at exit."""
    x, m = looked.point, looked.slope
    if not run.unproved:
        run.ladder.evaluate(run.state.answer)
    run.support = run.ball.support(-m.gradient)
    at, bound = x, run.ladder.offer(m, x.w, run.support)
    witness = run.ladder.witness if look_back else None
    if run.value - bound > run.tol * run.scale and witness is not None and not same(witness, x.w):
        there = f.evaluate(f.point(witness, x.intercept))
        other = run.ladder.offer(there.slope, there.point.w)
        at, bound = (there.point, other) if other > bound else (at, bound)
    if bound < f.least:  # as happens where the minimum is hidden by rounding
        bound = f.least
        run.ladder.bound = max(run.ladder.bound, bound)
    if f.contradicted is not None and (run.iteration <= 1 or not m.gradient.any()):
        _look_elsewhere(run, f)
    run.contradicted = bool(f.contradicted)
    if run.convex:
        refuse_contradiction(run.f, run.ball, run.value, run.bound, run.ladder.allowance)
    return at, bound


def _look_elsewhere(run: Run, f: SmoothFunction) -> None:
    """Compare the value at a point where the solver stays with those at three random points of the set.

    A maximum or a saddle that was said to be a minimum would not show otherwise.
    """
    rng, centre = np.random.default_rng(run.state.seed), run.ball.centre(f.shape)
    for share in (1.0, 1.0, 0.5):  # two vertices and a point halfway, as many as are remembered with it
        vertex = run.ball.lmo(rng.standard_normal(f.shape))
        with suppress(NotFiniteError):  # infinity is above any tangent
            f.evaluate(f.point(centre + share * (vertex - centre)))


def _recomputed(run: Run) -> Evaluation | None:
    """The evaluation of the best point, where a read of the run was what a recomputation would be; else None."""
    if run.unproved or run.f.reported is not run.f:
        return None
    found = run.opened.recomputed(run.best)
    return found if found is not None and found.rest is None else None


def remembered(run: Run) -> Certificate:
    """The certificate where rows are out of reach: what the run has found itself, without a recomputation."""
    if run.unproved:
        run.ladder.forget()
    if math.isnan(run.centre_value):
        run.centre_value = 0.0  # gaps are then relative to the value itself
    return _certificate(run, run.best, run.bound if run.convex else None, run.gap)


def _prove_anew(run: Run) -> None:
    """Forget what a file said about bounds and values, and refuse a point that is not in the set.

    The averages of tangents stay: they tell when a look may be worth while, and prove nothing.
    """
    run.ladder.forget()
    if run.scale > abs(run.value):  # then the value at the centre decides, which the file may have named too
        run.centre_value = math.nan
    if not run.ladder.factored and not run.ball.contains(run.best.w):  # factors are scaled back below
        raise ValueError(f"the checkpoint leads to a point outside {run.ball!r}; begin anew with `start=`.")


def _inside(run: Run) -> Array:
    """The best parameter; one in factors is scaled back where compressions let it out."""
    best, ball = run.best, run.ball
    norm = ball.norm(best.w) if run.ladder.factored and isinstance(ball, NormBall) else 0.0
    if isinstance(ball, NormBall) and norm > ball.radius:
        return best.w * (ball.radius / norm * (1.0 - 4.0 * UNIT))
    return best.w


def refuse_contradiction(f: SmoothFunction, ball: ConstraintSet, value: float, bound: float, allowance: float) -> None:
    """A bound above a value that the function takes: what the user said about f or the set is not so."""
    if bound > value + 1e-9 * max(abs(value), abs(bound)) + 4.0 * allowance:
        name = type(f.reported).__name__
        raise ValueError(
            f"the lower bound {bound:.10g} exceeds the value {value:.10g}: {name} is not convex, or `support` "
            f"of {ball!r} is too small, or either is less accurate than it says (`rtol=`, `support_rtol=`); "
            "`check_gradient(f, w)` says whether the gradient is right."
        )


def _certificate(run: Run, at: Point, bound: float | None, gap: float) -> Certificate:
    f, x = run.f.reported, run.best
    return Certificate(
        ball=run.ball,
        w=x.w,
        intercept=x.intercept,
        value=run.value,
        bound=bound,
        gap=gap,
        tolerance=run.tol * run.scale,
        witness=at.w,
        witness_intercept=at.intercept,
        loss=f.row_loss,
    )


def finish(run: Run, status: Status, certificate: Certificate | None, compiled: float, *, keep: bool) -> Result:
    """The result; recomputes value and bound unless the verdict has just done so.

    Parameters
    ----------
    compiled : float
        `compile_seconds` when the run began.
    keep : bool
        Whether another run may go on from the state.
    """
    f, interrupted = run.f.reported, status is Status.INTERRUPTED
    if certificate is None:
        try:
            run.settle()
        except NotFiniteError:
            status = Status.NOT_FINITE
        certificate = confirm(run, look_back=status is not Status.NOT_FINITE)
        limited = status in (Status.MAX_ITER, Status.TIME_LIMIT) and math.isfinite(certificate.gap)
        if limited and certificate.gap <= run.tol * run.scale:
            status = _reached(run)  # the last look shows that the tolerance was reached at the limit
        if _refuted(run):
            status = Status.NOT_CONVEX
        if interrupted:  # which ends other runs too
            status = Status.INTERRUPTED
    ended = status in (Status.MAX_ITER, Status.PRECISION)
    if ended and not f.has_images and run.iteration and not run.value < run.first_value:
        status = Status.STALLED
    # Where f is convex, with the support that the bound was made of.
    support = run.support if run.convex else None
    multiplier = None if run.gradient is None else run.ball.multiplier(run.gradient, support)
    w, state = run.best.w.copy(), run.state
    if keep:
        state = replace(state, evaluation=None, found=(), solver=run.solver, problem=dict(state.problem))
    else:
        state = State(run.iteration, Point(w))
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
        multiplier=multiplier,
        plan=run.plan,
        compile_seconds=compile_seconds() - compiled,
    )
