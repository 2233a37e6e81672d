r"""Newton's method for :math:`\log(e^{\alpha t + \sigma} + e^{\beta t + \tau}) = \log b`, for many entries at once.

The left side is increasing and convex in :math:`t`, so from the right of the root Newton's method falls onto it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from projfree.checks import Array

_ROUNDS = 60  # a bound on the loop; 3-10 rounds are usual
_BLOCK = 8192  # entries at a time, so that what a round works on stays in the processor's cache


def solve_entries(
    t: Array, log_b: Array, sigma: Array, tau: Array, alpha: float, beta: float, stop: float
) -> tuple[Array, Array]:
    r"""Move the matrix ``t`` onto the roots, in place, until steps are within ``stop``.

    ``sigma`` and ``tau`` have the shape of ``t`` or one of its axes of length 1. Returned are ``t`` and the share of
    the second power, :math:`1/(1 + e^{\alpha t + \sigma - \beta t - \tau})`, before the last step. Cost of a round: an
    exponential and a logarithm an entry.
    """
    pull = np.empty_like(t)
    if t.size <= _BLOCK:
        _newton(t, pull, log_b, sigma, tau, alpha, beta, stop)
        return t, pull
    sigma, tau = np.broadcast_to(sigma, t.shape), np.broadcast_to(tau, t.shape)
    for part in _blocks(t.shape):
        _newton(t[part], pull[part], log_b[part], sigma[part], tau[part], alpha, beta, stop)
    return t, pull


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    rows, columns = shape
    high, wide = max(1, _BLOCK // max(1, columns)), min(columns, _BLOCK)
    for i in range(0, rows, high):
        for j in range(0, columns, max(1, wide)):
            yield slice(i, i + high), slice(j, j + wide)


def _newton(
    t: Array, pull: Array, log_b: Array, sigma: Array, tau: Array, alpha: float, beta: float, stop: float
) -> None:
    before = np.inf
    left, right, both = np.empty_like(t), np.empty_like(t), np.empty_like(t)
    for k in range(_ROUNDS):
        np.add(np.multiply(t, alpha, out=left), sigma, out=left)
        np.add(np.multiply(t, beta, out=right), tau, out=right)
        np.subtract(right, left, out=both)
        second = both > 0.0
        # The logarithm of a sum is the larger term's plus log1p of a power that cannot overflow.
        np.subtract(np.maximum(left, right, out=left), log_b, out=left)
        np.exp(np.negative(np.abs(both, out=both), out=both), out=both)
        left += np.log1p(both, out=right)
        np.add(both, 1.0, out=right)
        np.copyto(both, 1.0, where=second)
        np.divide(both, right, out=pull)
        rate = np.add(np.multiply(pull, beta - alpha, out=right), alpha, out=right)
        step = np.divide(left, rate, out=left)
        t -= step
        largest = np.maximum.reduce(np.abs(step, out=step), axis=None)
        if largest <= stop or (k > 1 and largest >= before):  # the second: nothing but rounding is left
            break
        before = largest
