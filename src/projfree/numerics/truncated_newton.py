r"""Newton steps over the unit l_p ball, 1 < p < infinity, by conjugate gradients on products with the Hessian.

On the sphere of the ball the minimiser of f satisfies, with :math:`s = \operatorname{sgn}(x) |x|^{p-1}`,

.. math:: g(x) + \lambda s = 0, \qquad \|x\|_p = 1, \qquad \lambda > 0.

The constraint curves :math:`\lambda s`, so that the matrix of the step is :math:`H + \lambda E^{-1}` on the tangent
space :math:`\langle s, dx\rangle = 0`, with :math:`E = dx/ds`. For p = 2 that is the ridge that belongs to the radius.
Where E is small, x hardly moves with s, and the new x is read off :math:`s = -(g + H\,dx)/\lambda`: Newton's method
in the mirror coordinate s; elsewhere it is x + dx.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.linear_systems import Product, conjugate_gradients
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.root_finding import find_root

#: Conjugate gradients end when the residual has fallen tenfold: the Frank-Wolfe gap then falls by its square.
TOLERANCE = 0.1
#: And after so many products at the latest.
MOST = 200


def sphere_step(product: Product, g: Array, x: Array, p: float, diagonal: Array | float = 0.0) -> Array:
    r"""A better point of the unit sphere, from a point ``x`` of it with :math:`\langle g, x\rangle < 0`.

    Parameters
    ----------
    product : callable
        The product of the Hessian with a vector.
    g, x : array
        The gradient and the point, flat.
    p : float
        The exponent of the norm.
    diagonal : array or float
        About the diagonal of the Hessian; a scale.
    """
    penalty = -float(g @ x)
    s = np.copysign(np.abs(x) ** (p - 1.0), x)
    with np.errstate(divide="ignore", over="ignore"):
        curvature = penalty * (p - 1.0) * np.abs(x) ** (p - 2.0)  # lambda / E
        inverse = 1.0 / (curvature + diagonal)
    still = ~np.isfinite(curvature) | ~np.isfinite(inverse)
    curvature, inverse = np.where(still, 0.0, curvature), np.where(still, 0.0, inverse)
    weighted = inverse * s
    length = float(s @ weighted)

    def tangent(v: Array) -> Array:
        z = inverse * v
        if length > 0.0:  # else no entry that s has can move, and z is tangential already
            z -= (float(s @ z) / length) * weighted
        return z

    found = conjugate_gradients(
        lambda v: product(v) + curvature * v, -(g + penalty * s), tangent, tol=TOLERANCE, max_iter=MOST
    )
    if p == 2.0:
        return _normalized(x + found.x, p)
    mirrored = -(g + (found.image - curvature * found.x)) / penalty
    mirrored = np.copysign(np.abs(mirrored) ** (1.0 / (p - 1.0)), mirrored)
    return _normalized(np.where((curvature < diagonal) & ~still, x + found.x, mirrored), p)


def inner_step(product: Product, g: Array, x: Array, p: float) -> Array:
    """A better point of the unit ball: Newton's step from ``x``, as far as it stays inside."""
    found = conjugate_gradients(
        product, -g, tol=TOLERANCE, max_iter=MOST, until=lambda move: not lp_norm(x + move, p) < 1.0
    )
    move = found.x
    if found.flat is not None:  # far enough to leave the ball
        move = move + ((2.0 + lp_norm(move, p)) / lp_norm(found.flat, p)) * found.flat
    if lp_norm(x + move, p) < 1.0:
        return x + move

    def look(part: float) -> tuple[float, float, float]:
        y = x + part * move
        norm = lp_norm(y, p)
        unit = y / norm if norm > 0.0 else y
        return norm - 1.0, float(np.copysign(np.abs(unit) ** (p - 1.0), unit) @ move), 0.0

    return _normalized(x + find_root(look, 1.0, 0.0, 1.0) * move, p)


def _normalized(v: Array, p: float) -> Array:
    norm = lp_norm(v, p)
    return v / norm if norm > 0.0 else v
