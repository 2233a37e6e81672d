"""Losses of a tile of rows: values, derivatives and the sums of a tangent.

What must be accurate relative to its size is compiled with `EXACT`; sums may be reassociated (`FAST`), which the
rounding allowance covers for any order within a block.
"""

from __future__ import annotations

import math

from numba import njit

from projfree.data.native.scalars import EXACT, FAST, exponential, log1p, log1p_of_part

SQUARED, LOGISTIC, SQUARED_SIGMOID, BIWEIGHT, HUBER, SOFTMAX = range(6)
#: The numbers of the losses by the names that they carry; -1 asks for images alone.
CODES = {
    "squared": SQUARED,
    "logistic": LOGISTIC,
    "squared_sigmoid": SQUARED_SIGMOID,
    "biweight": BIWEIGHT,
    "huber": HUBER,
    "softmax": SOFTMAX,
}
IMAGES_ONLY = -1
#: Predictions of this size have exponentials whose quotients and sums stay within range.
SAFE = 280.0
#: log eps^2: a true class below this part of the largest leaves the other derivatives unchanged to rounding.
FLOOR = -72.08730677823394


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def decay(u):
    """exp(-|u|), held at e^-700."""
    a = abs(u)
    return exponential(-(700.0 if a > 700.0 else a))


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def losses(code, parameter, u, y, value, slope):
    """Value and derivative of predictions, each by itself.

    Exponentials have a loop of their own: with what follows in the same one, the registers do not suffice.
    """
    n = len(u)
    if code == SQUARED:
        for i in range(n):
            r = u[i] - y[i]
            value[i] = r * r
            slope[i] = 2.0 * r
    elif code == LOGISTIC:
        for i in range(n):
            value[i] = decay(u[i])
        for i in range(n):
            m, e = y[i] * u[i], value[i]
            value[i] = log1p_of_part(e) - min(m, 0.0)
            slope[i] = -y[i] * ((e if m > 0.0 else 1.0) / (1.0 + e))
    elif code == SQUARED_SIGMOID:
        for i in range(n):
            value[i] = decay(u[i])
        for i in range(n):
            m, e = y[i] * u[i], value[i]
            q = 1.0 / (1.0 + e)
            s = (e if m > 0.0 else 1.0) * q
            value[i] = s * s
            slope[i] = -2.0 * y[i] * s * (e * q * q)
    elif code == BIWEIGHT:
        for i in range(n):
            t = min(max((u[i] - y[i]) / parameter, -1e100), 1e100)
            q = 1.0 / (1.0 + t * t)
            value[i] = t * t * q
            slope[i] = 2.0 / parameter * (t * q * q)
    else:
        for i in range(n):
            r = u[i] - y[i]
            a = abs(r)
            value[i] = r * r if a <= parameter else parameter * (2.0 * a - parameter)
            slope[i] = 2.0 * min(max(r, -parameter), parameter)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def softmax(u, y, k, value, slope, true, others):
    """Value of each row of k predictions and derivative of each prediction; rows follow one another in ``u``."""
    n = len(y)
    top = 0.0
    for i in range(n * k):
        top = max(top, abs(u[i]))
    if not top <= SAFE:
        for i in range(n):
            _shifted_softmax(u[i * k : (i + 1) * k], y[i], value[i : i + 1], slope[i * k : (i + 1) * k])
        return
    for i in range(n * k):
        slope[i] = exponential(u[i])
    for i in range(n):
        at = i * k + y[i]
        true[i] = slope[at]
        slope[at] = 0.0
        total = 0.0
        for c in range(k):
            total += slope[i * k + c]
        others[i] = total
        slope[at] = -total
    for i in range(n):
        value[i] = log1p(others[i] / true[i])
        others[i] = 1.0 / (others[i] + true[i])
    for i in range(n):
        for c in range(k):
            slope[i * k + c] *= others[i]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _shifted_softmax(u, y, value, slope):
    """One row whose exponentials may overflow: relative to the largest, with the rounding of differences put back."""
    top = u[0]
    for c in range(len(u)):
        top = u[c] if not u[c] <= top else top
    total, true, lift = 0.0, 1.0, 0.0
    for c in range(len(u)):
        d = u[c] - top
        back = d - u[c]
        error = (u[c] - (d - back)) - (top + back)  # of the difference, by Knuth's two-sum
        if c == y and d < FLOOR:
            lift, d, error = FLOOR - d, FLOOR, 0.0
        e = math.exp(d)
        e += e * error
        if c == y:
            true, slope[c] = e, 0.0
        else:
            total, slope[c] = total + e, e
    value[0] = math.log1p(total / true) + lift
    slope[y] = -total
    for c in range(len(u)):
        slope[c] /= total + true


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)
def add_sums(u, b, value, slope, weight, sums):
    """Weigh the derivatives of a tile in place and add to its sums; the order is that of `Sums`.

    Losses are never negative, so the sum of their absolute values is their sum.
    """
    v = a = aa = sh = sq = g = ga = mu = 0.0
    for i in range(len(u)):
        s, d = weight[i], slope[i]
        r = d * s
        slope[i] = r
        v += s * value[i]
        a += r * u[i]
        aa += abs(r * u[i])
        sh += abs(r * (u[i] + b))
        sq += r * d
        g += r
        ga += abs(r)
        mu += s * u[i]
    sums[0] += v
    sums[1] += v
    sums[2] += a
    sums[3] += aa
    sums[4] += sh if b != 0.0 else 0.0  # no addition, no rounding
    sums[5] += sq
    sums[6] += g
    sums[7] += ga
    sums[8] += mu


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def tile_loss(first, count, u, code, parameter, y, weight, uniform, b, space, sums):
    """The weighted derivatives of a tile, into the first row of ``space``, and its sums."""
    slope, value, full, s = space[0], space[1], space[2], space[3]
    if b == 0.0:
        full = u
    else:
        for i in range(count):
            full[i] = u[i] + b
    if len(weight):
        s = weight[first : first + count]
    else:
        for i in range(count):
            s[i] = uniform
    losses(code, parameter, full[:count], y[first : first + count], value, slope)
    add_sums(u[:count], b, value[:count], slope[:count], s[:count], sums)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FAST)
