"""The softmax (multinomial logistic) loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array, count
from projfree.losses.base import Loss, indices
from projfree.numerics import scalars

#: The prediction of the true class is raised to at least the largest prediction plus this number.
#: exp(-80) is below eps^2, so that the other derivatives do not change up to rounding, and it is normal in float32 too.
LEAST = -80.0
#: Exponentials of numbers up to this size, and their quotients, are normal floating-point numbers.
SAFE = 280.0


@dataclass(frozen=True)
class Softmax(Loss):
    r"""Multinomial logistic loss for k classes; targets are class indices 0, ..., k - 1.

    .. math::
        \ell(u, y) = \log \sum_j e^{u_j - u_y}, \qquad
        \ell' = p - e_y, \qquad
        \ell'' = \operatorname{diag}(p) - p p^T, \qquad
        p_j = \frac{e^{u_j}}{\sum_i e^{u_i}}.

    The derivative at the true class is computed as :math:`-\sum_{j \ne y} p_j`, and the value as log1p of
    :math:`\sum_{j \ne y} e^{u_j - u_y}`, so that both are accurate relative to their size, also if they are tiny.
    The largest eigenvalue of the second derivative is at most 1/2, with equality if two classes have probability
    1/2 each. The cost is O(n k), with one exponential per entry; that of `second` is O(n k^2).

    Parameters
    ----------
    classes : int, optional
        Number k of classes, at least 2; by default one more than the largest target.

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
    # Error of the value in eps: exponentials 4.5, their sum 12.5 (see `_row_sums`; 1/2 more for each doubling of k
    # beyond 128), quotient with another exponential 5, log1p 4; in total 26. That of the derivative is smaller.

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", count("Softmax(classes=...)", self.classes, lowest=2))

    def value(self, u: Array, y: Array) -> Array:
        true, others, lift = _parts(u, y)[1:]
        return np.asarray(np.log1p(others / true) + lift)

    def derivative(self, u: Array, y: Array) -> Array:
        e, true, others, _ = _parts(u, y)
        e[np.arange(len(y)), y] = -others
        return np.asarray(e / (others + true)[:, None])

    def second(self, u: Array, y: Array) -> Array:
        p = self.mean(u)
        out: Array = -p[:, :, None] * p[:, None, :]
        j = np.arange(p.shape[1])
        out[:, j, j] += p
        return out

    def mean(self, u: Array) -> Array:
        """Return the probabilities of the classes, of the shape of ``u``."""
        p = np.exp(np.subtract(u, u.max(axis=1, keepdims=True), order="C"))
        return np.asarray(p / _row_sums(p)[:, None])

    def targets(self, y: Array) -> Array:
        return indices(y, self.classes)

    def outputs(self, y: Array) -> tuple[int, ...]:
        """Return ``(k,)``, where k is `classes` or one more than the largest target."""
        return (self.classes if self.classes is not None else int(np.max(y)) + 1,)

    @staticmethod
    def kernel(parameters: Array, u: Array, y: Array, value: Array, slope: Array) -> None:
        n, large = len(value), 0
        k = len(u) // n
        for i in range(n * k):
            large += abs(u[i]) > SAFE
        for i in range(0 if large else n * k):  # a separate loop, to be vectorised
            slope[i] = scalars.exponential(u[i])
        for i in range(n):
            row, e, own, lift = u[i * k : i * k + k], slope[i * k : i * k + k], int(y[i]), 0.0
            if large:
                top = row[0]
                for c in range(k):
                    top = row[c] if not row[c] <= top else top  # this order propagates NaN
                for c in range(k):
                    d = row[c] - top
                    back = d - row[c]
                    error = (row[c] - (d - back)) - (top + back)
                    if c == own and d < LEAST:
                        lift, d, error = LEAST - d, LEAST, 0.0
                    e[c] = np.exp(d) * (1.0 + error)
            true, e[own], others = e[own], 0.0, 0.0
            for c in range(k):
                others += e[c]
            part, e[own] = 1.0 / (others + true), -others
            for c in range(k):
                e[c] *= part
            value[i] = math.log1p(others / true) + lift


def _parts(u: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    """Return exp(u - max u) with 0 at the true class, its entry for the true class, the sum of the others, and a shift.

    If u - max u of the true class is below `LEAST`, it is raised to it; the shift is the difference.
    """
    top, own = u.max(axis=1, keepdims=True), (np.arange(len(y)), y)
    d = np.subtract(u, top, order="C")
    # The rounding error of d, up to eps |d| / 2, would be hundreds of eps in exp(d). Knuth's two-sum computes it.
    back = d - u
    error = (u - (d - back)) - (top + back)
    raised = np.maximum(d[own], LEAST)
    lift, d[own] = raised - d[own], raised
    error[own] *= lift == 0
    e = np.exp(d) * (1 + error)
    true = e[own]
    e[own] = 0
    return e, true, _row_sums(e), lift


def _row_sums(e: Array) -> Array:
    """Return the row sums of a C-ordered nonnegative array, with at most 25 rounding errors for k up to 128.

    Up to 25 terms every order of summation satisfies this; beyond, NumPy's pairwise sum of contiguous rows does.
    """
    return np.asarray(np.einsum("ij->i", e) if e.shape[1] <= 25 else e.sum(axis=1))
