"""Quadratic models over a set, solved to rounding: the inner problem of exact and Newton methods."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.sets import GroupBall, LpBall, SchattenBall, Weighted
from projfree.sets.base import ConstraintSet

#: The most parameters for which a Hessian is formed: at 2,000 it takes 32 MB, and a factorisation about a second.
MOST_PARAMETERS = 2_000


def lp_of(ball: ConstraintSet, shape: tuple[int, ...]) -> LpBall | None:
    """The l_p ball of all entries that ``ball`` is for parameters of this shape, None where it is no such ball."""
    if isinstance(ball, LpBall):
        return ball
    if isinstance(ball, SchattenBall) and (ball.p == 2.0 or min(shape) == 1):
        return LpBall(2.0, ball.radius)  # a single row or column has one singular value, its length
    if isinstance(ball, GroupBall) and ball.p == ball.q:
        return LpBall(ball.p, ball.radius)
    return None


def check_model(ball: ConstraintSet) -> None:
    """Raise a sentence where models over this set cannot be solved in good time."""
    if not ball.projects_quickly:
        raise ValueError(
            f"a quadratic model over {ball!r} needs a quick projection, and it has none; use CorrectivePrimalAveraging."
        )
    import scipy.linalg  # noqa: F401 - now, because whoever limits the threads of BLAS must find SciPy's


def minimise_model(H: Array, b: Array, ball: ConstraintSet, start: Array) -> Array:
    r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over the set.

    Exactly for l_p balls and for the balls that coincide with one; by accelerated projected gradients elsewhere, as
    far as they get.

    Parameters
    ----------
    H : array of shape (D, D)
        Acts on the entries of w in C order; without negative eigenvalues.
    b, start : array
        Of the shape of w.
    """
    if isinstance(ball, Weighted) and lp_of(ball.ball, b.shape) is not None:
        d = np.broadcast_to(ball.weights, b.shape)
        by = np.ravel(d)
        return np.asarray(minimise_model(H / by / by[:, None], b / d, ball.ball, start * d) / d)
    lp = lp_of(ball, b.shape)
    if lp is not None:
        from projfree.numerics.lp_quadratic import minimise_quadratic
        from projfree.numerics.secular import decomposed

        eigen = decomposed(H) if lp.p == 2.0 else None
        w: Array = minimise_quadratic(H, b.ravel(), lp.p, lp.radius, start.ravel(), eigen).w.reshape(b.shape)
        return w
    from projfree.numerics.projected_quadratic import project_descent

    largest = float(np.linalg.eigvalsh(H)[-1]) * (1.0 + 1e-12) if len(H) else math.nan
    return project_descent(H, b, ball.project, start, largest)
