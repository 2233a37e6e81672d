"""Why a run ended."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Each value is the sentence that a person is shown.

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
    TOO_LARGE = "stopped by the solver, for which the problem is too large"
    MAX_ITER = "stopped after the largest number of iterations"
    TIME_LIMIT = "stopped by the time limit"
    ROWS_LOST = "stopped because the rows are out of reach; a checkpoint goes on from here once they are back"
    CALLBACK = "stopped by a callback"
    INTERRUPTED = "interrupted by the user"

    def __str__(self) -> str:
        return self.value

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self in (Status.CONVERGED, Status.STATIONARY)
