"""The main loop: `minimize`, `iterate`, and the `Run` that is passed to callbacks."""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from projfree.algebra import is_structured, same, zeros
from projfree.algebra.hashing import short_hash
from projfree.checks import all_finite, at_least, count, instance, positive, real_array, shown
from projfree.deadline import Expired, deadline, expired
from projfree.numerics.compilation import compile_seconds
from projfree.objectives.base import Evaluation, SmoothFunction
from projfree.objectives.blackbox import NotFiniteError
from projfree.run.callbacks import Callback, as_callbacks, closing
from projfree.run.certificate import Certificate, recompute_certificate
from projfree.run.lower_bound import LowerBound, next_check
from projfree.run.result import Result, Status, Trace
from projfree.runtime import single_blas_thread
from projfree.sets.base import ConstraintSet, frank_wolfe_gap
from projfree.sets.schatten import compressed
from projfree.solvers.base import Solver, State
from projfree.solvers.choose import Plan, plan

if TYPE_CHECKING:
    from projfree.run.checkpoint import SavedRun

log = logging.getLogger(__name__)

#: The relative gap is the gap divided by the absolute value, or by this fraction of the value at the centre if larger.
CENTRE_SHARE = 1e-6
#: A value at the centre below this fraction of the terms that cancel in it counts as rounding.
ROUNDED = 1e-12
#: Smallest scale, far above the rounding error of a function that is zero everywhere.
LEAST_SCALE = 1e-270
#: What error messages suggest if a state or a checkpoint cannot be used.
RESTART = "begin anew without it"
#: Hashes from `short_hash`, which are omitted from messages.
HASH = re.compile(r"\b[0-9a-f]{16}\b")


def iterate(
    objective: SmoothFunction,
    ball: ConstraintSet,
    solver: Solver | Literal["auto"] | None = "auto",
    *,
    start: Any = None,
    seed: int = 0,
    state: State | None = None,
) -> Iterator[State]:
    """Yield the state of a solver after each iteration, endlessly.

    Examples
    --------
    >>> import numpy as np
    >>> from itertools import islice
    >>> from projfree import LpBall, PrimalAveraging, QuadraticForm, iterate
    >>> f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    >>> [state.t for state in islice(iterate(f, LpBall(2, radius=1.0), PrimalAveraging()), 3)]
    [1, 2, 3]
    """
    if state is not None:
        instance("state", state, State, "result.state")
    state, _ = _first_state(objective, ball, solver, start, seed, state)
    solver = cast("Solver", state.solver)
    state = replace(state, problem=fingerprint(objective, ball, solver))
    while True:
        state = solver.step(objective, ball, state)
        yield state


