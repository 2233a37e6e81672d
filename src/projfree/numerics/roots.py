"""Roots of decreasing functions of one variable, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

_ROUNDS = 120  # bisection alone needs about 60 in the ranges that occur here; 8-12 are usual
_EPS = float(np.finfo(np.float64).eps)


def falling_roots(fun: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Bracket the root in ``[low, high]`` of each decreasing function by two neighbouring numbers.

    ``fun`` maps the vector of arguments to the vector of values. Inverse quadratic interpolation where it is safe,
    bisection elsewhere. Where a function does not change its sign, both numbers are the end nearest to a root. At the
    deadline the bracket is as narrow as it has become.

    References
    ----------
    Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function", 1997.
    """
    a, b, fa, fb = low, high, fun(low), fun(high)
    stuck = np.where(fb >= 0.0, high, np.where(fa <= 0.0, low, np.nan))
    live = np.isnan(stuck)
    a, b = np.where(live, a, stuck), np.where(live, b, stuck)
    t = np.full_like(a, 0.5)
    for _ in range(_ROUNDS):
        if not live.any() or expired():
            break
        x = np.where(live, a + t * (b - a), a)
        fx = fun(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(live & ~same, a, b), np.where(live & ~same, fa, fb)
        a, fa = np.where(live, x, a), np.where(live, fx, fa)
        width = np.abs(b - a)
        closest = np.where(np.abs(fb) < np.abs(fa), b, a)
        least = 2.0 * _EPS * np.abs(closest) / np.where(width > 0.0, width, 1.0)
        live = live & (fa != 0.0) & (width > 0.0) & (least <= 0.5)
        t = np.clip(_fraction(a, b, c, fa, fb, fc), np.minimum(least, 0.5), 1.0 - np.minimum(least, 0.5))
    b = np.where(fa == 0.0, a, b)
    return np.minimum(a, b), np.maximum(a, b)


def _fraction(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array) -> Array:
    """Where between ``a`` and ``b`` to look next."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(quadratic)
    return np.where(safe, quadratic, 0.5)
