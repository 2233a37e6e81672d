r"""A quadratic over the unit ball of a norm, and its minimiser over the Euclidean ball from the spectrum of its matrix.

The latter is one equation in the multiplier,

.. math:: \Bigl(\sum_i \frac{\|\beta_i\|^2}{(h_i + \lambda)^2}\Bigr)^{1/2} = 1,
          \qquad H = V \operatorname{diag}(h) V^T,\ \beta = V^T b.

The reciprocal of the left-hand side is increasing, concave and nearly linear in :math:`\lambda`, so that Newton's
method from the left climbs monotonically to the root.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple
from weakref import finalize

import numpy as np

from projfree.checks import Array
from projfree.numerics.linear_systems import is_null
from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.root_finding import find_root

#: Roundings that the gap of an exact solution may be off by.
FEW = 32
_EPS, _TINY = float(np.finfo(np.float64).eps), sys.float_info.min
#: The eigenvalues in increasing order and the eigenvectors of matrices in use, by `id`: one serves many radii.
_EIGEN: dict[int, tuple[Array, Array]] = {}


class Solution(NamedTuple):
    r"""A point of the unit ball, its Frank-Wolfe gap :math:`\langle g, x\rangle + \|g\|_q`, and the gap's rounding.

    No point of the ball is lower by more than the gap; one below the ``floor`` cannot be told from zero.
    """

    x: Array
    gap: float
    floor: float

    @property
    def exact(self) -> bool:
        """Whether only a few rounding errors are left of the gap."""
        return self.gap <= FEW * self.floor


class UnitQuadratic:
    r"""The function :math:`\tfrac12\langle x, Hx\rangle - \langle b, x\rangle` over :math:`\|x\|_p \le 1`, b a matrix.

    From a problem with radius r by :math:`x = w/r`, :math:`H \to H r/\|b\|_q`, :math:`b \to b/\|b\|_q`; then the
    multiplier is at most one.
    """

    def __init__(self, H: Array, b: Array, p: float, radius: float) -> None:
        self.p, self.q, self.given = p, conjugate(p), H
        size = lp_norm(b, self.q)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks that H is finite
            self.ratio = min(float(np.float64(radius) / size), sys.float_info.max)
            self.b, self.H = b / size, H * self.ratio
        self.absolute = np.abs(self.H)

    def eigen(self) -> tuple[Array, Array]:
        """The eigenvalues and eigenvectors of H; the matrix that was given is decomposed once, and must not change."""
        key = id(self.given)
        if key not in _EIGEN:
            _EIGEN[key] = np.linalg.eigh(self.given)
            finalize(self.given, _EIGEN.pop, key, None)
        h, V = _EIGEN[key]
        return h * self.ratio, V

    def check(self, x: Array, image: Array | None = None) -> Solution:
        """The point ``x``, scaled back to the ball if it is outside, with its gap; ``image`` is H x."""
        image = self.H @ x if image is None else image
        norm = lp_norm(x, self.p)
        if norm > 1.0:
            x, image = x / norm, image / norm
        g = image - self.b
        multiplier = lp_norm(g, self.q)
        # Of the gradient, entry by entry, and of the two sums that make the gap.
        floor = _EPS * (lp_norm(self.absolute @ np.abs(x) + np.abs(self.b), self.q) + 4 * multiplier)
        return Solution(x, float(np.vdot(g, x)) + multiplier, floor)


def minimise_secular(problem: UnitQuadratic) -> Solution:
    """The minimiser over the Frobenius ball. Cost: O(d^2) once the matrix is decomposed."""
    h, V = problem.eigen()
    beta = V.T @ problem.b
    sizes = np.sqrt(np.add.reduce(np.square(beta), axis=1))
    null = is_null(h)
    # A slope along a direction without curvature is one of b only where it exceeds the rounding of b.
    still = null & (sizes <= 16 * len(h) * _EPS)
    h = np.where(null, 0.0, h)
    beta[still], sizes[still], h[still] = 0.0, 0.0, 1.0
    penalty = secular_root(h, sizes)
    total = (h + penalty)[:, None]
    x = V @ (beta / total)
    best = problem.check(x)
    if best.gap <= best.floor:
        return best
    rest = problem.b - problem.H @ x - penalty * x
    return min(best, problem.check(x + V @ ((V.T @ rest) / total)), key=lambda found: found.gap)


def secular_root(h: Array, sizes: Array) -> float:
    r"""The :math:`\lambda \ge 0` with :math:`\sum (\text{sizes}/(h + \lambda))^2 = 1`, 0 if the sum is less at 0."""
    some = sizes > 0.0
    h, sizes = h[some], sizes[some]

    def look(penalty: float) -> tuple[float, float, float]:
        total = h + penalty
        share = sizes / total
        square = max(float(share @ share), _TINY)  # where it underflows, the root is 0
        norm = math.sqrt(square)
        return 1.0 / norm - 1.0, float(share @ (share / total)) / square / norm, _EPS

    if not len(h):
        return 0.0
    # Each term alone is at most one at the root.
    low = max(0.0, float((sizes - h).max()))
    return find_root(look, low, low, float(np.linalg.norm(sizes)) + low)
