r"""Projection onto the sphere of a (weighted) l_p norm, :math:`1 < p < \infty`, by Newton's method on logarithms.

The projection :math:`x = r y / d` of :math:`a \ge 0` onto :math:`\{x : \|d x\|_p \le r\}` solves, entry by entry and
with one multiplier :math:`\lambda` that makes :math:`\|y\|_p = 1`,

.. math:: (\kappa/d)\, y + \lambda d\, y^{p-1} = b, \qquad b = a/m,\ \kappa = r/m,\ m = \max_j a_j.

Powers such as :math:`y^{0.001}` are hopeless in ``y`` and harmless in its logarithm. With :math:`\log y = \alpha t`,

.. math:: h(t) = \log\bigl(e^{\alpha t + \log(\kappa/d)} + e^{\beta t + \log(\lambda d)}\bigr) - \log b = 0,

:math:`(\alpha, \beta) = (1/(p-1), 1)` for :math:`p < 2` and :math:`(1, p-1)` otherwise: increasing and convex, so
Newton's method from the right falls monotonically onto the root. Measuring from ``m`` keeps every logarithm that
matters of order one, whatever the scale of ``a`` and ``r``.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_norm import conjugate, row_norms
from projfree.numerics.sum_of_powers import solve_entries

_EPS = float(np.finfo(np.float64).eps)
_OUTER = 80  # a bound on the loop; 3-8 rounds are usual
_LOG_ZERO = -1e4  # stands for log(0): its power vanishes, and differences with it stay finite


def sphere_rows(a: Array, p: float, radius: Array, weights: Array | None = None) -> Array:
    r"""Project rows ``a >= 0`` that lie outside the ball onto :math:`\{x : \|d x\|_p = r\}`; ``radius`` one a row.

    Newton on :math:`\|y(\lambda)\|_p^{1-p} = 1`, which is nearly linear in :math:`\lambda` at both ends of its range,
    kept in a bracket; at its inside Newton for every entry. Cost: about 30 logarithms and exponentials an entry.
    """
    problem = _Rows(a, p, radius, weights)
    c = problem.first_guess()
    low, high = problem.low, problem.high
    for _ in range(_OUTER):
        xi, log_norm, slope = problem.solve(c)
        c, low, high, step = _advance(c, low, high, p, log_norm, slope)
        # A relative step of 1e-8 in lambda has, Newton's method being quadratic, an error below rounding after it.
        if np.all((np.abs(step) <= 1e-8) | (np.abs(log_norm) <= 8.0 * _EPS)):
            break
    xi, log_norm, _ = problem.solve(c)
    return problem.unscale(xi - log_norm)


def _advance(c: Array, low: Array, high: Array, p: float, log_norm: Array, slope: Array) -> tuple[Array, ...]:
    """One safeguarded Newton step of the multiplier: the new logarithm, the bracket and the relative step."""
    low, high = np.where(log_norm > 0.0, c, low), np.where(log_norm > 0.0, high, c)
    step = np.expm1(np.minimum((p - 1.0) * log_norm, 600.0)) / np.maximum((p - 1.0) * slope, 1e-300)
    new = c + np.log1p(np.clip(step, -0.999, 1e300))
    middle = np.where(np.isfinite(low), 0.5 * (np.maximum(low, -1e6) + high), c - 3.0)
    outside = (new < low) | (new > high)
    return np.where(outside, middle, new), low, high, step


class _Rows:
    """The equations of all rows for a given logarithm ``c`` of the multiplier (a column, one entry a row)."""

    def __init__(self, a: Array, p: float, radius: Array, weights: Array | None) -> None:
        self.p, self.a, self.radius = p, a, radius.reshape(-1, 1)
        self.warm: tuple[Array, Array, Array] | None = None
        self.d = np.ones((1, 1)) if weights is None else weights
        self.alpha, self.beta = (1.0 / (p - 1.0), 1.0) if p < 2.0 else (1.0, p - 1.0)
        self.m = a.max(axis=-1, keepdims=True)
        self.b = a / self.m
        self.log_b = np.log(np.maximum(self.b, 5e-324))
        np.copyto(self.log_b, _LOG_ZERO, where=self.b == 0.0)
        self.log_d = np.log(self.d)
        kappa = self.radius / self.m
        # A difference of logarithms is the coarser formula; where the quotient underflows, kappa no longer matters.
        log_kappa = np.log(self.radius) - np.log(self.m) if np.min(kappa) < 1e-290 else np.log(kappa)
        self.sigma = log_kappa - self.log_d
        self.right = (self.log_b - self.sigma) / self.alpha  # where the first power alone would be b
        # lambda is the dual norm of b - kappa y / d, at most that of b; and y <= 1 bounds it from below.
        ceiling = row_norms(self.b / self.d, conjugate(p))[:, None]
        floor = np.max((self.b - kappa / self.d) / self.d, axis=-1, keepdims=True)
        self.high = np.log(ceiling) + 1e-9
        self.low = np.where(floor > 0.0, np.log(np.maximum(floor, 1e-300)) - 1e-9, -np.inf)

    def first_guess(self) -> Array:
        r"""Newton's step from :math:`\lambda = 0`, where :math:`y = b d/\kappa` is known, put into the bracket."""
        log_y = self.log_b - self.sigma
        log_norm, _ = _log_norm(log_y, self.p)
        power = (2.0 * self.p - 2.0) * (log_y - log_norm) + 2.0 * self.log_d
        curvature = np.exp(power).sum(axis=-1, keepdims=True)
        log_kappa = self.sigma + self.log_d
        gain = -np.expm1((1.0 - self.p) * np.maximum(log_norm, 0.0)) / ((self.p - 1.0) * np.maximum(curvature, 1e-300))
        guess = (log_kappa + log_norm).max(axis=-1, keepdims=True) + np.log(np.maximum(gain, 1e-300))
        return np.asarray(np.clip(guess, self.low, self.high))

    def solve(self, c: Array) -> tuple[Array, Array, Array]:
        r""":math:`\log y`, :math:`\log\|y\|_p` and :math:`-d\log\|y\|_p/dc` for the multiplier :math:`e^c`."""
        offset = c + self.log_d
        t = self.log_b - offset
        t /= self.beta
        np.minimum(t, self.right, out=t)
        if self.warm is not None:  # the tangent at the last multiplier; Newton's method corrects it from either side
            last, t_last, speed = self.warm
            np.minimum(t, t_last - speed * (c - last), out=t)
        stop = 1e-8 / max(self.alpha, self.beta)
        t, speed = solve_entries(t, self.log_b, self.sigma, offset, self.alpha, self.beta, stop)
        speed /= self.alpha + (self.beta - self.alpha) * speed
        self.warm = c, t, speed
        log_y = self.alpha * t
        log_norm, share = _log_norm(log_y, self.p)
        share *= speed
        return log_y, log_norm, self.alpha * share.sum(axis=-1, keepdims=True)

    def unscale(self, log_y: Array) -> Array:
        return np.where(self.a > 0.0, self.radius * np.exp(log_y) / self.d, 0.0)


def _log_norm(log_y: Array, p: float) -> tuple[Array, Array]:
    r""":math:`\log\|y\|_p` of each row, and the shares :math:`y_j^p/\|y\|_p^p`."""
    top = log_y.max(axis=-1, keepdims=True)
    share = log_y - top
    np.exp(np.multiply(share, p, out=share), out=share)
    total = share.sum(axis=-1, keepdims=True)
    share /= total
    return top + np.log(total) / p, share
