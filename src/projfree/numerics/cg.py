"""Preconditioned conjugate gradients for a matrix that is known by its products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

Product = Callable[[Array], Array]


class CGResult(NamedTuple):
    """What `conjugate_gradients` returns.

    Attributes
    ----------
    x, image : ndarray
        The last iterate that lies inside, and its product with the matrix.
    outside : ndarray or None
        The next iterate where that lies outside.
    """

    x: Array
    image: Array
    outside: Array | None = None


def conjugate_gradients(
    product: Product,
    b: Array,
    precondition: Product | None = None,
    *,
    tol: float,
    max_iter: int,
    inside: Callable[[Array], bool] | None = None,
) -> CGResult:
    r"""Solve :math:`A x = b` from zero, for a symmetric matrix without negative eigenvalues.

    Parameters
    ----------
    product : callable
        The product of A with a vector; one for each iteration.
    b : ndarray
        The right-hand side.
    precondition : callable, optional
        The product with an approximate inverse of A.
    tol : float
        Stop when the residual, in the norm of the preconditioner, has fallen by this factor.
    max_iter : int
        The largest number of iterations. It also stops at the deadline of the run.
    inside : callable, optional
        Stop before the first iterate for which it is False. Along a direction without curvature, that is a point far
        away.

    Returns
    -------
    CGResult
        The solution and its image.

    References
    ----------
    Hestenes, Stiefel (1952); Steihaug (1983), The conjugate gradient method and trust regions in large scale
    optimization.
    """
    x, image, residual = np.zeros_like(b), np.zeros_like(b), b.copy()
    scaled = residual if precondition is None else precondition(residual)
    direction, square = scaled, float(residual @ scaled)
    goal = tol**2 * square
    for _ in range(max_iter):
        if not square > 0.0:
            break
        part = product(direction)
        curvature = float(direction @ part)
        if inside is not None:
            far = 1e3 / float(np.linalg.norm(direction))  # the set has a diameter of about one
            new = x + (min(square / curvature, far) if curvature > 0.0 else far) * direction
            if not inside(new):
                return CGResult(x, image, new)
        if not curvature > 0.0:
            break
        step = square / curvature
        x, image, residual = x + step * direction, image + step * part, residual - step * part
        scaled = residual if precondition is None else precondition(residual)
        before, square = square, float(residual @ scaled)
        if square <= goal or not math.isfinite(square) or expired():
            break
        direction = scaled + (square / before) * direction
    return CGResult(x, image)
