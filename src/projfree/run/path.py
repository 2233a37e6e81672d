"""`path`: one problem over many radii, each solution the start of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, real_array
from projfree.objectives.base import SmoothFunction
from projfree.run.loop import minimize
from projfree.run.progress import fingerprint
from projfree.run.result import Interrupted, Result, Status, one_of_many
from projfree.sets.base import ConstraintSet, NormBall
from projfree.solvers import Direct, plan
from projfree.solvers.base import State


@dataclass(frozen=True, eq=False)
class Path:
    """The solutions for many radii, in the order in which the radii were given.

    Attributes
    ----------
    radii : ndarray
        The radii.
    results : tuple of Result
        One for each radius, each with its certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, QuadraticForm, path
    >>> path(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(2, radius=1.0), [1.0, 10.0]).w.round(6)
    array([[0.6, 0.8],
           [3. , 4. ]])
    """

    radii: Array
    results: tuple[Result, ...]

    @property
    def w(self) -> Array:
        """The solutions, one for each radius along the first axis."""
        return np.stack([result.w for result in self.results])

    @property
    def multipliers(self) -> Array:
        """For each radius the penalty on the norm that it amounts to; decreasing, zero where the ball does not bind."""
        return np.array([result.multiplier for result in self.results])

    @property
    def values(self) -> Array:
        """The objective at each solution."""
        return np.array([result.value for result in self.results])

    @property
    def n_passes(self) -> float:
        """Reads of the data for all radii together."""
        return float(sum(result.n_passes for result in self.results))


class PathInterrupted(KeyboardInterrupt):
    """Ctrl-C in a path; ``found`` is the path of the radii that were solved, the largest one interrupted."""

    def __init__(self, found: Path) -> None:
        super().__init__(found)
        self.found = found

    def __str__(self) -> str:
        return f"interrupted at the radius {self.found.radii.max():g}"


def path(f: SmoothFunction, ball: ConstraintSet, radii: Sequence[float] | Array, **settings: Any) -> Path:
    """Minimise an objective over balls of several radii, from the smallest to the largest.

    Squares that the plan solves through their Gram matrix are read once for all radii. Bounds are then lowered by what
    the sums in that matrix may have been rounded by; where this hides the tolerance, the rows are read again.

    Each run starts at the solution of the next smaller radius and takes over what still holds there: the Gram matrix,
    factorisations, the last tangent and Hessian.

    Parameters
    ----------
    f : SmoothFunction
        The objective.
    ball : ConstraintSet
        Its radius does not matter.
    radii : sequence of float
        In any order.
    **settings
        As for `minimize`: solver, tol, max_iter, time_limit, callbacks, ...

    Notes
    -----
    Ctrl-C raises KeyboardInterrupt, because a path of which radii are missing is none; the exception holds as ``found``
    what there is.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, path
    >>> f = Objective(Squared(), as_data(np.diag([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0]))
    >>> found = path(f, LpBall(1.5, radius=1.0), [0.1, 0.5, 5.0])
    >>> found.multipliers.round(3).tolist()
    [1.797, 0.821, 0.0]
    """
    wanted = all_finite("radii", real_array("radii", radii)).astype(np.float64)
    if wanted.ndim != 1 or not len(wanted):
        raise ValueError(f"`radii` must be a sequence of positive numbers, got shape {wanted.shape}.")
    largest = ball.resized(float(wanted.max()))
    given = settings.get("solver", "auto")
    form = f.quadratic_form() if goes_direct(f, largest, given, len(wanted)) else None
    if form is not None and given in ("auto", None) and "state" not in settings:
        settings = {**settings, "solver": plan(form, largest, radii=len(wanted)).solver}
    results: dict[int, Result] = {}
    before: Result | None = None
    smaller = float(wanted.min())
    for k in np.argsort(wanted, kind="stable").tolist():
        try:
            radius = float(wanted[k])
            before = _next(f if form is None else form, ball.resized(radius), before, radius / smaller, settings)
            smaller = radius
            results[k] = before if form is None else _of_rows(f, before, settings)
        except Interrupted as stop:
            results[k] = stop.result if form is None else _of_rows(f, stop.result, settings)
            solved = sorted(results)
            raise PathInterrupted(Path(wanted[solved], tuple(results[j] for j in solved))) from stop
    return Path(wanted, tuple(results[k] for k in range(len(wanted))))


def goes_direct(f: SmoothFunction, ball: ConstraintSet, solver: Any, radii: int) -> bool:
    """Whether the plan for so many radii, or the user, solves squares over rows as a quadratic form."""
    if f.n is None or f.reported is not f or not f.structure.quadratic_form:
        return False
    chosen = plan(f, ball, radii=radii).solver if solver in ("auto", None) else solver
    return isinstance(chosen, Direct)


def _of_rows(f: SmoothFunction, result: Result, settings: dict[str, Any]) -> Result:
    """A result on the form as one on the rows: with its intercept, or read anew where the form is too coarse."""
    own, form = result.certificate, f.quadratic_form()
    if result.status is Status.PRECISION:
        again = {**settings, "solver": result.solver, "start": result.w, "state": None}
        return replace(one_of_many(minimize(f, own.ball, **again)), plan=result.plan)
    assert form is not None
    at = None if own.witness is None else form.intercept(own.witness)
    certificate = replace(own, loss=f.structure.loss, intercept=form.intercept(own.w), witness_intercept=at)
    return replace(result, intercept=form.intercept(result.w), certificate=certificate)


def _next(
    f: SmoothFunction, ball: ConstraintSet, before: Result | None, ratio: float, settings: dict[str, Any]
) -> Result:
    """The result for the next radius, which is ``ratio`` times the last one."""
    if before is None:
        return one_of_many(minimize(f, ball, **settings))
    w = before.state.x.w
    if isinstance(ball, NormBall) or ball.contains(w):
        begin: dict[str, Any] = {"state": carried(f, ball, before)}
    else:  # simplices of other radii do not meet
        begin = {"state": None, "start": ratio * w if ball.contains(ratio * w) else None}
    found = one_of_many(minimize(f, ball, **{**settings, "solver": before.solver, **begin}))
    return replace(found, plan=before.plan)


def carried(f: SmoothFunction, ball: ConstraintSet, before: Result) -> State:
    """A first state over a set that contains the iterate of an earlier result, with all of it that still holds."""
    solver = before.solver
    return replace(solver.carry(f, ball, before.state), problem=fingerprint(f, ball, solver), solver=solver)
