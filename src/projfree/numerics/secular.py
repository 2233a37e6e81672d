r"""Quadratics over the unit ball of an l_p norm, and their minimisers over the Euclidean ball (``p = 2``).

For ``p = 2`` the multiplier is the root of the secular equation

.. math:: \Bigl(\sum_i \frac{\|\beta_i\|^2}{(h_i + \lambda)^2}\Bigr)^{1/2} = 1,
          \qquad H = V \operatorname{diag}(h) V^T,\ \beta = V^T b.

The reciprocal of the left-hand side is increasing, concave and nearly linear in :math:`\lambda`, so that Newton's
method from the left increases monotonically to the root.
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

#: Largest gap of an exact solution, in units of its rounding error.
FEW = 32
_EPS, _TINY = float(np.finfo(np.float64).eps), sys.float_info.min
#: Cache of the eigenvalues (in increasing order) and eigenvectors of matrices, by `id`, for problems with other radii.
_EIGEN: dict[int, tuple[Array, Array]] = {}


class Solution(NamedTuple):
    r"""A point of the unit ball, its Frank-Wolfe gap :math:`\langle g, x\rangle + \|g\|_q`, and the error of the gap.

    The value at x exceeds the minimum by at most the gap. ``floor`` is the rounding error of the gap.
    """

    x: Array
    gap: float
    floor: float

    @property
    def exact(self) -> bool:
        """Whether the gap is zero up to a few rounding errors."""
        return self.gap <= FEW * self.floor


class UnitQuadratic:
    r"""The function :math:`\tfrac12\langle x, Hx\rangle - \langle b, x\rangle` over :math:`\|x\|_p \le 1`, b a matrix.

    A problem with radius r is scaled by :math:`x = w/r`, :math:`H \to H r/\|b\|_q`, :math:`b \to b/\|b\|_q`, so that
    the multiplier is at most one.
    """

    def __init__(self, H: Array, b: Array, p: float, radius: float) -> None:
        self.p, self.q, self.given = p, conjugate(p), H
        size = lp_norm(b, self.q)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks that H is finite
            self.ratio = min(float(np.float64(radius) / size), sys.float_info.max)
            self.b, self.H = b / size, H * self.ratio
        self.absolute = np.abs(self.H)

    def eigen(self) -> tuple[Array, Array]:
        """Return the eigenvalues and eigenvectors of H; they are cached, so that the input must not be modified."""
        key = id(self.given)
        if key not in _EIGEN:
            _EIGEN[key] = np.linalg.eigh(self.given)
            finalize(self.given, _EIGEN.pop, key, None)
        h, V = _EIGEN[key]
        return h * self.ratio, V

    def check(self, x: Array, image: Array | None = None) -> Solution:
        """Return the point ``x``, scaled to the ball if it is outside, with its gap; ``image`` is H x."""
        image = self.H @ x if image is None else image
        norm = lp_norm(x, self.p)
        if norm > 1.0:
            x, image = x / norm, image / norm
        g = image - self.b
        multiplier = lp_norm(g, self.q)
        # Rounding errors of the entries of the gradient, and of the two sums in the gap.
        floor = _EPS * (lp_norm(self.absolute @ np.abs(x) + np.abs(self.b), self.q) + 4 * multiplier)
        return Solution(x, float(np.vdot(g, x)) + multiplier, floor)


def minimise_secular(problem: UnitQuadratic) -> Solution:
    """Return the minimiser over the Frobenius ball. Cost: O(d^2) after the eigendecomposition."""
    h, V = problem.eigen()
    beta = V.T @ problem.b
    sizes = np.sqrt(np.add.reduce(np.square(beta), axis=1))
    null = is_null(h)
    # Slopes along directions of zero curvature count as zero up to the rounding of b.
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
    r"""Return :math:`\lambda \ge 0` with :math:`\sum (\text{sizes}/(h + \lambda))^2 = 1`; 0 if the sum at 0 is less."""
    some = sizes > 0.0
    h, sizes = h[some], sizes[some]

    def look(penalty: float) -> tuple[float, float, float]:
        total = h + penalty
        share = sizes / total
        square = max(float(share @ share), _TINY)  # if it underflows, the root is 0
        norm = math.sqrt(square)
        return 1.0 / norm - 1.0, float(share @ (share / total)) / square / norm, _EPS

    if not len(h):
        return 0.0
    # At the root every term of the sum is at most one.
    low = max(0.0, float((sizes - h).max()))
    return find_root(look, low, low, float(np.linalg.norm(sizes)) + low)