def minimize(
    objective: SmoothFunction,
    ball: ConstraintSet,
    solver: Solver | Literal["auto"] | None = "auto",
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    start: Any = None,
    seed: int = 0,
    callbacks: Sequence[Callback] | Callback = (),
    record: int = 1,
    state: State | str | os.PathLike[str] | None = None,
    check_start: bool = False,
) -> Result:
    """Minimise an objective over a set, with a certified bound on the distance to the minimum.

    Parameters
    ----------
    objective : SmoothFunction
        Function to minimise: `Objective`, `QuadraticForm`, `BlackBox` or `Perturbed`.
    ball : ConstraintSet
        Set to minimise over.
    solver : Solver or "auto"
        Solver; by default `plan` chooses one, which the result records, or it is the solver of ``state``.
    tol : float
        The run ends when the relative gap, ``(value - bound) / max(|value|, 1e-6 |f0|)``, is at most this, where f0 is
        the value at the centre of the set (at zero for losses with exponentials). For a non-convex objective, the gap
        is the Frank-Wolfe gap.
    max_iter : int
        Maximum number of iterations.
    time_limit : float, optional
        Time limit in seconds, after which no iteration starts; a long one ends early or is discarded. The final
        verification takes additional time.
    start : array, optional
        Initial point, in the set; by default its centre.
    seed : int
        Determines every random draw.
    callbacks : callable or sequence of callables
        Called with the `Run` after every iteration; the run ends if one returns True.
    record : int
        Number of iterations between two rows of the trace; 0 for no trace.
    state : State or path, optional
        State of an earlier result, or folder of a `Checkpoint`, to continue from; ``start`` and ``seed`` are then those
        of the earlier run.
    check_start : bool
        Whether to certify the initial point first, which costs a pass, and to end if it meets the tolerance.

    Returns
    -------
    Result
        With the point, its value, the lower bound, and a certificate that others can check.

    Notes
    -----
    Ctrl-C ends the run with the best point so far and the status "interrupted".

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1.5, radius=1.0))
    >>> result.w.round(3), result.status.converged
    (array([0.499, 0.748]), True)
    """
    earlier: State | SavedRun | None = state if isinstance(state, State) else None
    if state is not None and earlier is None:
        from projfree.run.checkpoint import SavedRun

        earlier = SavedRun.load(state)
    compiled, callbacks = compile_seconds(), as_callbacks(callbacks)
    tol, max_iter, record = at_least("tol", tol, 0.0), count("max_iter", max_iter), count("record", record, lowest=0)
    if time_limit is not None:
        positive("time_limit", time_limit)
    first, chosen = _first_state(objective, ball, solver, start, seed, earlier)
    run = Run(objective, ball, first, tol=tol, max_iter=max_iter, record=record)
    if earlier is not None and not isinstance(earlier, State):
        earlier.restore(run)
    with closing(callbacks), single_blas_thread():
        with deadline(time_limit):
            status = run_steps(run, callbacks, check_start)
        if run.certificate is None:
            status = run.certify(status) or status
    assert run.certificate is not None
    f, short = run.f, status in (Status.MAX_ITER, Status.PRECISION) and run.iteration > 0
    if short and not f.reported.structure.predictions and not run.value < run.first_value:
        status = Status.STALLED
    problem, kind = fingerprint(f, ball, run.solver), type(run.state)
    result = Result(
        w=run.best.w.copy(),
        intercept=None if run.best.intercept is None else run.best.intercept.copy(),
        value=run.value,
        bound=run.bound if run.convex else None,
        gap=run.gap,
        relative_gap=run.relative_gap,
        n_iter=run.iteration,
        n_passes=run.passes,
        seconds=run.seconds,
        status=status,
        trace=run.trace,
        certificate=run.certificate,
        state=kind(
            **{name: getattr(run.state, name) for name in kind.stored_fields()}, solver=run.solver, problem=problem
        ),
        solver=run.solver,
        multiplier=run.multiplier,
        plan=chosen,
        compile_seconds=compile_seconds() - compiled,
    )
    if result.compile_seconds > 0.0:
        log.info("compiled in %.1f s, once: the next process finds the code on disk", result.compile_seconds)
    log.info("%s: %s after %d iterations", type(run.solver).__name__, result.status, result.n_iter)
    return result


def run_steps(run: Run, callbacks: Sequence[Callback], check_start: bool = False) -> Status:
    """Run the iterations until a stopping condition holds, and return the status."""
    f = run.opened
    try:
        if not (run.iteration or f.structure.predictions or same(run.state.x.w, run.centre)):
            _ = run.scale  # the value at the centre shows what is rounding at a good initial point
        status = run.certify() if check_start else None
        while status is None:
            if run.certifies and run.iteration and run.is_due():
                status = run.certify()
            if status is None:
                status = Status.MAX_ITER if run.iteration >= run.max_iter else Status.TIME_LIMIT if expired() else None
            if status is None:
                begun, compiled = time.perf_counter(), compile_seconds()
                state = run.solver.step(run.opened, run.ball, run.state)
                run.learn_step(state, begun, compiled)
                if any([callback(run) for callback in callbacks]):
                    return Status.CALLBACK
        return status
    except Expired:  # during a step, which is discarded
        return Status.TIME_LIMIT
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    except NotFiniteError as error:
        log.warning("iteration %d: %s", run.iteration + 1, error)
        return Status.NOT_FINITE


# ---------------------------------------------------------------- arguments


