"""The softmax (multinomial logistic) loss."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, count
from projfree.losses.base import ExponentialLoss, indices
from projfree.numerics import scalars
from projfree.numerics.forms import register

#: The part of the range of exponents that leaves room for the quotient of two exponentials and a sum of millions.
SHARE = 0.4
#: Predictions of this size have exponentials whose quotients and sums stay within range.
SAFE = SHARE * math.log(sys.float_info.max)
#: log eps^2: a true class below this part of the largest leaves the other derivatives unchanged to rounding.
FLOOR = 2.0 * math.log(sys.float_info.epsilon)


@dataclass(frozen=True)
class Softmax(ExponentialLoss):
    r"""Multinomial logistic loss for k classes; targets are class indices 0, ..., k - 1.

    .. math::
        \ell(u, y) = \log \sum_j e^{u_j - u_y}, \qquad
        \ell' = p - e_y, \qquad
        \ell'' = \operatorname{diag}(p) - p p^T, \qquad
        p_j = \frac{e^{u_j}}{\sum_i e^{u_i}}.

    The derivative at the true class is computed as :math:`-\sum_{j \ne y} p_j`, and the value as log1p of
    :math:`\sum_{j \ne y} e^{u_j - u_y}`, so that both keep their relative accuracy where they are tiny. The
    largest eigenvalue of the second derivative is at most 1/2, with equality where two classes share all
    probability. Cost O(n k), one exponential an entry; `second` is O(n k^2).

    Parameters
    ----------
    classes : int, optional
        The number k of classes, at least 2; by default one more than the largest target.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Softmax()
    >>> y = loss.targets([0, 2])
    >>> loss.outputs(y)
    (3,)
    >>> loss.value(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 50.0]]), y)
    array([1.09861229e+00, 3.85749970e-22])
    """

    classes: int | None = None

    coupled = True
    labels = True
    smoothness = 0.5
    lower_bound = 0.0
    lipschitz = math.sqrt(2.0)
    #: Exponentials 4.5, their sum 12.5 (see `_row_sums`; 1/2 more for each doubling of k beyond 128), quotient
    #: with another exponential 5, log1p 4: 26 for the value, and less for the derivative.
    rounding = 32

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", count("Softmax(classes=...)", self.classes, lowest=2))

    def value_and_derivative(self, u: Array, y: Array) -> tuple[Array, Array]:
        # As long as nothing can overflow, exp(u) itself is both the fastest and, with no difference to round, the most
        # accurate.
        e, lift = (np.exp(u, order="C"), 0.0) if _is_safe(u) else _shifted(u, y)
        flat = _true(e, y)
        true = e.take(flat)
        e.put(flat, 0)
        others = _row_sums(e)
        value = np.log1p(others / true) + lift
        e.put(flat, -others)
        e /= (others + true)[:, None]
        return value, e

    def second(self, u: Array, y: Array) -> Array:
        p = self.mean(u)
        out: Array = -p[:, :, None] * p[:, None, :]
        j = np.arange(p.shape[1])
        out[:, j, j] += p
        return out

    def mean(self, u: Array) -> Array:
        """The probability of each class, of the shape of ``u``."""
        p: Array = np.exp(u if _is_safe(u) else u - u.max(axis=1, keepdims=True), order="C")
        p /= _row_sums(p)[:, None]
        return p

    def targets(self, y: Array) -> Array:
        return indices(y, self.classes)

    def outputs(self, y: Array) -> tuple[int, ...]:
        """``(k,)``: the number of classes given, or one more than the largest target."""
        return (self.classes if self.classes is not None else int(np.max(y)) + 1,)


def _is_safe(u: Array) -> bool:
    """Whether exp(u) fits, and quotients and sums of such numbers."""
    return bool(np.abs(u).max(initial=0) <= SHARE * np.log(np.finfo(u.dtype).max))


def _shifted(u: Array, y: Array) -> tuple[Array, Array]:
    """exp(u - max u), C-ordered, and by how much the true class was raised so that its entry does not vanish."""
    top = u.max(axis=1, keepdims=True)
    d = np.subtract(u, top, order="C")
    # d is rounded by up to eps |d| / 2, hundreds of eps relative in exp(d). Knuth's two-sum gives that error.
    # (In place, because fresh large arrays cost more than the arithmetic: error = (u - (d - back)) - (top + back).)
    back = d - u
    error = d - back
    np.subtract(u, error, out=error)
    back += top
    error -= back
    # A true class below eps^2 of the largest leaves the derivative's other entries unchanged to rounding.
    floor = 2 * np.log(np.finfo(u.dtype).eps)
    flat = _true(d, y)
    true = d.take(flat)
    raised = np.maximum(true, floor)
    d.put(flat, raised)
    error[np.arange(len(y)), y] *= true == raised
    e = np.exp(d, out=d)
    error *= e
    e += error
    return e, raised - true


def _true(e: Array, y: Array) -> Array:
    """The positions of the true classes in the flattened array."""
    n, k = e.shape
    return np.arange(0, n * k, k) + y


def _row_sums(e: Array) -> Array:
    """Row sums of a C-ordered array within 25 roundings for k up to 128.

    Any order of 25 terms does that, so take the fast one; NumPy's own sum is pairwise on contiguous rows.
    """
    sums: Array = np.einsum("ij->i", e) if e.shape[1] <= 25 else e.sum(axis=1)
    return sums


def _tile(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
    n = len(value)
    k, top = len(u) // n, 0.0
    for i in range(len(u)):
        top = max(top, abs(u[i]))
    if not top <= SAFE:
        for i in range(n):
            value[i] = _shifted_row(u[i * k : i * k + k], int(y[i]), slope[i * k : i * k + k])
        return
    for i in range(len(u)):
        slope[i] = scalars.exponential(u[i])
    for i in range(n):
        row, own = slope[i * k : i * k + k], int(y[i])
        true, others = row[own], 0.0
        row[own] = 0.0
        for c in range(k):
            others += row[c]
        row[own] = -others
        value[i] = others / true
        part = 1.0 / (others + true)
        for c in range(k):
            row[c] *= part
    for i in range(n):
        value[i] = scalars.log1p(value[i])


def _shifted_row(u: Array, y: int, slope: Array) -> float:
    """The value of a row whose exponentials may overflow: relative to the largest, with `_shifted`'s corrections."""
    top = u[0]
    for c in range(len(u)):
        top = u[c] if not u[c] <= top else top
    total, true, lift = 0.0, 1.0, 0.0
    for c in range(len(u)):
        d = u[c] - top
        back = d - u[c]
        error = (u[c] - (d - back)) - (top + back)
        if c == y and d < FLOOR:
            lift, d, error = FLOOR - d, FLOOR, 0.0
        e = math.exp(d)
        e += e * error
        if c == y:
            true, slope[c] = e, 0.0
        else:
            total, slope[c] = total + e, e
    slope[y] = -total
    for c in range(len(u)):
        slope[c] /= total + true
    return math.log1p(total / true) + lift


register(Softmax, tile=_tile)
