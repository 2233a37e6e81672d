"""Newton's step of a convex quadratic whose matrix may be singular."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array

_EPS = float(np.finfo(np.float64).eps)


def flat_step(H: Array, slope: Array, noise: float) -> tuple[Array, bool]:
    r"""The step to the minimiser of :math:`\tfrac12\delta^T H\delta + g^T\delta`, the shortest of them.

    Where there is none a direction of descent without curvature, and False; ``noise`` is the rounding of an entry of
    the slope, which gives no direction.
    """
    solved = regular_solve(H, -slope[:, None])
    if solved is not None:
        return solved[:, 0], True
    h, V = np.linalg.eigh(H)
    part = V.T @ slope
    flat = h <= 16.0 * len(H) * _EPS * max(float(h[-1]), 1e-300)
    if np.linalg.norm(part[flat]) > 4.0 * np.sqrt(len(H)) * noise:
        return -(V[:, flat] @ part[flat]), False
    return -(V[:, ~flat] @ (part[~flat] / h[~flat])), True


def regular_solve(H: Array, sides: Array) -> Array | None:
    """Solve with H scaled to unit diagonal; None where it is not safely positive definite."""
    from scipy.linalg import lapack

    diagonal = H.diagonal()
    if not np.logical_and.reduce(diagonal > 0.0):
        return None
    scale = 1.0 / np.sqrt(diagonal)[:, None]
    factor, info = lapack.dpotrf(H * scale * scale.T, lower=1)
    if info != 0 or float(np.minimum.reduce(factor.diagonal())) ** 2 <= 16.0 * len(H) * _EPS:
        return None
    return np.asarray(scale * lapack.dpotrs(factor, scale * sides, lower=1)[0])
