"""`path`: solve a problem for many radii, with warm starts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from projfree.checks import Array, all_finite, real_array
from projfree.objectives.base import SmoothFunction
from projfree.objectives.quadratic import QuadraticForm
from projfree.run.callbacks import as_callbacks
from projfree.run.loop import fingerprint, minimize
from projfree.run.result import Interrupted, Result, Status
from projfree.sets.base import ConstraintSet, NormBall, resized
from projfree.solvers import Direct, plan
from projfree.solvers.base import State


@dataclass(frozen=True, eq=False)
class Path:
    """The solutions for several radii, in the order in which the radii were given.

    Attributes
    ----------
    radii : ndarray
        The radii.
    results : tuple of Result
        The result for each radius, with its certificate.

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

    def __repr__(self) -> str:
        gaps = [result.relative_gap for result in self.results]
        radii = f"{len(gaps)} radii from {self.radii.min():.4g} to {self.radii.max():.4g}"
        return f"Path({radii}, largest relative gap {max(gaps):.2g})"

    def plot(self, ax: Any = None) -> Any:
        """Plot the entries of the solutions against the radius; return the axes."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        order = np.argsort(self.radii)
        ax.semilogx(self.radii[order], self.w.reshape(len(order), -1)[order])
        ax.set(xlabel="radius", ylabel="coefficient")
        return ax

    @property
    def w(self) -> Array:
        """The solutions, stacked along the first axis."""
        return np.stack([result.w for result in self.results])

    @property
    def multipliers(self) -> Array:
        """The equivalent penalty on the norm for each radius; decreasing, and zero if the constraint is not active."""
        return np.array([result.multiplier for result in self.results])

    @property
    def values(self) -> Array:
        """The objective at each solution."""
        return np.array([result.value for result in self.results])

    @property
    def n_passes(self) -> float:
        """Total number of passes over the data."""
        return float(sum(result.n_passes for result in self.results))


def path(f: SmoothFunction, ball: ConstraintSet, radii: Sequence[float] | Array, **settings: Any) -> Path:
    """Minimise an objective over balls of several radii, from the smallest to the largest.

    For squared loss, if the plan uses the Gram matrix, the data are read once for all radii. The bounds then account
    for the rounding errors of this matrix; if these exceed the tolerance, the rows are read again.

    Each run starts at the solution for the next smaller radius and reuses what is still valid: the Gram matrix,
    factorisations, the last tangent and Hessian.

    Parameters
    ----------
    f : SmoothFunction
        The objective.
    ball : ConstraintSet
        The set, whose radius is replaced.
    radii : sequence of float
        The radii, in any order.
    **settings
        As for `minimize`: solver, tol, max_iter, time_limit, callbacks, ...

    Notes
    -----
    Ctrl-C raises `Interrupted`, a KeyboardInterrupt whose attribute ``found`` is the path of the radii up to the one
    that was interrupted.

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
    largest = resized(ball, float(wanted.max()))
    solver = settings.pop("solver", "auto")
    n, free, form = len(wanted), solver in ("auto", None), None
    squares = f.structure.n is not None and f.reported is f and f.structure.quadratic_form
    if squares and isinstance(plan(f, largest, radii=n).solver if free else solver, Direct):
        form = f.quadratic_form()
    if form is not None and free and "state" not in settings:
        solver = plan(form, largest, radii=n).solver
    results: dict[int, Result] = {}
    before: tuple[Result, State] | None = None
    for k in np.argsort(wanted, kind="stable").tolist():
        before = _next_result(f if form is None else form, resized(ball, float(wanted[k])), before, solver, settings)
        results[k] = before[0] if form is None else _on_rows(f, form, before[0], settings)
        if results[k].status is Status.INTERRUPTED:
            done = sorted(results)
            found = Path(wanted[done], tuple(results[j] for j in done))
            raise Interrupted(found, f"interrupted at the radius {wanted[k]:g}")
    return Path(wanted, tuple(results[k] for k in range(n)))


def _next_result(
    f: SmoothFunction, ball: ConstraintSet, before: tuple[Result, State] | None, solver: Any, settings: dict[str, Any]
) -> tuple[Result, State]:
    """Solve for the next radius with a warm start; return the result and the last state of its run.

    The state of a result does not include the tangent and the columns at the iterate, which the next radius can reuse.
    """
    live: deque[State] = deque(maxlen=1)
    callbacks = (*as_callbacks(settings.get("callbacks", ())), lambda run: live.append(run.state))
    settings = {**settings, "callbacks": callbacks}
    if before is not None:
        earlier, state = before
        w, solver = state.x.w, earlier.solver
        settings |= {"state": None, "start": None}
        if isinstance(ball, NormBall) or ball.contains(w):
            state = solver.carry(f, ball, state)
            settings["state"] = replace(state, problem=fingerprint(f, ball, solver), solver=solver)
        else:  # simplices of different radii are disjoint
            larger = w * (cast("Any", ball).radius / cast("Any", earlier.certificate.ball).radius)
            settings["start"] = larger if ball.contains(larger) else None
    result = minimize(f, ball, solver, **settings)
    result = result if before is None else replace(result, plan=before[0].plan)
    return result, live[0] if live else result.state


def _on_rows(f: SmoothFunction, form: QuadraticForm, result: Result, settings: dict[str, Any]) -> Result:
    """Convert a result for the quadratic form to one for the data; solve again if the form is too inaccurate."""
    certificate = result.certificate
    if result.status is Status.PRECISION:
        again = {**settings, "start": result.w, "state": None}
        return replace(minimize(f, certificate.ball, result.solver, **again), plan=result.plan)
    w, witness = form.intercept(result.w), form.intercept(certificate.witness)
    certificate = replace(certificate, loss=f.structure.loss, intercept=w, witness_intercept=witness)
    return replace(result, intercept=w, certificate=certificate)
