"""A run for an estimator: what is kept of it, and the warning where it stopped short."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from projfree.checks import shown, stacklevel
from projfree.run import Result, Status
from projfree.solvers.base import Solver


def checked_solver(solver: Any) -> Any:
    """The solver as `minimize` takes it."""
    if isinstance(solver, Solver) or (isinstance(solver, str) and solver == "auto"):
        return solver
    raise TypeError(f"`solver` must be 'auto' or a Solver such as `PrimalAveraging()`, got {shown(solver)}.")


def warn_if_short(model: Any, result: Result, tol: float, expected: bool = False, unsolved: str = "") -> None:
    """Say why a penalised problem is unsolved, and by how much a run missed its tolerance unless that was expected."""
    if unsolved:
        warnings.warn(f"{type(model).__name__}: {unsolved}.", ConvergenceWarning, stacklevel=stacklevel())
    if result.status.converged or result.relative_gap <= tol or expected or _at_least_value(model, result, tol):
        return
    kind = "certified relative gap" if result.bound is not None else "relative Frank-Wolfe gap"
    warn_of_gap(model, result.status, result.n_iter, result.relative_gap, tol, kind)


def warn_of_gap(
    model: Any, status: Status, n_iter: int, gap: float, tol: float, kind: str = "certified relative gap"
) -> None:
    """Say how large a gap is, why it is no smaller, and what to do about it."""
    way = {
        Status.MAX_ITER: "raise `max_iter`, loosen `tol`, or try another `solver`",
        Status.TIME_LIMIT: "raise `time_limit`, or loosen `tol`",
        Status.PRECISION: "loosen `tol`",
        Status.SMOOTHED: "give the loss a smaller `delta`, or loosen `tol`",
    }.get(status, "fit again for a smaller one")
    warnings.warn(
        f"{type(model).__name__} {status} ({n_iter} iterations): the {kind} is {gap:.2g}, above tol={tol:g}; {way}.",
        ConvergenceWarning,
        stacklevel=stacklevel(),
    )


def _at_least_value(model: Any, result: Result, tol: float) -> bool:
    """Whether a loss that is not convex is within the tolerance of what it is never below: no point is better."""
    loss = getattr(model, "loss_", None)
    if result.bound is not None or loss is None or not result.relative_gap > 0.0:
        return False
    scale = result.gap / result.relative_gap
    return bool(result.value - loss.lower_bound <= tol * scale)
