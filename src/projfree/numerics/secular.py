r"""A quadratic over the Euclidean ball from the spectrum of its matrix: one equation in the multiplier.

.. math:: \Bigl(\sum_i \frac{\|\beta_i\|^2}{(h_i + \lambda)^2}\Bigr)^{1/2} = 1,
          \qquad H = V \operatorname{diag}(h) V^T,\ \beta = V^T b.

The reciprocal of the left-hand side is increasing, concave and nearly linear in :math:`\lambda`, so that Newton's
method from the left climbs monotonically to the root.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from weakref import ref

import numpy as np

from projfree.checks import Array
from projfree.numerics.lp_norm import conjugate, lp_norm
from projfree.numerics.root_finding import find_root

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Found:
    r"""A point of the unit ball with its Frank-Wolfe gap, the rounding of that gap and the steps it took.

    The gap :math:`\langle g, x\rangle + \|g\|_q`, :math:`g = Hx - b`, bounds how far the value is from the least.
    """

    x: Array
    gap: float
    floor: float
    pull: float
    steps: int

    def after(self, steps: int) -> Found:
        return replace(self, steps=steps)


class Unit:
    r"""Minimise :math:`\tfrac12\langle x, Hx\rangle - \langle b, x\rangle` over :math:`\|x\|_p \le 1`, ``b`` a matrix.

    From a problem with radius r by :math:`x = w/r`, :math:`H \to H r/\|b\|_q`, :math:`b \to b/\|b\|_q`; then the
    multiplier is at most one.
    """

    def __init__(self, H: Array, b: Array, p: float, radius: float) -> None:
        self.p, self.q = p, conjugate(p)
        self.size = lp_norm(b, self.q)
        with np.errstate(over="ignore", invalid="ignore"):  # whoever asks checks that H is finite
            self.ratio = float(np.float64(radius) / self.size)
            self.b, self.H = b / self.size, H * self.ratio if math.isfinite(self.ratio) else H * radius / self.size
        self.sizes = np.abs(self.H)

    def of_norm(self, p: float) -> Unit:
        """The same function over the unit ball of another norm."""
        other = copy(self)
        other.p, other.q = p, conjugate(p)
        return other

    def check(self, x: Array, image: Array | None = None, steps: int = 0) -> Found:
        """``x``, pulled back to the ball if it is outside, with its gap."""
        image = self.H @ x if image is None else image
        norm = lp_norm(x, self.p)
        if norm > 1.0:
            x, image = x / norm, image / norm
        g = image - self.b
        pull = lp_norm(g, self.q)
        # Of the gradient, entry by entry, and of the two sums that make the gap.
        floor = _EPS * (lp_norm(self.sizes @ np.abs(x) + np.abs(self.b), self.q) + 4.0 * pull)
        return Found(x, float(np.vdot(g, x)) + pull, floor, pull, steps)


#: Matrices that were decomposed lately, and what came of it: one serves many radii, and several steps of a solver.
_KEPT: list[tuple[ref[Array], tuple[Array, Array]]] = []
_MOST_KEPT = 4


def decomposed(H: Array) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of a matrix that nobody changes, computed once."""
    for matrix, eigen in list(_KEPT):
        if matrix() is H:
            return eigen
    h, V = np.linalg.eigh(H)
    _KEPT[:] = [(ref(H, _drop), (h, V)), *_KEPT][:_MOST_KEPT]
    return h, V


def _drop(gone: ref[Array]) -> None:
    _KEPT[:] = [kept for kept in _KEPT if kept[0] is not gone]


def minimise_secular(unit: Unit, eigen: tuple[Array, Array] | None = None) -> Found:
    """The minimiser over the Frobenius ball; ``eigen`` is the decomposition of the matrix before it was scaled."""
    h, V = (
        np.linalg.eigh(unit.H) if eigen is None or not math.isfinite(unit.ratio) else (eigen[0] * unit.ratio, eigen[1])
    )
    beta = V.T @ unit.b
    sizes = np.abs(beta[:, 0]) if beta.shape[1] == 1 else np.sqrt(np.add.reduce(np.square(beta), axis=1))
    dust = 4.0 * len(h) * _EPS
    least = dust * max(abs(float(h[0])), abs(float(h[-1])))  # they are in increasing order
    moves = True
    if h[0] <= least:
        null = h <= least
        # A slope along a direction without curvature is one of b only where it exceeds the rounding of b.
        still = null & (sizes <= 4.0 * dust)
        h = np.where(null, 0.0, h)
        beta[still], sizes[still], h[still] = 0.0, 0.0, 1.0
        moves = not still.all()
    penalty = secular_root(h, sizes)
    total = (h + penalty)[:, None]
    x = V @ (beta / total)
    best = unit.check(x)
    if best.gap <= best.floor or not moves:
        return best
    rest = unit.b - unit.H @ x - penalty * x
    again = unit.check(x + V @ ((V.T @ rest) / total), None, 2)
    return again if again.gap < best.gap else best


def secular_root(h: Array, sizes: Array) -> float:
    r"""The :math:`\lambda \ge 0` with :math:`\sum (\text{sizes}/(h + \lambda))^2 = 1`, 0 if the sum is less at 0."""
    some = sizes > 0.0
    h, sizes = h[some], sizes[some]

    def look(penalty: float) -> tuple[float, float, float]:
        total = h + penalty
        share = sizes / total
        square = max(float(share @ share), 1e-200)  # where it underflows, the root is 0
        norm = math.sqrt(square)
        return 1.0 / norm - 1.0, float(share @ (share / total)) / (square * norm), _EPS

    if not len(h):
        return 0.0
    # Each term alone is at most one at the root.
    low = max(0.0, float((sizes - h).max()))
    return find_root(look, low, low, float(np.linalg.norm(sizes)) + low)
