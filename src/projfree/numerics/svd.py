"""The singular value decomposition, with a second algorithm for the rare matrix on which the first one fails."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array


def svd(c: Array) -> tuple[Array, Array, Array]:
    r"""The thin decomposition :math:`c = U \operatorname{diag}(\sigma) V^T` as ``(U, sigma, Vt)``.

    LAPACK's divide and conquer (``gesdd``); where it does not converge, QR iteration (``gesvd``), slower and sturdier.
    """
    try:
        return np.linalg.svd(c, full_matrices=False)
    except np.linalg.LinAlgError:
        return _by_qr_iteration(c)


def singular_values(c: Array) -> Array:
    """The singular values alone, largest first."""
    try:
        return np.asarray(np.linalg.svd(c, compute_uv=False))
    except np.linalg.LinAlgError:
        return _by_qr_iteration(c)[1]


def _by_qr_iteration(c: Array) -> tuple[Array, Array, Array]:
    from scipy.linalg import svd as scipy_svd

    u, s, vt = scipy_svd(c, full_matrices=False, lapack_driver="gesvd", check_finite=False)
    return u, s, vt


def svd_error(shape: tuple[int, int]) -> float:
    r"""A bound, relative to :math:`\|c\|_F`, on the backward error of `svd` in the Frobenius norm.

    Householder reductions have a backward error of at most a small multiple of the number of reflections times the
    root of their length (Higham 2002, section 19.3, with the rounding errors' probabilistic growth): the figure here is
    :math:`8 (m + n) \epsilon`, some hundred times what is measured on matrices with known singular values.
    """
    return 8.0 * float(sum(shape)) * float(np.finfo(np.float64).eps)
