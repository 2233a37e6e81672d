r"""Quadratics over a Euclidean ball in growing Krylov spaces, one product with H for each dimension (GLTR).

An orthonormal basis Q and the products HQ are kept, so that the problem in the space is small and dense,

.. math:: \min_{\|h\| \le r} \tfrac12 h^T (Q^T H Q) h - (Q^T b)^T h, \qquad x = Q h,

the gradient at x costs nothing, and the space can be shrunk when it has become too large. The direction that is
added, :math:`b - Hx - \lambda x` made orthogonal to Q, is the next vector of Lanczos.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_quadratic import minimise_quadratic

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Ritz:
    """The minimiser over a space: the point, its coordinates, the gradient there and the direction to add."""

    x: Array
    h: Array
    gradient: Array
    direction: Array

    def gap(self, radius: float) -> float:
        """The Frank-Wolfe gap, as far as the products are exact."""
        return float(self.gradient @ self.x) + radius * float(np.linalg.norm(self.gradient))


@dataclass(frozen=True)
class Krylov:
    """A space: its orthonormal basis ``Q`` of shape (D, k), the products ``HQ`` with that, and ``T = Q^T HQ``."""

    Q: Array
    HQ: Array
    T: Array

    @classmethod
    def empty(cls, D: int) -> Krylov:
        """The space of dimension zero."""
        return cls(np.zeros((D, 0)), np.zeros((D, 0)), np.zeros((0, 0)))

    @property
    def size(self) -> int:
        """The dimension."""
        return len(self.T)

    def next(self, direction: Array, noise: float = 0.0) -> Array | None:
        """The direction made orthogonal to the space and of length one; None where no more than ``noise`` is left."""
        v, length = direction, float(np.linalg.norm(direction))
        for _ in range(2):  # twice is enough (Kahan, Parlett)
            v = v - self.Q @ (self.Q.T @ v)
        left = float(np.linalg.norm(v))
        return v / left if left > max(noise, 1e3 * _EPS * length) else None

    def extended(self, q: Array, image: Array) -> Krylov:
        """The space with one more vector."""
        side, corner = self.Q.T @ image, np.atleast_2d(q @ image)
        T = np.block([[self.T, side[:, None]], [side[None], corner]])
        return Krylov(np.column_stack([self.Q, q]), np.column_stack([self.HQ, image]), T)

    def minimise(self, b: Array, radius: float) -> Ritz:
        """The minimiser over the part of the ball in the space."""
        h = minimise_quadratic(self.T, self.Q.T @ b, 2.0, radius, eigen=_clipped(self.T)).w
        x, gradient = self.Q @ h, self.HQ @ h - b
        square = float(h @ h)
        penalty = max(0.0, -float(gradient @ x) / square) if square > 0.0 else 0.0
        return Ritz(x, h, gradient, -gradient - penalty * x)

    def shrunk(self, h: Array, keep: int) -> Krylov:
        """The span of the point with coordinates ``h``, the latest vectors and those of least curvature, half each."""
        _, V = np.linalg.eigh(self.T)
        half = max(1, keep // 2)
        Z, _ = np.linalg.qr(np.column_stack([h, V[:, :half], np.eye(self.size)[:, -half:]]))
        T = Z.T @ self.T @ Z
        return Krylov(self.Q @ Z, self.HQ @ Z, (T + T.T) / 2.0)


def _clipped(T: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(T)
    return np.maximum(values, 0.0), vectors
