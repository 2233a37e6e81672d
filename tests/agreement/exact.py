"""Objectives in decimal arithmetic of 80 digits: every float is taken as the number it is, nothing is rounded to one.

Sums of products of floats, square roots, exponentials and logarithms err by 1e-79 of their largest intermediate
number here, where float64 errs by 1e-16. So a comparison with a value of this module needs no tolerance.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

from projfree import Gamma, Huber, Logistic, Loss, Poisson, Quantile, Softmax, Squared, SquaredHinge

Array = np.ndarray[Any, Any]
DIGITS = Context(prec=80, Emin=-(10**9), Emax=10**9)
ONE = Decimal(1)


def decimals(a: Any) -> Array:
    """The entries as the numbers they are, in an array of objects."""
    a = np.asarray(a)
    out = np.empty(a.shape, dtype=object)
    for index in np.ndindex(a.shape):
        entry = a[index]
        out[index] = entry if isinstance(entry, Decimal) else Decimal(float(entry))
    return out


def power(x: Decimal, p: Decimal) -> Decimal:
    return x**p if x else Decimal(0)


def row_loss(loss: Loss, u: Array, y: Any) -> Decimal:
    """The loss of one row of predictions, summed over outputs."""
    if isinstance(loss, Softmax):
        true = u[int(y)]
        return log1p_sum([(u[j] - true).exp() for j in range(len(u)) if j != int(y)])
    return sum((_entry(loss, a, b) for a, b in zip(np.ravel(u), np.ravel(y), strict=True)), Decimal(0))


def _entry(loss: Loss, u: Decimal, y: Decimal) -> Decimal:
    if isinstance(loss, Squared):
        return (u - y) ** 2
    if isinstance(loss, Huber):
        r, delta = abs(u - y), Decimal(loss.delta)
        return r * r if r <= delta else 2 * delta * r - delta * delta
    if isinstance(loss, Quantile):  # the one that is reported, without smoothing
        q = Decimal(loss.quantile)
        return max(q * (y - u), (q - 1) * (y - u))
    if isinstance(loss, SquaredHinge):
        return max(ONE - y * u, Decimal(0)) ** 2
    if isinstance(loss, Poisson):
        return _exponential(u, Decimal(80)) - y * u + (y * y.ln() - y if y else 0)
    if isinstance(loss, Gamma):
        return y * _exponential(-u, Decimal(45)) + u - y.ln() - 1
    assert isinstance(loss, Logistic)
    return log1p_sum([(-y * u).exp()])


def _exponential(t: Decimal, limit: Decimal) -> Decimal:
    """The exponential, continued by its tangent beyond the limit."""
    return t.exp() if t <= limit else limit.exp() * (1 + t - limit)


def log1p_sum(terms: list[Decimal]) -> Decimal:
    """log(1 + sum), also where the sum is far below the last digit of one."""
    total = sum(terms, Decimal(0))
    if total < Decimal("1e-30"):
        return total - total * total / 2 + total**3 / 3
    return (ONE + total).ln()


class Mean:
    """The weighted mean of a loss over data: ``min_b sum_i s_i loss((X w)_i + b, y_i) / sum_i s_i``, exactly.

    The data are given once, as floats. With an intercept any b gives a value that the minimum cannot exceed; for
    squares the best one is a weighted mean.
    """

    def __init__(self, loss: Loss, X: Any, y: Any, weight: Any = None, intercept: bool = False) -> None:
        self.loss, self.intercept = loss, intercept
        with localcontext(DIGITS):
            self.X, self.y = decimals(X), decimals(y)
            s = decimals(np.ones(len(self.y)) if weight is None else weight)
            self.s = s / sum(s)

    def images(self, w: Array) -> Array:
        return np.asarray(self.X.dot(w))

    def __call__(self, w: Any, b: Any = None) -> Decimal:
        """The value at ``w``; with an intercept at ``b``, for squares at the best one."""
        with localcontext(DIGITS):
            u = self.images(decimals(w))
            if self.intercept and isinstance(self.loss, Squared):
                u = u + (self.s[:, None] * (self.y - u).reshape(len(u), -1)).sum(axis=0).reshape(u.shape[1:])
            elif self.intercept:
                u = u + decimals(b)
            rows = [s * row_loss(self.loss, u[i], self.y[i]) for i, s in enumerate(self.s) if s]
            return sum(rows, Decimal(0))


class MeanOfEntries(Mean):
    """The same for observed entries of a matrix."""

    def __init__(self, loss: Loss, rows: Array, cols: Array, y: Any, weight: Any = None) -> None:
        self.rows, self.cols = rows, cols
        super().__init__(loss, np.zeros((1, 1)), y, weight)

    def images(self, w: Array) -> Array:
        return np.asarray(w[self.rows, self.cols])


class Quadratic:
    """``<w, H w> / 2 - <b, w> + c``, exactly."""

    def __init__(self, H: Any, b: Any, c: float = 0.0) -> None:
        self.H, self.b, self.c = decimals(H), decimals(b), Decimal(c)

    def __call__(self, w: Any, b: Any = None) -> Decimal:
        with localcontext(DIGITS):
            w = decimals(w)
            return np.sum(w * self.H.dot(w)) / 2 - np.sum(self.b * w) + self.c
