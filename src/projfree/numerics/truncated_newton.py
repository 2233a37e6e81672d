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
from projfree.numerics.cg import Product, conjugate_gradients
from projfree.numerics.lp_norm import lp_norm

#: Conjugate gradients end when the residual has fallen tenfold: the Frank-Wolfe gap then falls by its square.
TOLERANCE = 0.1
#: And after so many products at the latest.
MOST = 200
#: Steps of the search for the place where a direction leaves the ball; a few are usual.
CROSSINGS = 60


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
    """A better point of the unit ball: conjugate gradients from ``x``, until they leave it."""
    found = conjugate_gradients(
        product, -g, tol=TOLERANCE, max_iter=MOST, inside=lambda move: lp_norm(x + move, p) < 1.0
    )
    if found.outside is None:
        return x + found.x
    start, move = x + found.x, found.outside - found.x
    return _normalized(start + _crossing(start, move, p) * move, p)


def _crossing(x: Array, d: Array, p: float) -> float:
    """The part of ``d`` at which x + d leaves the unit ball: Newton from outside, where the norm is convex."""
    part = 1.0
    for _ in range(CROSSINGS):
        y = x + part * d
        norm = lp_norm(y, p)
        unit = y / norm
        slope = float(np.copysign(np.abs(unit) ** (p - 1.0), unit) @ d)
        new = part - (norm - 1.0) / slope if slope > 0.0 else part
        if not 0.0 <= new < part:
            break
        part = new
    return part


def _normalized(v: Array, p: float) -> Array:
    norm = lp_norm(v, p)
    return v / norm if norm > 0.0 else v
