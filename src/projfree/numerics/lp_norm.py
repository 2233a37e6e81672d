r"""Norms :math:`\|x\|_p`, their duals and their norming vectors, for every ``p`` in ``[1, inf]``, at every scale.

Everything acts on the rows (last axis) of an array, and divides each row by its largest entry before it takes a
power: :math:`|x|^{1000}`, as ``p = 1.001`` needs it, leaves the range of a double at :math:`|x| = 2.1`.
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array

#: Between these sizes a sum of squares has neither overflown nor lost digits to denormal numbers.
SAFE_SQUARES = (1e-270, 1e300)


def conjugate(p: float) -> float:
    r"""The exponent :math:`q` with :math:`1/p + 1/q = 1`."""
    if p == 1.0:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1.0)


def row_norms(x: Array, p: float) -> Array:
    r"""The norm :math:`m\,(\sum_j (|x_j|/m)^p)^{1/p}`, :math:`m = \max_j |x_j|`, of every row.

    A row that holds NaN (an infinity) has norm NaN (infinity). Cost: one power an entry.
    """
    with np.errstate(over="ignore", under="ignore"):
        if p == 2.0:  # without a scale, which takes twice as long
            squares = np.add.reduce(np.square(x), axis=-1)
            if ((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])).all():
                return np.asarray(np.sqrt(squares))
        size = np.abs(x)
        if p == 1.0:  # a sum overflows only where the norm does
            return np.asarray(np.add.reduce(size, axis=-1))
        largest = np.maximum.reduce(size, axis=-1, initial=0.0)
        if math.isinf(p):
            return np.asarray(largest)
        finite = (largest > 0.0) & (largest < math.inf)
        size /= np.where(finite, largest, 1.0)[..., None]
        return np.asarray(largest * np.add.reduce(np.power(size, p, out=size), axis=-1) ** (1.0 / p))


def lp_norm(x: Array, p: float) -> float:
    r"""The norm :math:`\|x\|_p` of all entries of ``x`` together."""
    return float(row_norms(x.reshape(1, -1), p)[0])


def _raise(size: Array, p: float) -> Array:
    """``size ** p`` in the place of ``size``; a square and a root are several times faster than powers."""
    if p == 1.0:
        return size
    if p == 2.0:
        return np.square(size, out=size)
    if p == 0.5:
        return np.sqrt(size, out=size)
    return np.power(size, p, out=size)


def power(x: float, p: float) -> float:
    """``x ** p`` for ``x >= 0``, infinite where it overflows; Python's own power raises an exception there."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return float(np.float64(x) ** p)


def norming(c: Array, p: float) -> Array:
    r"""The rows :math:`v` with :math:`\|v\|_p = 1` and :math:`\langle c, v\rangle = \|c\|_q`, 0 where the row is 0.

    .. math:: v_j = \operatorname{sgn}(c_j)\, |c_j|^{q-1} / \|c\|_q^{q-1}, \qquad q - 1 = 1/(p-1),

    and for ``p = 1`` the signed unit vector of the first largest entry, for ``p = inf`` the signs of ``c``
    (0 where an entry is 0).
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