def _first_state(
    f: SmoothFunction, ball: ConstraintSet, solver: Any, start: Any, seed: int, earlier: State | SavedRun | None
) -> tuple[State, Plan | None]:
    """Validate the arguments; return an earlier or a new state with its solver, and the plan that chose the solver.

    The problem of an earlier run is compared first, because messages of the solver about another problem would be
    confusing.
    """
    instance("objective", f, SmoothFunction, "Objective(Squared(), as_data(X, y))` or `BlackBox(fun, shape)")
    instance("ball", ball, ConstraintSet, "LpBall(2, radius=1.0)")
    chosen = None
    if solver in ("auto", None) and earlier is not None:
        solver = earlier.solver
    elif solver in ("auto", None):
        chosen = plan(f, ball)
        solver = chosen.solver
    instance("solver", solver, Solver, "FrankWolfe()")
    if earlier is not None:
        refuse_other(getattr(earlier, "name", "`state`"), earlier.problem, fingerprint(f, ball, solver))
    solver.check(f, ball)
    if isinstance(earlier, State):
        return replace(earlier, solver=solver), chosen
    array = ball.centre(f.shape) if start is None else start
    if start is not None and not is_structured(start):
        array = all_finite("start", real_array("start", start))
    if array.shape != f.shape:
        raise ValueError(f"`start` must have the shape {f.shape} of the objective's parameter, got {array.shape}.")
    x = f.point(array)
    if start is not None and not ball.contains(x.w):
        given = repr(array) if is_structured(array) else shown(array.ravel().tolist())
        raise ValueError(f"`start` must lie in {ball!r}, got {given}; scale or project it first.")
    return replace(solver.init(f, ball, x, count("seed", seed, lowest=0)), solver=solver), chosen


def fingerprint(f: SmoothFunction, ball: ConstraintSet, solver: Solver) -> dict[str, str]:
    """Return strings that identify the parts of a problem: bounds of one problem do not hold for another."""
    parts = {"objective": f.fingerprint(), "set": _describe(ball), "solver": _describe(solver)}
    return parts | {"shape": str(f.shape)}


def _describe(thing: Any) -> str:
    if isinstance(thing, ConstraintSet) and (own := thing.fingerprint()):
        return own
    if is_dataclass(thing) and not isinstance(thing, type):
        inside = ", ".join(f"{f.name}={_describe(getattr(thing, f.name))}" for f in fields(thing))
        return f"{type(thing).__name__}({inside})"
    if isinstance(thing, np.ndarray):
        return f"array {thing.shape} {short_hash('', thing)}"
    return getattr(thing, "__qualname__", None) or repr(thing)


def refuse_other(name: str, theirs: Mapping[str, str], mine: Mapping[str, str]) -> None:
    """Raise ValueError with the first part in which two problems differ, and with what to do instead."""
    for part, own in mine.items():
        if theirs.get(part) != own:
            its, this = (HASH.sub("", str(text)).strip() for text in (theirs.get(part), own))
            differ = "has other numbers" if its == this else f"is {its}, this one is {this}"
            raise ValueError(f"{name} is of another problem: its {part} {differ}; give the same {part}, or {RESTART}.")


# ---------------------------------------------------------------- the run


