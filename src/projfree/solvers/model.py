"""Quadratic models over a set, solved to rounding: the inner problem of exact and Newton methods."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.sets.base import ConstraintSet

#: The most parameters for which a Hessian is formed: at 2,000 it takes 32 MB, and a factorisation about a second.
MOST_PARAMETERS = 2_000


def check_model(ball: ConstraintSet) -> None:
    """Raise a sentence where models over this set cannot be solved in good time."""
    if not ball.projects_quickly:
        raise ValueError(
            f"a quadratic model over {ball!r} needs a quick projection, and it has none; use CorrectivePrimalAveraging."
        )
    import scipy.linalg  # noqa: F401 - now, because whoever limits the threads of BLAS must find SciPy's


def minimise_model(H: Array, b: Array, ball: ConstraintSet, start: Array, share: float = 0.0) -> Array:
    r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over the set.

    Exactly for l_p balls and for the balls that coincide with one; by accelerated projected gradients elsewhere, as
    far as they get.

    Parameters
    ----------
    H : array of shape (D, D)
        Acts on the entries of w in C order; without negative eigenvalues.
    b, start : array
        Of the shape of w.
    share : float
        For l_p balls with p between 1 and infinity: it may end when the gap is this part of what it is at zero.
    """
    scaled = ball.as_scaled_lp(b.shape)
    if scaled is not None:
        inner, d = scaled
        by = np.ravel(d)
        return np.asarray(minimise_model(H / by / by[:, None], b / d, inner, start * d, share) / d)
    lp = ball.as_lp(b.shape)
    if lp is not None:
        from projfree.numerics.lp_quadratic import minimise_quadratic
        from projfree.numerics.secular import decomposed

        eigen = decomposed(H) if lp.p == 2.0 else None
        found = minimise_quadratic(H, b.ravel(), lp.p, lp.radius, start.ravel(), eigen, share)
        return found.w.reshape(b.shape)
    from projfree.numerics.projected_quadratic import project_descent

    largest = float(np.linalg.eigvalsh(H)[-1]) * (1.0 + 1e-12) if len(H) else math.nan
    return project_descent(H, b, ball.project, start, largest)
