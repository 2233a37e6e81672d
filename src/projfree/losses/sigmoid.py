"""The logistic sigmoid without cancellation or overflow."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array


def decay(m: Array) -> Array:
    r""":math:`e^{-|m|}`, the one exponential that every quantity below is made of."""
    e = np.abs(m)
    np.negative(e, out=e)
    return np.exp(e, out=e)


def falling(m: Array, e: Array) -> Array:
    r""":math:`\sigma(-m) = 1 / (1 + e^m)`, accurate relative to its size, from ``e = decay(m)``."""
    # e / (1 + e) for positive m and 1 / (1 + e) otherwise; e is at most 1, so a maximum with the truth value
    # makes the numerator, several times faster than np.where.
    s = np.maximum(e, m <= 0)
    s /= 1 + e
    return s


def slope(e: Array) -> Array:
    r""":math:`\sigma(m) \sigma(-m) = e / (1 + e)^2`, the derivative of the sigmoid."""
    q: Array = 1 + e
    q *= q
    return np.divide(e, q, out=q)
