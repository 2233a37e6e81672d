"""FISTA (accelerated projected gradient method) for convex quadratics over sets with a projection.

References
----------
Beck, Teboulle (2009), A fast iterative shrinkage-thresholding algorithm for linear inverse problems; O'Donoghue, Candes
(2015), Adaptive restart for accelerated gradient schemes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

#: Maximum number of steps; with restarts, a digit takes about the square root of the condition number.
MOST = 5_000
#: The iteration stops after CALM consecutive steps that are shorter than STILL times the iterate.
STILL, CALM = 1e-13, 3


def momentum(theta: float, *, restart: bool) -> tuple[float, float]:
    """Return the next theta of FISTA and the weight of the last step in the extrapolation."""
    if restart:  # the momentum is an ascent direction
        return 1.0, 0.0
    new = (1.0 + math.sqrt(1.0 + 4 * theta * theta)) / 2.0
    return new, (theta - 1.0) / new


def project_descent(H: Array, b: Array, project: Callable[[Array], Array], start: Array) -> Array:
    r"""Minimise :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over a convex set.

    The method is FISTA, restarted if its momentum is an ascent direction. It stops at the deadline or after 5,000
    steps, so that the result may be inexact.

    Parameters
    ----------
    H : array of shape (D, D) or (d, d)
        Symmetric positive semidefinite matrix that acts on all D entries of w in C order, or on each of its columns.
    b, start : array
        Linear term and initial iterate, of the shape of w.
    project : callable
        Projection onto the set.
    """
    x = y = project(start)
    # The largest eigenvalue, rounded up; a tiny positive number for a linear function.
    eps = float(np.finfo(np.float64).eps)
    largest = float(np.linalg.eigvalsh(H)[-1]) * (1.0 + len(H) * eps) if len(H) else 0.0
    largest = max(largest, math.sqrt(eps) * float(np.abs(b).max(initial=0.0) / (1.0 + np.abs(start).max(initial=0.0))))
    if largest == 0.0:
        return x
    theta, calm, eta = 1.0, 0, 1.0 / largest
    shape = (b.size,) if len(H) == b.size else b.shape
    for _ in range(MOST):
        new = project(y + eta * (b - (H @ y.reshape(shape)).reshape(b.shape)))
        move = new - x
        theta, weight = momentum(theta, restart=bool(np.vdot(y - new, move) > 0.0))
        x, y = new, new + weight * move
        calm = calm + 1 if np.abs(move).max() <= STILL * np.abs(new).max() else 0
        if calm == CALM or expired():  # a single short step may be a turning point
            break
    return x
