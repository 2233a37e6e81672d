"""`Result` of a run, with its `Status` and `Trace`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from projfree.checks import Array, real_array
from projfree.run.certificate import Certificate
from projfree.solvers.base import Solver, State
from projfree.solvers.choose import Plan

COLUMNS = ("iteration", "passes", "seconds", "value", "bound", "gap", "gamma")


class Trace:
    """History of a run: columns of equal length with one row for each recorded iteration.

    ``iteration``, ``passes`` (over the data so far), ``seconds`` (time of the solver, without callbacks and recording),
    ``value``, ``bound`` (the best lower bound so far), ``gap`` (their difference; for non-convex objectives the
    Frank-Wolfe gap) and ``gamma`` (the step). Values that would have needed an additional pass are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, PrimalAveraging, QuadraticForm, minimize
    >>> f, ball = QuadraticForm(np.eye(2), np.array([3.0, 4.0])), LpBall(1.5, radius=1.0)
    >>> minimize(f, ball, PrimalAveraging(), max_iter=9, record=3, tol=0.0).trace["iteration"]
    array([3, 6, 9])
    """

    def __init__(self, columns: Mapping[str, Any] | None = None) -> None:
        self.rows: list[dict[str, float]] = []
        if columns is not None:
            for row in np.column_stack([real_array(name, columns[name]) for name in COLUMNS]).tolist():
                self.add(*row)

    def add(self, *row: float) -> None:
        """Append a row, given the values of the columns in order."""
        self.rows.append(dict(zip(COLUMNS, row, strict=True)))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        last = (
            f", last gap {self.rows[-1]['gap']:.3g} at iteration {self.rows[-1]['iteration']:.0f}" if self.rows else ""
        )
        return f"Trace({len(self)} rows{last})"

    def __getitem__(self, name: str) -> Array:
        """Return one column as an array."""
        if name not in COLUMNS:
            raise KeyError(f"a trace has the columns {', '.join(COLUMNS)}, not {name!r}.")
        return np.array([row[name] for row in self.rows], dtype=np.int64 if name == "iteration" else np.float64)

    def columns(self) -> dict[str, Array]:
        """Return a dictionary of all columns."""
        return {name: self[name] for name in COLUMNS}

    def plot(self, x: str = "passes", ax: Any = None) -> Any:
        """Plot the gap against passes, iterations or seconds on logarithmic axes; return the axes."""
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        shown = (self["gap"] > 0) & (self[x] > 0)
        ax.loglog(self[x][shown], self["gap"][shown])
        ax.set_xlabel("passes over the data" if x == "passes" else x)
        ax.set_ylabel("certified gap" if np.isfinite(self["bound"]).any() else "Frank-Wolfe gap")
        return ax


class Status(Enum):
    """Why a run ended. The value of each member is the message for users.

    Examples
    --------
    >>> from projfree import Status
    >>> print(Status.MAX_ITER)
    stopped after the largest number of iterations
    >>> Status.MAX_ITER.converged
    False
    """

    CONVERGED = "converged: the certified gap is within the tolerance"
    STATIONARY = "converged: the Frank-Wolfe gap is within the tolerance"
    PRECISION = "stopped at the limit of floating-point precision: rounding hides what is left of the gap"
    SMOOTHED = "stopped at the limit of the smoothed loss: a smaller `delta` is needed for a smaller gap"
    STALLED = (
        "stopped without progress: no step lowered the value; `check_gradient(f, w)` says whether the gradient is right"
    )
    NOT_CONVEX = (
        "stopped because the function is not convex: a tangent lies above a value elsewhere, so there is no bound; "
        "state `convex=False`, or look for a wrong gradient with `check_gradient(f, w)`"
    )
    NOT_FINITE = (
        "stopped because the function returned a value or a gradient that is not finite in the iteration after "
        "`n_iter`; the best point before it is the answer"
    )
    MAX_ITER = "stopped after the largest number of iterations"
    TIME_LIMIT = "stopped by the time limit"
    CALLBACK = "stopped by a callback"
    INTERRUPTED = "interrupted by the user"

    def __str__(self) -> str:
        return self.value

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self in (Status.CONVERGED, Status.STATIONARY)


@dataclass(frozen=True, eq=False)
class Result:
    """Result of a run: the solution, its certificate, and statistics of the run.

    Attributes
    ----------
    w : ndarray
        The solution: the point with the lowest known value.
    intercept : ndarray or None
        The intercept at ``w``, of shape ``()`` or ``(k,)``.
    value : float
        The objective at ``w``, recomputed at exit. For a mean of losses it is at least the bound on its rounding error:
        the exact mean is at most twice as large, even if all residuals are rounded to zero.
    bound : float or None
        The best lower bound on the minimum over the set; None for a non-convex objective. ``certificate.bound`` is the
        one recomputed at exit, which `Certificate.verify` checks.
    gap : float
        ``value - bound``; for a non-convex objective the Frank-Wolfe gap at ``w``.
    relative_gap : float
        ``gap / max(|value|, 1e-6 |f0|)``, with f0 the value at the centre of the set (at zero for losses with
        exponentials).
    n_iter, n_passes : int and float
        Number of iterations, and number of rows read divided by the number of rows, including the final verification.
    seconds : float
        Time of the steps of the solver, without final verification, callbacks and compilation.
    status : Status
        Why the run ended.
    trace : Trace
        History of the iterations.
    certificate : Certificate
        Allows others to verify the result.
    state : State
        State of the solver, to continue with ``minimize(..., state=result.state)``.
    solver : Solver
        The solver.
    multiplier : float or None
        The dual norm of the gradient at ``w``, which is the equivalent penalty on the norm. None for sets without a
        radius.
    plan : Plan or None
        Why this solver was chosen; None if the user chose it.
    compile_seconds : float
        Time that numba took to compile passes over large tables. Later processes load the code from disk, see
        ``NUMBA_CACHE_DIR``.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import LpBall, Objective, Squared, as_data, minimize
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1.5, radius=1.0))
    >>> result.bound <= result.value, result.relative_gap <= 1e-6
    (True, True)
    """

    w: Array
    intercept: Array | None
    value: float
    bound: float | None
    gap: float
    relative_gap: float
    n_iter: int
    n_passes: float
    seconds: float
    status: Status
    trace: Trace
    certificate: Certificate
    state: State = field(metadata={"transient": True})
    solver: Solver
    multiplier: float | None = None
    plan: Plan | None = field(default=None, metadata={"transient": True})
    compile_seconds: float = 0.0

    @property
    def multipliers(self) -> Array | None:
        """The multipliers of the constraints of a `Constrained` set; None for other sets."""
        return self.certificate.multipliers

    def __repr__(self) -> str:
        lines = {"value": f"{self.value:.10g}"}
        if self.bound is not None:
            lines["lower bound"] = f"{self.bound:.10g}"
        kind = "Frank-Wolfe gap" if self.bound is None else "certified gap"
        lines[kind] = f"{self.gap:.3g}  (relative {self.relative_gap:.3g})"
        lines["work"] = f"{self.n_iter} iterations, {self.n_passes:.4g} passes, {self.seconds:.3g} s"
        if self.compile_seconds > 0.0:
            lines["compiled"] = f"{self.compile_seconds:.3g} s, once: the next process finds the code on disk"
        lines["solver"] = repr(self.solver)
        return "\n".join([f"Result: {self.status}", *(f"  {name:<15}  {text}" for name, text in lines.items())])


class Interrupted(KeyboardInterrupt):
    """Raised by Ctrl-C during several runs or a fit; ``found`` is the result or the path until then."""

    def __init__(self, found: Any, message: str = str(Status.INTERRUPTED)) -> None:
        super().__init__(found, message)  # arguments, so that the exception can be pickled
        self.found = found

    def __str__(self) -> str:
        return str(self.args[1])


def raise_if_interrupted(result: Result) -> Result:
    """Return the result of one of several runs; raise `Interrupted` if the user interrupted it."""
    if result.status is Status.INTERRUPTED:
        raise Interrupted(result)
    return result