def _weighed(value, weight, uniform):
    """The weighted sum of values; without weights all have the same."""
    total = 0.0
    if len(weight):
        for i in range(len(value)):
            total += weight[i] * value[i]
    else:
        for i in range(len(value)):
            total += uniform * value[i]
    return total


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def _combine(base, scale, coefficients, met, first, count, u):
    """The known part and the vectors met of a tile; loops without branches, so that they vectorise."""
    if len(base):
        for i in range(count):
            u[i] = scale * base[first + i]
    else:
        for i in range(count):
            u[i] = 0.0
    for k in range(len(coefficients)):
        c, image = coefficients[k], met[k, first : first + count]
        for i in range(count):
            u[i] += c * image[i]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def tile_beside(first, count, base, scale, coefficients, met, image, code, parameter, y, weight, uniform, space, sums):
    """A second mixture of what a tile has met: its image, and its mean loss onto the last of the sums."""
    slope, value, u = space[0], space[1], image[first : first + count]
    _combine(base, scale, coefficients, met, first, count, u)
    losses(code, parameter, u, y[first : first + count], value, slope)
    sums[-1] += _weighed(value[:count], weight[first : first + count], uniform)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def mix(base, scale, coefficients, offsets, met, first, count, keep, whole, u):
    """The images of a tile from the known part and the vectors just met, which get their offsets here."""
    for k in range(len(coefficients)):
        if offsets[k] != 0.0:
            image = met[k, first : first + count]
            for i in range(count):
                image[i] += offsets[k]
    _combine(base, scale, coefficients, met, first, count, u)
    if keep:
        for i in range(count):
            whole[first + i] = u[i]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=EXACT)
def tile_of_images(
    first, count, coefficients, offsets, base, scale, met, keep, whole, beside_scale, beside_coefficients, beside,
    code, parameter, y, weight, uniform, b, u, space, sums,
):  # fmt: skip
    """All that a pass does with the images of a tile; weighted derivatives go to the first row of ``space``."""
    mix(base, scale, coefficients, offsets, met, first, count, keep, whole, u)
    if len(beside):
        tile_beside(
            first, count, base, beside_scale, beside_coefficients, met, beside, code, parameter, y, weight, uniform,
            space, sums,
        )  # fmt: skip
    if code != IMAGES_ONLY:
        tile_loss(first, count, u, code, parameter, y, weight, uniform, b, space, sums)
