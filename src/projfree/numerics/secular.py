r"""A quadratic over the Euclidean ball from the spectrum of its matrix: one equation in the multiplier.

.. math:: \Bigl(\sum_i \frac{\|\beta_i\|^2}{(h_i + \lambda)^2}\Bigr)^{1/2} = 1,
          \qquad H = V \operatorname{diag}(h) V^T,\ \beta = V^T b.

The reciprocal of the left-hand side is increasing, concave and nearly linear in :math:`\lambda`, so that Newton's
method from the left climbs monotonically to the root.
"""

from __future__ import annotations

import math
from weakref import ref

import numpy as np

from projfree.checks import Array
from projfree.numerics.unit_ball import Found, Unit

_STEPS = 200  # 4-10 are usual
_EPS = float(np.finfo(np.float64).eps)


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
    penalty, steps = secular_root(h, sizes)
    total = (h + penalty)[:, None]
    x = V @ (beta / total)
    best = unit.check(x, None, steps)
    if best.gap <= best.floor or not moves:
        return best
    rest = unit.b - unit.H @ x - penalty * x
    again = unit.check(x + V @ ((V.T @ rest) / total), None, steps + 1)
    return again if again.gap < best.gap else best


def secular_root(h: Array, sizes: Array) -> tuple[float, int]:
    r"""The :math:`\lambda \ge 0` with :math:`\sum (\text{sizes}/(h + \lambda))^2 = 1`, 0 if the sum is less at 0."""
    # Each term alone is at most one at the root.
    penalty = max(0.0, float(np.maximum.reduce(sizes - h)))
    steps, some = 0, sizes > 0.0
    if not np.logical_and.reduce(some):
        h, sizes = h[some], sizes[some]
    for _ in range(_STEPS):
        steps += 1
        total = h + penalty
        share = sizes / total
        square = float(share @ share)
        norm = math.sqrt(square)
        if norm <= 1.0:
            break
        slope = float(share @ (share / total))
        new = penalty + (norm - 1.0) * square / slope
        if not new > penalty:
            break
        penalty = new
    return penalty, steps
