r"""Newton steps over an l_p ball, 1 < p < infinity, by conjugate gradients on products with the Hessian.

On the sphere of the ball the minimiser of f satisfies, with :math:`s = \operatorname{sgn}(x) |x|^{p-1}`,

.. math:: g(x) + \lambda s = 0, \qquad \|x\|_p = 1, \qquad \lambda > 0.

The constraint curves :math:`\lambda s`, so that the matrix of the step is :math:`H + \lambda E^{-1}` on the tangent
space :math:`\langle s, dx\rangle = 0`, with :math:`E = dx/ds`. For p = 2 that is the ridge that belongs to the radius.
Where E is small, x hardly moves with s, and the new x is read off :math:`s = -(g + H\,dx)/\lambda`: Newton's method
in the mirror coordinate s; elsewhere it is x + dx.

All functions work on the unit ball.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import lp_norm

#: Conjugate gradients end when the residual has fallen to this part: the Frank-Wolfe gap then falls by its square.
ENOUGH = 0.1
#: Far from the minimum over a Euclidean ball this part will do, because the model is not exact there either.
ROUGH = 0.2
#: And after so many products at the latest.
MOST = 200
#: Steps of the search for the place where a direction leaves the ball; a few are usual.
CROSSINGS = 60

Product = Callable[[Array], Array]


class Reached(NamedTuple):
    """A point, and how it was made: ``scale`` times the sum of the old one and of steps along the directions.

    Directions are what products were asked of, in this order. Without steps the point is no such sum, or the old one.
    """

    x: Array
    scale: float = 1.0
    steps: tuple[float, ...] = ()


def sphere_step(product: Product, g: Array, x: Array, p: float, diagonal: Array | float = 0.0) -> Reached:
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
        About the diagonal of the Hessian; only used where p is not 2.

    Returns
    -------
    Reached
        A point of norm one.
    """
    penalty = -float(g @ x)
    if p == 2.0:
        slope = g + penalty * x
        enough = min(ROUGH, max(ENOUGH, float(np.linalg.norm(slope)) / penalty))
        dx, _, steps = _tangential(product, slope, x, penalty, 1.0 / penalty, enough)
        return _scaled(x + dx, p, steps)
    s = np.copysign(np.abs(x) ** (p - 1.0), x)
    with np.errstate(divide="ignore", over="ignore"):
        bend = penalty * (p - 1.0) * np.abs(x) ** (p - 2.0)  # lambda / E
        inverse = 1.0 / (bend + diagonal)
    still = ~np.isfinite(bend) | ~np.isfinite(inverse)
    bend, inverse = np.where(still, 0.0, bend), np.where(still, 0.0, inverse)
    dx, image, _ = _tangential(product, g + penalty * s, s, bend, inverse)
    mirrored = -(g + image) / penalty
    mirrored = np.copysign(np.abs(mirrored) ** (1.0 / (p - 1.0)), mirrored)
    return _scaled(np.where((bend < diagonal) & ~still, x + dx, mirrored), p)


def inner_step(product: Product, g: Array, x: Array, p: float) -> Reached:
    """A better point of the unit ball: conjugate gradients from ``x``, as far as they stay in it."""
    steps: tuple[float, ...] = ()
    v, rest = x, -g
    direction, square = rest, float(rest @ rest)
    goal = ENOUGH**2 * square
    for _ in range(MOST):
        if not square > 0.0:
            break
        image = product(direction)
        curvature = float(direction @ image)
        length = square / curvature if curvature > 0.0 else math.inf
        step = min(length, 1e3 / math.sqrt(float(direction @ direction)))  # leads outside, if the length is infinite
        new = v + step * direction
        if not lp_norm(new, p) < 1.0:
            part = _crossing(v, new - v, p)
            return _scaled(v + part * (new - v), p, (*steps, part * step))
        v, rest, steps = new, rest - length * image, (*steps, step)
        before, square = square, float(rest @ rest)
        if square <= goal or expired():
            break
        direction = rest + (square / before) * direction
    return Reached(v, 1.0, steps)


def _tangential(
    product: Product, slope: Array, s: Array, bend: Array | float, inverse: Array | float, enough: float = ENOUGH
) -> tuple[Array, Array, tuple[float, ...]]:
    r"""About the minimiser of :math:`\tfrac12 \langle d, (H + \text{bend}) d\rangle + \langle\text{slope}, d\rangle`.

    Over :math:`\langle s, d\rangle = 0`, by conjugate gradients with the scale ``inverse`` until the residual has
    fallen to the part ``enough``; with its product with H, and the step along each direction.
    """
    weighted = inverse * s
    length = float(s @ weighted)

    def tangent(v: Array) -> Array:
        z = inverse * v
        if length > 0.0:  # else no entry that s has can move, and z is tangential already
            z -= (float(s @ z) / length) * weighted
        return z

    rest = -slope
    scaled = tangent(rest)
    direction, square = scaled, float(rest @ scaled)
    goal = enough**2 * square
    steps: tuple[float, ...] = ()
    d, image = np.zeros_like(s), np.zeros_like(s)
    for _ in range(MOST):
        if not square > 0.0:
            break
        part = product(direction)
        whole = part + bend * direction
        curvature = float(direction @ whole)
        if not curvature > 0.0:
            break
        step = square / curvature
        steps = (*steps, step)
        d += step * direction
        image += step * part
        rest -= step * whole
        scaled = tangent(rest)
        before, square = square, float(rest @ scaled)
        if square <= goal or expired():
            break
        direction = scaled + (square / before) * direction
    return d, image, steps


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


def _scaled(v: Array, p: float, steps: tuple[float, ...] = ()) -> Reached:
    norm = lp_norm(v, p)
    return Reached(v / norm, 1.0 / norm, steps) if norm > 0.0 else Reached(v, 1.0, steps)
