"""The one loop of the package: `minimize` and `iterate`."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from projfree.algebra import FactoredShape, Point, Structured
from projfree.checks import all_finite, at_least, count, instance, positive, real_array, shown
from projfree.data.base import RowsLostError
from projfree.deadline import Expired, deadline, expired
from projfree.numerics.compilation import compile_seconds
from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import NotFiniteError
from projfree.run.callbacks import Callback, closed, listed
from projfree.run.certificate import Certificate
from projfree.run.exit import certify_start, check_stopping, finish, remembered_certificate
from projfree.run.progress import ANEW, Run, fingerprint, refuse_other
from projfree.run.result import Result, Status
from projfree.runtime import single_blas
from projfree.sets.base import ConstraintSet
from projfree.solvers.base import Solver, State
from projfree.solvers.choose import Plan, plan

if TYPE_CHECKING:
    from projfree.run.checkpoint import Written

log = logging.getLogger(__name__)

#: Matrices of this many entries are worth the threads of BLAS.
LARGE = 1_000_000


def iterate(
    objective: SmoothFunction,
    ball: ConstraintSet,
    solver: Solver | Literal["auto"] | None = "auto",
    *,
    start: Any = None,
    seed: int = 0,
    state: State | None = None,
) -> Iterator[State]:
    """Yield the states of a solver without end, for those who own their loop.

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
    solver, _ = _checked(objective, ball, solver, state)
    state = replace(_first(objective, ball, solver, start, seed, state), problem=fingerprint(objective, ball, solver))
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
) -> Result:
    r"""Minimise an objective over a set, and say how far from the minimum the answer can be.

    Parameters
    ----------
    objective : SmoothFunction
        What to minimise: `Objective`, `QuadraticForm`, `BlackBox` or `Perturbed`.
    ball : ConstraintSet
        Where.
    solver : Solver or "auto"
        How; by default what `plan` chooses, which the result records, or the solver of ``state``.
    tol : float
        The run ends when the relative gap, ``(value - bound) / max(|value|, 1e-6 |f0|)``, is at most this, f0
        being the value at the centre of the set (at zero for losses with exponentials). Where the objective is not
        convex it speaks of the Frank-Wolfe gap.
    max_iter : int
        The largest number of iterations.
    time_limit : float, optional
        Seconds after which no further iteration is begun, and a long one ends early or is dropped; the exit check comes
        on top.
    start : array, optional
        A point of the set to begin at; by default its centre.
    seed : int
        Determines every random draw.
    callbacks : callable or sequence of callables
        Each is called with the `Run` after every iteration; one that returns True ends it.
    record : int
        Keep a row of the trace every so many iterations; 0 keeps none.
    state : State or path, optional
        Go on from the state of an earlier result, or from the folder of a `Checkpoint`; ``start`` and ``seed`` are then
        those of the earlier run.

    Returns
    -------
    Result
        With the point, its value, the proven bound, and a certificate that others can check.

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
    settings = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "start": start, "seed": seed}
    return solved(objective, ball, solver, callbacks=callbacks, record=record, state=state, keep=True, **settings)


def solved(
    objective: SmoothFunction,
    ball: ConstraintSet,
    solver: Solver | Literal["auto"] | None,
    *,
    tol: float,
    max_iter: int,
    time_limit: float | None,
    start: Any,
    seed: int,
    callbacks: Sequence[Callback] | Callback,
    record: int = 1,
    state: State | str | os.PathLike[str] | None = None,
    keep: bool = False,
    certify: bool = False,
) -> Result:
    """`minimize`; unless ``keep``, no run can continue from the state of the result.

    With ``certify`` the start is checked first, and no step is made if it meets the tolerance.
    """
    at_least("tol", tol, 0.0)
    earlier, compiled = _load_state(state), compile_seconds()
    solver, chosen = _checked(objective, ball, solver, earlier)
    callbacks = listed(callbacks)
    count("max_iter", max_iter)
    count("record", record, lowest=0)
    limit = math.inf if time_limit is None else positive("time_limit", time_limit)
    first = _first(objective, ball, solver, start, seed, earlier if isinstance(earlier, State) else None)
    run = Run(objective, ball, solver, first, tol=tol, max_iter=max_iter, record=record, plan=chosen)
    if earlier is not None and not isinstance(earlier, State):
        earlier.restore(run)
    with closed(callbacks), single_blas(_is_small(objective, ball)):
        with deadline(limit):
            ended = (certify_start(run) if certify else None) or _drive(run, callbacks)
        result = finish(run, *ended, compiled, keep=keep)
    if result.compile_seconds > 0.0:
        log.info("compiled in %.1f s, once: the next process finds the code on disk", result.compile_seconds)
    log.info("%s: %s after %d iterations", type(solver).__name__, result.status, result.n_iter)
    return result


def driven(
    objective: SmoothFunction,
    ball: ConstraintSet,
    solver: Solver,
    state: State | Written,
    *,
    max_iter: int,
    callbacks: Sequence[Callback] = (),
    seed: int = 0,
) -> tuple[Run, Status]:
    """Steps of a solver from a first state, or from a checkpoint, until a limit, a callback or the deadline.

    Nothing is certified: this is for solvers whose iterates others judge, such as sweeps by held-out ratings.
    """
    first = state
    if not isinstance(first, State):
        first = solver.init(objective, ball, starting_point(objective, ball, None), seed)
    first = replace(first, solver=solver, problem={})
    run = Run(objective, ball, solver, first, tol=0.0, max_iter=max_iter, record=0, certify=False)
    if not isinstance(state, State):
        state.restore(run)
    with single_blas(_is_small(objective, ball)):
        status, _ = _drive(run, callbacks)
    return run, status


def _load_state(state: Any) -> State | Written | None:
    """What to continue from, a checkpoint as it was read."""
    if state is None or isinstance(state, State):
        return state
    if not isinstance(state, str | os.PathLike):
        raise TypeError(
            f"`state` must be the `state` of a result or the path of a checkpoint, got {type(state).__name__}."
        )
    from projfree.run.checkpoint import Written

    return Written.load(state)


def _checked(
    f: SmoothFunction, ball: ConstraintSet, solver: Any, earlier: State | Written | None
) -> tuple[Solver, Plan | None]:
    """The solver to use and the plan behind it; raises if an argument is wrong."""
    instance("objective", f, SmoothFunction, "Objective(Squared(), as_data(X, y))")
    instance("ball", ball, ConstraintSet, "LpBall(2, radius=1.0)")
    chosen = None
    if solver is None or (isinstance(solver, str) and solver == "auto"):
        ball.check_shape(f.shape)
        solver = None if earlier is None else _solver_of(f, ball, earlier)
        if solver is None:
            chosen = plan(f, ball)
            solver = chosen.solver
    instance("solver", solver, Solver, "FrankWolfe()")
    solver.check(f, ball)
    return solver, chosen


def _solver_of(f: SmoothFunction, ball: ConstraintSet, earlier: State | Written) -> Solver | None:
    """The solver that an earlier run of the same problem used, None if a state does not say."""
    # The problem is compared first, because a solver's own message about another problem would only confuse.
    if not isinstance(earlier, State):
        solver = earlier.solver()
        refuse_other(earlier.name, earlier.problem, fingerprint(f, ball, solver), ANEW)
        return solver
    if earlier.solver is not None:
        refuse_other("`state`", earlier.problem, fingerprint(f, ball, earlier.solver))
    return earlier.solver


def _is_small(f: SmoothFunction, ball: ConstraintSet) -> bool:
    """Whether BLAS works on small pieces only: passes do, on tiles, and have threads of their own.

    Its threads gain nothing on small matrices, and lose a factor of ten or more if another process has a core.
    """
    if f.structure.quadratic and f.n is None:  # products with its matrix
        return f.shape[0] ** 2 < LARGE
    return not ball.structure(f.shape).spectral or isinstance(f.shape, FactoredShape) or math.prod(f.shape) < LARGE


def _first(f: SmoothFunction, ball: ConstraintSet, solver: Solver, start: Any, seed: int, state: State | None) -> State:
    """The state to continue from: the given one if it is of this problem, else a new one."""
    if state is None:
        seed = count("seed", seed, lowest=0)
        return replace(solver.init(f, ball, starting_point(f, ball, start), seed), solver=solver)
    refuse_other("`state`", state.problem, fingerprint(f, ball, solver))
    return state


def _drive(run: Run, callbacks: Sequence[Callback]) -> tuple[Status, Certificate | None]:
    try:
        while True:
            ended = check_stopping(run)
            if ended is not None:
                return ended
            if run.iteration >= run.max_iter:
                return Status.MAX_ITER, None
            if expired():
                return Status.TIME_LIMIT, None
            run.advance()
            if any([callback(run) for callback in callbacks]):
                return Status.CALLBACK, None
    except Expired:  # in the middle of a step, which is dropped
        return Status.TIME_LIMIT, None
    except KeyboardInterrupt:
        return Status.INTERRUPTED, None
    except NotFiniteError as error:
        log.warning("iteration %d: %s", run.iteration + 1, error)
        return Status.NOT_FINITE, None
    except RowsLostError as error:
        log.warning("%s", error)
        if not run.iteration or not math.isfinite(run.value):
            raise
        for callback in callbacks:
            getattr(callback, "rows_lost", lambda run: None)(run)
        return Status.ROWS_LOST, remembered_certificate(run)


def starting_point(f: SmoothFunction, ball: ConstraintSet, start: Any) -> Point:
    """The start of a run as a point; raises if it does not lie in the set."""
    if start is None:
        return f.point(ball.centre(f.shape))
    array = start
    if not isinstance(start, Structured):
        array = all_finite("start", real_array("start", start))
    if array.shape != f.shape:
        raise ValueError(f"`start` must have the shape {f.shape} of the objective's parameter, got {array.shape}.")
    x = f.point(array)
    if not ball.contains(x.w):
        given = repr(array) if isinstance(array, Structured) else shown(array.ravel().tolist())
        raise ValueError(f"`start` must lie in {ball!r}, got {given}; scale or project it first.")
    return x
