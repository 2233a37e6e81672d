"""`Result`: what a run returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from projfree.checks import Array
from projfree.display import html_table
from projfree.run.certificate import Certificate
from projfree.run.status import Status
from projfree.run.trace import Trace
from projfree.solvers.base import Solver, State
from projfree.solvers.choose import Plan

if TYPE_CHECKING:
    from projfree.solvers.pairwise import ActiveSet


@dataclass(frozen=True, eq=False)
class Result:
    """The answer, how good it is proven to be, and how it came about.

    Attributes
    ----------
    w : ndarray
        The point found; the best one found whose value is known.
    intercept : ndarray or None
        The intercept at ``w``, of shape ``()`` or ``(k,)``.
    value : float
        The objective at ``w``, recomputed at exit. A mean of losses is reported as no less than what the rounding
        of predictions may hide of it: the exact mean is at most twice as large, even where all residuals were rounded
        away.
    bound : float or None
        The best lower bound on the minimum over the set that the run proved; None where the objective is not convex.
        ``certificate.bound`` is the one recomputed at exit, which `Certificate.verify` checks.
    gap : float
        ``value - bound``; where the objective is not convex the Frank-Wolfe gap at ``w``.
    relative_gap : float
        ``gap / max(|value|, 1e-6 |f0|)``, with f0 the value at the centre of the set
        (at zero for losses with exponentials).
    smallest_gap : tuple of float and int, or None
        Where the objective is not convex, the smallest Frank-Wolfe gap found and its iteration.
    n_iter, n_passes : int and float
        Iterations, and rows read divided by rows, the exit check included.
    seconds : float
        Time of the solver's steps: without the checks at exit, without callbacks, without compiling.
    status : Status
        Why the run ended.
    trace : Trace
        Columns over the iterations.
    certificate : Certificate
        What a third party needs to check the claim.
    state : State
        Where the solver stands, to go on from with ``minimize(..., state=result.state)``.
    solver : Solver
        The solver that ran.
    multiplier : float or None
        The dual norm of the gradient at ``w``: the penalty on the norm that this radius amounts to. None for sets
        without a radius.
    plan : Plan or None
        Why this solver was chosen; None where the user did.
    compile_seconds : float
        Time that numba took to compile passes over large tables. Later processes find the code on disk, see
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
    smallest_gap: tuple[float, int] | None
    n_iter: int
    n_passes: float
    seconds: float
    status: Status
    trace: Trace
    certificate: Certificate
    state: State
    solver: Solver
    multiplier: float | None = None
    plan: Plan | None = None
    compile_seconds: float = 0.0

    @property
    def active_set(self) -> ActiveSet | None:
        """The vertices that the last iterate is a mixture of and their weights; None but for `PairwiseFrankWolfe`."""
        return self.state.active_set

    def _lines(self) -> dict[str, str]:
        gap = f"{self.gap:.3g}  (relative {self.relative_gap:.3g})"
        lines = {"value": f"{self.value:.10g}"}
        if self.bound is None:
            lines["Frank-Wolfe gap"] = gap
            if self.smallest_gap is not None:
                lines["smallest gap"] = f"{self.smallest_gap[0]:.3g}  at iteration {self.smallest_gap[1]}"
        else:
            lines["lower bound"], lines["certified gap"] = f"{self.bound:.10g}", gap
        lines["work"] = f"{self.n_iter} iterations, {self.n_passes:.4g} passes, {self.seconds:.3g} s"
        if self.compile_seconds > 0.0:
            lines["compiled"] = f"{self.compile_seconds:.3g} s, once: the next process finds the code on disk"
        lines["solver"] = repr(self.solver)
        return lines

    def __repr__(self) -> str:
        named = (f"  {name:<15}  {text}" for name, text in self._lines().items())
        return "\n".join([f"Result: {self.status}", *named])

    def _repr_html_(self) -> str:
        return html_table(f"Result: {self.status}", self._lines())


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in one run of several, or of a fit; ``result`` is what the run that it ended has found."""

    def __init__(self, result: Result) -> None:
        super().__init__(result)  # as an argument, with which the exception comes back from another process
        self.result = result

    def __str__(self) -> str:
        return str(self.result.status)


def one_of_many(result: Result) -> Result:
    """The result of one run among several; an interrupt that ended it ends them all."""
    if result.status is Status.INTERRUPTED:
        raise Interrupted(result)
    return result
