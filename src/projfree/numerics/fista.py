"""FISTA: accelerated projected gradients, and a quadratic over any set with a projection minimised by them.

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

#: Largest number of steps; restarted momentum takes about the square root of the condition number for each digit.
MOST = 5_000
#: The iteration ends after CALM consecutive steps that are shorter than STILL times the iterate.
STILL, CALM = 1e-13, 3


def momentum(theta: float, *, restart: bool) -> tuple[float, float]:
    """The next theta of FISTA's sequence, and the weight of the last move in the extrapolation."""
    if restart:  # the momentum points uphill
        return 1.0, 0.0
    new = (1.0 + math.sqrt(1.0 + 4 * theta * theta)) / 2.0
    return new, (theta - 1.0) / new


def project_descent(H: Array, b: Array, project: Callable[[Array], Array], start: Array) -> Array:
    r"""A minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle` over a set.

    FISTA, restarted where its momentum points uphill. It stops at the deadline or after 5,000 steps at the latest, so
    that the result may be inexact.

    Parameters
    ----------
    H : array of shape (D, D) or (d, d)
        Symmetric, without negative eigenvalues, acting on all D entries of w in C order or on each column of d.
    b, start : array
        Of the shape of w.
    project : callable
        The projection onto the set.
    """
    x = y = project(start)
    # The largest eigenvalue, rounded up; of a linear function a curvature next to nothing.
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
        if calm == CALM or expired():  # one short step may be a turning point
            break
    return x
