"""Exponential and logarithm with high relative accuracy, in operations that a compiler can vectorise.

The functions are plain Python, for the kernels of losses: `projfree.data.kernels` compiles them together with the loops
that call them. Calls of exp and log of the C library are not vectorised: the logistic loss would take 12 ns per row
instead of 1. The polynomials interpolate at Chebyshev nodes; their error is below 2e-17.
"""

from __future__ import annotations

import numpy as np

#: 1.5 * 2^52: adding it to a number below 2^51 stores the nearest integer in the last bits, a vectorisable rounding.
MAGIC = 6755399441055744.0
#: The leading bits of log 2, and the remainder.
LOG2, LOG2_REST = 0.6931471803691238, 1.9082149292705877e-10
#: Exponentials of numbers up to this size are normal.
LARGEST = 700.0

#: Coefficients of (exp(r) - 1 - r) / r^2 in r, and of (atanh(z) / z - 1) / z^2 in z^2, from the highest power down.
EXP = (
    2.510038549551032e-08,
    2.7620088445409746e-07,
    2.7557268459997064e-06,
    2.4801521295954376e-05,
    0.00019841269863053618,
    0.0013888888917213717,
    0.008333333333330062,
    0.04166666666662413,
    0.16666666666666669,
    0.5000000000000001,
)
LOG = (
    0.08082022805971767,
    0.04400369243072337,
    0.06000536404795356,
    0.06657072104827468,
    0.07692785032479312,
    0.09090894718066429,
    0.11111111358713932,
    0.1428571428355438,
    0.20000000000007292,
    0.3333333333333333,
)


def exponential(t: float) -> float:
    """Return exp(t) for t in [-700, 700], with an error of at most 2 ulp."""
    moved = t * (1.0 / LOG2) + MAGIC  # its last bits are the nearest integer k
    k = moved - MAGIC
    r = (t - k * LOG2) - k * LOG2_REST
    p = EXP[0]
    for c in EXP[1:]:
        p = p * r + c
    p = (p * r) * r + r
    power: float = np.int64((np.float64(moved).view(np.int64) + 1023) << 52).view(np.float64)  # 2^k
    return (p + 1.0) * power


def decay(u: float) -> float:
    """Return exp(-|u|), but at least e^-700."""
    return exponential(-min(abs(u), LARGEST))


def log1p(x: float) -> float:
    """Return log(1 + x) for 0 <= x <= 1, as 2 atanh(x / (2 + x))."""
    z = x / (2.0 + x)
    q = z * z
    s = LOG[0]
    for c in LOG[1:]:
        s = s * q + c
    return 2.0 * (z + (s * q) * z)
