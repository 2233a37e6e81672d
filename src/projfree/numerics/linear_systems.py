"""Symmetric positive semidefinite systems: inverses, Newton steps, and conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

#: Rounds without progress after which only rounding is left.
IDLE = 8
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)

Product = Callable[[Array], Array]


def is_null(h: Array) -> Array:
    """Which eigenvalues, in increasing order, are zero up to the rounding of the largest one."""
    return h <= 16 * len(h) * _EPS * max(abs(float(h[0])), abs(float(h[-1])), _TINY)


def cholesky_inverse(H: Array) -> Product | None:
    """The product of the inverse with the columns of a matrix; None where H is not safely positive definite."""
    from scipy.linalg import lapack

    diagonal = H.diagonal()
    if not np.logical_and.reduce(diagonal > 0.0):
        return None
    scale = 1.0 / np.sqrt(diagonal)[:, None]
    factor, info = lapack.dpotrf(H * scale * scale.T, lower=1)
    if info != 0 or float(np.minimum.reduce(factor.diagonal())) ** 2 <= 16 * len(H) * _EPS:
        return None
    return lambda side: scale * lapack.dpotrs(factor, scale * side, lower=1)[0]


def newton_step(H: Array, slope: Array, noise: float, level: bool = False) -> tuple[Array, bool]:
    r"""The step to the minimiser of :math:`\tfrac12\delta^T H\delta + g^T\delta`, the shortest of them, and True.

    With :math:`\sum\delta = 0` if ``level``. Where there is no minimiser, a direction of descent without curvature, and
    False; ``noise`` is the rounding of an entry of the slope, which gives no direction.
    """
    if level:
        slope = slope - slope.mean()  # changes nothing but the rounding
    inverse = cholesky_inverse(H)
    if inverse is not None:
        free, along = inverse(np.column_stack([-slope, np.ones(len(H))])).T
        return (free - free.sum() / along.sum() * along if level else free), True
    if level:
        centre = np.eye(len(H)) - 1.0 / len(H)
        H, slope = centre @ H @ centre, centre @ slope
    h, V = np.linalg.eigh(H)
    part, flat = V.T @ slope, is_null(h)
    whole = not np.linalg.norm(part[flat]) > 4 * np.sqrt(len(H)) * noise
    step = -(V[:, ~flat] @ (part[~flat] / h[~flat])) if whole else -(V[:, flat] @ part[flat])
    return (step - step.mean() if level else step), whole


class CGResult(NamedTuple):
    """What `conjugate_gradients` returns.

    Attributes
    ----------
    x, image : ndarray
        The last iterate, and its product with the matrix.
    flat : ndarray or None
        A direction of descent without curvature, where one ended the iteration.
    """

    x: Array
    image: Array
    flat: Array | None = None


def conjugate_gradients(
    product: Product,
    b: Array,
    precondition: Product | None = None,
    *,
    tol: float,
    max_iter: int,
    until: Callable[[Array], bool] | None = None,
) -> CGResult:
    r"""Solve :math:`A x = b` from zero, for a symmetric matrix without negative eigenvalues.

    Parameters
    ----------
    product : callable
        The product of A with an array of the shape of ``b``; one for each iteration.
    b : ndarray
        The right-hand side, of any shape.
    precondition : callable, optional
        The product with an approximate inverse of A.
    tol : float
        Stop when the residual, in the norm of the preconditioner, has fallen by this factor.
    max_iter : int
        The largest number of iterations. It also stops at the deadline of the run.
    until : callable, optional
        Stop at the first iterate for which it is True.

    References
    ----------
    Hestenes, Stiefel (1952), Methods of conjugate gradients for solving linear systems.
    """
    x, image, residual = np.zeros_like(b), np.zeros_like(b), b.copy()
    direction = scaled = residual if precondition is None else precondition(residual)
    first = square = float(np.vdot(residual, scaled))
    for _ in range(max_iter):
        if not tol**2 * first < square < math.inf or expired():
            break
        part = product(direction)
        curvature = float(np.vdot(direction, part))
        if not curvature > 0.0:
            return CGResult(x, image, direction)
        step = square / curvature
        x, image, residual = x + step * direction, image + step * part, residual - step * part
        if until is not None and until(x):
            break
        scaled = residual if precondition is None else precondition(residual)
        before, square = square, float(np.vdot(residual, scaled))
        direction = scaled + (square / before) * direction
    return CGResult(x, image)
