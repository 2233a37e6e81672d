"""Symmetric positive semidefinite linear systems: inverses, Newton steps, and conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

#: Number of iterations without progress after which a method stops, because only rounding errors remain.
IDLE = 8
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)

Product = Callable[[Array], Array]


def is_null(h: Array) -> Array:
    """Return a mask of the eigenvalues (in increasing order) that are zero up to the rounding of the largest one."""
    return h <= 16 * len(h) * _EPS * max(abs(float(h[0])), abs(float(h[-1])), _TINY)


def cholesky_inverse(H: Array) -> Product | None:
    """Return a function that multiplies by the inverse of H; None if H is not numerically positive definite."""
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
    r"""Return the shortest minimiser of :math:`\tfrac12\delta^T H\delta + g^T\delta`, and True.

    If the function is unbounded below, return a descent direction of zero curvature, and False; ``noise`` is the
    rounding error of an entry of g. If ``level``, the minimisation is subject to :math:`\sum\delta = 0`.
    """
    if level:
        slope = slope - slope.mean()  # changes only the rounding
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
    """Result of `conjugate_gradients`.

    Attributes
    ----------
    x, image : ndarray
        Last iterate, and its product with the matrix.
    flat : ndarray or None
        Descent direction of zero curvature, if the iteration stopped at one.
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
    r"""Solve :math:`A x = b` for a symmetric positive semidefinite matrix, starting at zero.

    Parameters
    ----------
    product : callable
        Product of A with an array of the shape of ``b``; called once per iteration.
    b : ndarray
        Right-hand side, of any shape.
    precondition : callable, optional
        Product with an approximate inverse of A.
    tol : float
        Relative tolerance on the residual, in the norm of the preconditioner.
    max_iter : int
        Maximum number of iterations. The method also stops at the deadline of the run.
    until : callable, optional
        Function of the iterate; the method stops when it returns True.

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
