r"""Norms :math:`\|x\|_p`, their duals and their norming vectors, for every ``p`` in ``[1, inf]``.

The functions act on the rows (last axis) of an array. They divide each row by its largest entry before they compute
powers, to avoid overflow: :math:`|x|^{1000}`, needed for ``p = 1.001``, overflows at :math:`|x| = 2.1`.
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array

#: Between these values a sum of squares has neither overflowed nor lost digits to subnormal numbers.
SAFE_SQUARES = (1e-270, 1e300)


def conjugate(p: float) -> float:
    r"""Return the conjugate exponent :math:`q` with :math:`1/p + 1/q = 1`."""
    if p == 1.0:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1.0)


def row_norms(x: Array, p: float) -> Array:
    r"""Return the norm :math:`m\,(\sum_j (|x_j|/m)^p)^{1/p}`, :math:`m = \max_j |x_j|`, of every row.

    The norm of a row with NaN (infinite) entries is NaN (infinite). Cost: one power per entry.
    """
    with np.errstate(over="ignore", under="ignore"):
        if p == 2.0:  # scaling would take twice as long
            squares = np.add.reduce(np.square(x), axis=-1)
            if ((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])).all():
                return np.asarray(np.sqrt(squares))
        size = np.abs(x)
        if p == 1.0:  # the sum overflows only if the norm does
            return np.asarray(np.add.reduce(size, axis=-1))
        largest = np.maximum.reduce(size, axis=-1, initial=0.0)
        if math.isinf(p):
            return np.asarray(largest)
        finite = (largest > 0.0) & (largest < math.inf)
        size /= np.where(finite, largest, 1.0)[..., None]
        return np.asarray(largest * np.add.reduce(np.power(size, p, out=size), axis=-1) ** (1.0 / p))


def lp_norm(x: Array, p: float) -> float:
    r"""Return the norm :math:`\|x\|_p` of the entries of ``x`` as one vector."""
    return float(row_norms(x.reshape(1, -1), p)[0])


def _raise(size: Array, p: float) -> Array:
    """Compute ``size ** p`` in place; squares and square roots are several times faster than powers."""
    if p == 1.0:
        return size
    if p == 2.0:
        return np.square(size, out=size)
    if p == 0.5:
        return np.sqrt(size, out=size)
    return np.power(size, p, out=size)


def power(x: float, p: float) -> float:
    """Return ``x ** p`` for ``x >= 0``; on overflow infinity, where the power of Python raises an exception."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return float(np.float64(x) ** p)


def norming(c: Array, p: float) -> Array:
    r"""Return rows :math:`v` with :math:`\|v\|_p = 1` and :math:`\langle c, v\rangle = \|c\|_q`; 0 for a row of zeros.

    .. math:: v_j = \operatorname{sgn}(c_j)\, |c_j|^{q-1} / \|c\|_q^{q-1}, \qquad q - 1 = 1/(p-1),

    for ``p = 1`` the signed unit vector of the first largest entry, and for ``p = inf`` the signs of ``c`` (0 for an
    entry that is 0).
    """
    if math.isinf(p):
        return np.asarray(np.sign(c))
    size = np.abs(c)
    if p == 1.0:
        first = size.argmax(axis=-1)[..., None]
        out = np.zeros_like(c)
        np.put_along_axis(out, first, np.sign(np.take_along_axis(c, first, axis=-1)), axis=-1)
        return out
    largest = np.maximum.reduce(size, axis=-1, keepdims=True, initial=0.0)
    size /= np.where(largest > 0.0, largest, 1.0)
    power = _raise(size.copy(), 1.0 / (p - 1.0))
    total = np.add.reduce(np.multiply(size, power, out=size), axis=-1, keepdims=True)
    power /= np.where(total > 0.0, total, 1.0) ** (1.0 / p)
    return np.copysign(power, c, out=power)
