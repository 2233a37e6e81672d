r"""Quadratics over a Euclidean ball in growing Krylov spaces, one product with H for each dimension (GLTR).

Lanczos' recurrence gives an orthonormal basis Q of the space in which H is tridiagonal, so that

.. math:: \min_{\|h\| \le r} \tfrac12 h^T T h - \|b\| h_1, \qquad x = Q h, \qquad T = Q^T H Q,

takes O(k) work for each trial of the multiplier, and what is left of :math:`b - Hx - \mu x` is known without x: it is
:math:`-\beta_k h_k` times the next vector of the basis. All multipliers, and so all radii, share one space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from projfree.checks import Array

_EPS = float(np.finfo(np.float64).eps)
#: New vectors are made orthogonal to the first so many, where directions that have converged come back from; to all
#: vectors would cost more than it saves.
HEAD = 24
#: Vectors that the basis has room for at first; the room doubles.
ROOM = 16
#: Trials of the multiplier, of which a few are usual.
TRIALS = 100


class KrylovBasis:
    """Rows in one array with room for more: what was handed out stays as it is when others are added."""

    def __init__(self, columns: int, room: int) -> None:
        self._rows, self._used = np.empty((room, columns)), 0

    @classmethod
    def appended(cls, store: KrylovBasis | None, Q: Array, row: Array) -> tuple[KrylovBasis, Array]:
        """The rows ``Q`` and one more, in place where ``Q`` is all that the store holds and there is room."""
        k = len(Q)
        if store is None or Q.base is not store._rows or store._used != k or k == len(store._rows):
            store = cls(len(row), max(ROOM, 2 * k))
            store._rows[:k] = Q
        store._rows[k] = row
        store._used = k + 1
        return store, store._rows[: k + 1]


@dataclass(frozen=True)
class Small:
    """The minimiser over a space: its coordinates, the multiplier, and the length of what is left of the gradient."""

    h: Array
    penalty: float
    rest: float

    def gap(self, radius: float) -> float:
        """The Frank-Wolfe gap, as far as the recurrence is exact."""
        along = self.penalty * float(np.linalg.norm(self.h))
        if along == 0.0:
            return radius * self.rest
        return radius * self.rest * (self.rest / (math.hypot(along, self.rest) + along))


@dataclass(frozen=True)
class Lanczos:
    """A Krylov space.

    Attributes
    ----------
    Q : array of shape (k + 1, D)
        The basis as rows, and the vector that comes next; without that where the space is closed.
    alpha, beta : arrays of shape (k,)
        The diagonal of T; what is beside it and, last, the length of what the next vector was made of.
    length : float
        The norm of b.
    store : KrylovBasis or None
        Where the rows lie.
    """

    Q: Array
    alpha: Array
    beta: Array
    length: float
    store: KrylovBasis | None = None

    @classmethod
    def begun(cls, b: Array) -> Lanczos:
        """The space of dimension zero, whose first vector is along ``b``."""
        length = float(np.linalg.norm(b))
        none = np.zeros(0)
        if not length > 0.0:
            return cls(np.zeros((0, len(b))), none, none, 0.0)
        store, Q = KrylovBasis.appended(None, np.zeros((0, len(b))), b / length)
        return cls(Q, none, none, length, store)

    @property
    def size(self) -> int:
        """The dimension."""
        return len(self.alpha)

    @property
    def closed(self) -> bool:
        """Whether H leads no further."""
        return len(self.Q) == self.size

    def extended(self, image: Array) -> Lanczos:
        """The space with one more dimension, given the product of H with the vector that came next."""
        k, q = self.size, self.Q[-1]
        alpha = np.append(self.alpha, q @ image)
        v = image - alpha[k] * q
        if k:
            v -= self.beta[k - 1] * self.Q[k - 1]
        head = self.Q[:HEAD]
        v -= (head @ v) @ head
        left = float(np.linalg.norm(v))
        beta = np.append(self.beta, left)
        if not left > 1e3 * _EPS * max(float(np.abs(alpha).max()), float(self.beta.max(initial=0.0))):
            return replace(self, alpha=alpha, beta=beta)
        store, Q = KrylovBasis.appended(self.store, self.Q, v / left)
        return Lanczos(Q, alpha, beta, self.length, store)

    def minimise(self, radius: float, penalty: float = 0.0) -> Small:
        """The minimiser over the part of the ball in the space; ``penalty`` is that of a smaller space, or zero."""
        h, penalty = tridiagonal_minimiser(self.alpha, self.beta[:-1], self.length, radius, penalty)
        return Small(h, penalty, float(self.beta[-1] * abs(h[-1])))

    def point(self, h: Array) -> Array:
        """The point with coordinates ``h``."""
        return np.asarray(h @ self.Q[: len(h)])


def tridiagonal_minimiser(
    alpha: Array, beta: Array, length: float, radius: float, penalty: float = 0.0
) -> tuple[Array, float]:
    r"""The minimiser of :math:`\tfrac12 h^T T h - \text{length}\, h_1` over a ball, and its multiplier.

    The reciprocal of :math:`\|(T + \mu)^{-1} e_1\|` is concave in the multiplier, so that Newton's method from the left
    climbs to the root.

    Parameters
    ----------
    alpha, beta : array
        The diagonal of T, and what is beside it; T has no negative eigenvalues but by rounding.
    length, radius : float
        Of the slope, and of the ball.
    penalty : float
        A multiplier that is not too large.
    """
    from scipy.linalg.lapack import dpttrf, dpttrs

    scale = max(float(np.abs(alpha).max()), float(np.abs(beta).max(initial=0.0)), length / radius)
    diagonal, beside = alpha / scale, np.append(beta, 0.0)[: max(1, len(beta))] / scale  # LAPACK takes no empty one
    slope = np.zeros(len(alpha))
    slope[0] = length / radius / scale
    floor = 4.0 * len(alpha) * _EPS
    mu, best = max(penalty / scale, slope[0] - diagonal[0], 0.0), None
    for _ in range(TRIALS):
        d, e, failed = dpttrf(diagonal + mu, beside)
        if failed:  # singular up to rounding
            if best is not None:
                break
            mu = max(2.0 * mu, floor)
            continue
        h = dpttrs(d, e, slope)[0]
        norm, best = float(np.linalg.norm(h)), (h, mu)
        if norm <= 1.0:
            break
        new = mu + (norm - 1.0) * norm**2 / float(h @ dpttrs(d, e, h)[0])
        if not new > mu:
            break
        mu = new
    assert best is not None
    h, mu = best
    return h * radius, mu * scale
