"""Exponential and logarithm of one number, in operations that a compiler vectorises, accurate relative to their size.

Plain Python, for the compiled forms of losses: `projfree.data.native` compiles these functions together with the loops
that call them, and replaces `bits` and `from_bits` by single instructions. Polynomials interpolate at Chebyshev nodes;
their error is below 2e-17.
"""

from __future__ import annotations

import struct

#: Added to a number below 2^51 it leaves the nearest whole number in the last bits; converting would not vectorise.
MAGIC = 6755399441055744.0
#: The bits of sqrt(1/2), and those of 2^52, whose last bits count in ones.
ROOT_BITS, COUNTER_BITS, COUNTER = 4604544271217802189, 4841369599423283200, 4503599627370496.0


def bits(x: float) -> int:
    """The bits of a float64 as a signed integer of 64 bits."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def from_bits(i: int) -> float:
    """The float64 with the last 64 bits of an integer."""
    return float(struct.unpack("<d", struct.pack("<Q", i & 0xFFFFFFFFFFFFFFFF))[0])


def exponential(t: float) -> float:
    """exp(t) for t between -700 and 700, within 2 ulp: a polynomial after taking off multiples of log 2."""
    moved = t * 1.4426950408889634 + MAGIC  # the nearest whole number k stands in its last bits
    k = moved - MAGIC
    r = (t - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    p = 2.510038549551032e-08
    p = p * r + 2.7620088445409746e-07
    p = p * r + 2.7557268459997064e-06
    p = p * r + 2.4801521295954376e-05
    p = p * r + 0.00019841269863053618
    p = p * r + 0.0013888888917213717
    p = p * r + 0.008333333333330062
    p = p * r + 0.04166666666662413
    p = p * r + 0.16666666666666669
    p = p * r + 0.5000000000000001
    p = (p * r) * r + r
    return (p + 1.0) * from_bits((bits(moved) + 1023) << 52)


def decay(u: float) -> float:
    """exp(-|u|), held at e^-700."""
    a = abs(u)
    return exponential(-(700.0 if a > 700.0 else a))


def bounded_exponential(u: float) -> float:
    """exp(u), held at e^-700 and at e^80."""
    low = -700.0 if u < -700.0 else u
    return exponential(80.0 if low > 80.0 else low)


def log1p_of_part(e: float) -> float:
    """log(1 + e) for e in [0, 1] as twice the inverse hyperbolic tangent of e / (2 + e)."""
    z = e / (2.0 + e)
    q = z * z
    s = 0.08082469084735669
    s = s * q + 0.04400158825434387
    s = s * q + 0.06000577591428889
    s = s * q + 0.06657067775440581
    s = s * q + 0.07692785296456121
    s = s * q + 0.09090894708663223
    s = s * q + 0.11111111358900891
    s = s * q + 0.1428571428355253
    s = s * q + 0.20000000000007298
    s = s * q + 0.3333333333333333
    z = 2.0 * z
    return (s * q) * z + z


def _atanh_series(q: float) -> float:
    """(atanh(z) / z - 1) / q for q = z^2 and z up to 0.172."""
    s = 0.07308292712444311
    s = s * q + 0.07665855309105386
    s = s * q + 0.09091444727837474
    s = s * q + 0.11111105565129939
    s = s * q + 0.14285714313001635
    s = s * q + 0.19999999999949722
    s = s * q + 0.3333333333333335
    return s


def log1p(x: float) -> float:
    """log(1 + x) for 0 <= x <= 1e300: the exponent apart, and the rounding of 1 + x put back."""
    w = 1.0 + x
    lost = x - (w - 1.0) if x < 1.0 else 1.0 - (w - x)
    steps = bits(w) - ROOT_BITS
    whole = from_bits(((steps >> 52) & 2047) + COUNTER_BITS) - COUNTER
    m = from_bits((steps & 4503599627370495) + ROOT_BITS)
    z = (m - 1.0) / (m + 1.0)
    q = z * z
    s = _atanh_series(q)
    z = 2.0 * z
    small = (s * q) * z + (z + (lost / w + whole * 1.9082149292705877e-10))
    return small + whole * 0.6931471803691238


def logarithm(x: float) -> float:
    """log(x) for x between 1e-300 and 1e300, and some finite number for 0."""
    steps = bits(x) - ROOT_BITS + 4611686018427387904  # 1024 more, so that it is not negative
    whole = from_bits(((steps >> 52) & 2047) + COUNTER_BITS) - (COUNTER + 1024.0)
    m = from_bits((steps & 4503599627370495) + ROOT_BITS)
    z = (m - 1.0) / (m + 1.0)
    q = z * z
    s = _atanh_series(q)
    z = 2.0 * z
    return ((s * q) * z + (z + whole * 1.9082149292705877e-10)) + whole * 0.6931471803691238
