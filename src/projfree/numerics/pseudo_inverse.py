"""Least-norm solutions of symmetric positive semidefinite systems, from one pivoted factorisation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from projfree.checks import Array

_EPS = float(np.finfo(np.float64).eps)


def pseudo_inverse(H: Array) -> tuple[Callable[[Array], Array], bool]:
    r"""A function that applies :math:`H^+` to the columns of a matrix, and whether H is regular.

    Cholesky with unit diagonal where H can be inverted. Else :math:`H = L L^T` with pivots, as many columns as the
    rank, and :math:`H^+ = L (L^T L)^{-2} L^T`. Cost: :math:`O(d^3/3)`, four times that where H is singular.
    """
    from scipy.linalg import lapack

    diagonal = H.diagonal()
    if np.logical_and.reduce(diagonal > 0.0):
        scale = 1.0 / np.sqrt(diagonal)[:, None]
        M = H * scale * scale.T
        factor, info = lapack.dpotrf(M, lower=1)
        if info == 0 and float(np.minimum.reduce(factor.diagonal())) ** 2 > 4.0 * len(H) * _EPS:
            return lambda side: scale * lapack.dpotrs(factor, scale * side, lower=1)[0], True
    return _singular(H), False


def _singular(H: Array) -> Callable[[Array], Array]:
    from scipy.linalg import lapack

    tol = 8.0 * len(H) * _EPS * float(np.abs(np.diag(H)).max(initial=0.0))
    factor, pivots, rank, _ = lapack.dpstrf(H, tol=tol, lower=1)
    if rank == 0:
        return np.zeros_like
    L = np.zeros((len(H), rank))
    L[pivots - 1] = np.tril(factor)[:, :rank]
    inner, _ = lapack.dpotrf(L.T @ L, lower=1)

    def apply(side: Array) -> Array:
        once = lapack.dpotrs(inner, L.T @ side, lower=1)[0]
        return np.asarray(L @ lapack.dpotrs(inner, once, lower=1)[0])

    return apply