class Run:
    """A run: its state, trace, bounds and best point so far. It is passed to callbacks.

    Attributes
    ----------
    iteration, passes, seconds
        Number of iterations and passes so far, and the time of the solver, without compilation.
    value, bound, gap, relative_gap
        The best value and lower bound so far, and their difference (for a non-convex objective the latest Frank-Wolfe
        gap); infinite until known.
    best : Point
        The point with the best value.
    state : State
        The state of the solver.
    trace : Trace
        The rows recorded so far.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, PrimalAveraging, QuadraticForm, minimize
    >>> f, ball = QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)
    >>> minimize(f, ball, PrimalAveraging(), callbacks=[lambda run: run.relative_gap < 0.5]).status.name
    'CALLBACK'
    """

    def __init__(
        self,
        f: SmoothFunction,
        ball: ConstraintSet,
        state: State,
        *,
        tol: float,
        max_iter: int,
        record: int,
        certifies: bool = True,
    ) -> None:
        assert state.solver is not None
        self.f, self.ball, self.solver, self.state = f, ball, state.solver, state
        self.tol, self.max_iter, self.record, self.certifies = tol, max_iter, record, certifies
        # A separate workspace, so that passes of callbacks over `f` are not counted.
        self.opened, self.trace, self.lower_bound = f.open(), Trace(), LowerBound(ball, f.shape)
        self.seconds, self.first_iteration, self.passes_before = 0.0, state.t, 0.0
        self.best, self.value, self.first_value, self.latest_gap = state.x, math.inf, math.inf, math.inf
        #: Whether tangents are lower bounds: the function is declared convex, and no value contradicts that.
        self.convex = f.convex
        #: The point whose value sets the scale of gaps if the minimum is close to zero, and that value if it is known.
        self.centre = ball.centre(f.shape) if f.structure.term_size is None else zeros(f.shape)
        self.centre_value = math.nan
        #: Number of passes after which the next tangent is computed, and the next certificate.
        self.next_tangent, self.next_certificate = next_check(0.0), 0.0
        #: Whether bounds and averages were loaded from a file, so that only bounds recomputed at exit count.
        self.unproved = False
        #: The certificate of the current iterate and the multiplier of the radius, if they are known.
        self.certificate: Certificate | None = None
        self.multiplier: float | None = None
        #: Decrease of the best value in the last step.
        self.fell = 0.0

    @property
    def iteration(self) -> int:
        """Number of iterations of this run so far."""
        return self.state.t - self.first_iteration

    @property
    def passes(self) -> float:
        """Number of passes over the data so far."""
        return self.opened.passes + self.passes_before

    @property
    def bound(self) -> float:
        """The best lower bound so far."""
        return self.lower_bound.bound

    @property
    def gap(self) -> float:
        """The certified gap of the best point; for a non-convex objective the latest Frank-Wolfe gap."""
        return self.value - self.bound if self.convex else self.latest_gap

    @property
    def scale(self) -> float:
        """The denominator of relative gaps; computing it may cost a pass."""
        if math.isnan(self.centre_value):
            f = self.opened.reported if self.f.structure.smoothing_error else self.opened
            try:
                self.centre_value = f.evaluate(f.point(self.centre), tangent=False).reported.value
            except NotFiniteError:  # not defined at the centre
                self.centre_value = 0.0
            if f is not self.opened:
                self.passes_before += f.passes
        centre, terms = abs(self.centre_value), self.f.structure.term_size or 0.0
        share = terms if centre <= ROUNDED * terms else CENTRE_SHARE * centre  # smaller values are rounding
        return max(abs(self.value), share, LEAST_SCALE)

    @property
    def relative_gap(self) -> float:
        """The gap divided by the scale."""
        gap = self.gap
        return gap / self.scale if math.isfinite(gap) else math.inf

    def is_due(self) -> bool:
        """Return whether the certificate should be recomputed, because a stopping condition may hold."""
        if self.state.done or (self.f.convex and not self.convex):
            return True
        if self.passes < self.next_certificate:
            return False
        # The scale may cost a pass: compute it only if there is a gap.
        if math.isfinite(self.gap) and self.gap <= max(self.tol * self.scale, self._precision()):
            return True
        # If a step did not optimise the intercept, its bound is reduced because the derivative in the intercept is not
        # zero; the certificate optimises it and has a larger bound.
        lowered = self.state.evaluation is not None and self.state.evaluation.rest is not None
        return lowered and self.state.gap <= 0.5 * self.tol * self.scale

    def _precision(self) -> float:
        """Return the gap that rounding errors and smoothing may cause."""
        if not self.convex:
            return 0.0
        # If the value still decreases, rounding does not limit the run yet, however large the allowance is.
        rounding = 0.0 if self.fell > self.tol * self.scale else self.lower_bound.allowance
        return 2.0 * (rounding + self.f.structure.smoothing_error)

    def certify(self, stopped: Status | None = None) -> Status | None:
        """Recompute the certificate from the best point; return the status if the run should end, else None.

        If the run has ended already, ``stopped`` is its status. The last iterate, whose value may be unknown, is then
        evaluated first, and the status changes if the tolerance has been reached.
        """
        if stopped is not None:
            try:
                self.learn_value(self.iteration, self.opened.evaluate(self.state.x, tangent=False).reported)
            except NotFiniteError:
                stopped = stopped if stopped is Status.INTERRUPTED else Status.NOT_FINITE
        gap = recompute_certificate(self).gap
        self.next_certificate = next_check(self.passes)
        if self.f.convex and not self.convex:
            return stopped if stopped is Status.INTERRUPTED else Status.NOT_CONVEX  # it ends further runs as well
        if gap / self.scale <= self.tol and stopped in (None, Status.MAX_ITER, Status.TIME_LIMIT):
            return Status.CONVERGED if self.convex else Status.STATIONARY
        if stopped is None and self.iteration and (self.state.done or gap <= self._precision()):
            smoothed = self.f.structure.smoothing_error > self.lower_bound.allowance
            return Status.SMOOTHED if smoothed else Status.PRECISION
        return stopped

    def learn_step(self, state: State, begun: float, compiled: float) -> None:
        """Record the result of a step, and compute a tangent for the lower bound if one is due.

        The step started at the time ``begun``, when compilation had taken ``compiled`` seconds in total.
        """
        f, before, value, self.certificate = self.opened, self.state.x, self.value, None
        if self.lower_bound.factored and (short := compressed(self.ball, state.x.w)) is not state.x.w:
            state = replace(state, x=f.point(short, state.x.intercept))
        # If the deadline ended the step, a further step may succeed.
        self.state = state = replace(state, done=False) if state.done and expired() else state
        self.convex = self.convex and not f.structure.contradicted
        here = state.evaluation  # has an estimate of the tangent if rows were sampled
        tangent = here if here is not None and math.isfinite(here.slope.constant) else None
        if self.convex and tangent is not None:
            self.lower_bound.add_step(state, tangent)
        found = {}  # evaluations of iterates that need no pass
        for t, x in ((self.iteration - 1, before), (self.iteration, state.x)):
            if tangent is not None and tangent.point.handle is x.handle:
                found[t] = tangent
            elif not math.isnan((known := f.evaluate(x, tangent=False, read=False)).value):
                found[t] = known
        # An iteration counts as one pass, so that the schedule does not depend on how the rows are stored.
        done = self.passes if tangent is None else float(self.iteration)
        if state.bound is not None or tangent in found.values():
            self.next_tangent = next_check(done)  # the solver has computed a tangent
        elif self.certifies and done >= self.next_tangent:
            found[self.iteration] = new = f.evaluate(state.x)
            self.next_tangent, self.convex = next_check(done), self.convex and not f.structure.contradicted
            if self.convex:
                self.lower_bound.offer(new.reported.slope, state.x.w)
        if self.iteration in found:
            self.state = replace(state, x=found[self.iteration].point)  # with the optimal intercept
        self.seconds += max(0.0, time.perf_counter() - begun - (compile_seconds() - compiled))
        if self.record and self.iteration % self.record == 0:
            bound = self.bound if self.convex else math.nan
            self.trace.add(self.iteration, self.passes, self.seconds, math.nan, bound, math.nan, state.gamma)
        for t, each in found.items():
            self.learn_value(t, each.reported, state.gap if each is tangent else math.nan)
        self.fell = min(value, self.first_value) - self.value

    def learn_value(self, iteration: int, found: Evaluation, gap: float = math.nan) -> None:
        """Record the evaluation of an iterate; ``gap`` is its Frank-Wolfe gap if that is known."""
        # Solvers evaluate an iterate in the next iteration at the latest.
        row = next((row for row in self.trace.rows[-2:] if row["iteration"] == iteration), {"bound": math.nan})
        row["value"], row["gap"] = found.value, found.value - row["bound"]
        if iteration == 0:
            self.first_value = found.value
            if same(found.point.w, self.centre) and not self.f.structure.smoothing_error:
                self.centre_value = found.value
        if found.value < self.value:
            self.best, self.value = found.point, found.value
        if not self.convex and found.tangent is not None:
            if math.isnan(gap):
                gap = frank_wolfe_gap(self.ball, found.slope.gradient, found.point.w)
            self.latest_gap = row["gap"] = gap
