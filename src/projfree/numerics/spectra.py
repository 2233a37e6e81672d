"""Singular values of dense matrices, and of matrices that are given by their products (operators).

The spectrum of an operator is computed completely if one of its dimensions is small; otherwise block subspace iteration
computes leading singular triples. Upper bounds on norms come from the Frobenius norm or from the smaller Gram matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import lp_norm

#: Up to DENSE_ENTRIES entries (2 MB) a matrix is converted to a dense array. The complete spectrum comes from the Gram
#: matrix if the smaller dimension is at most EVERY_SIDE; for tight bounds at most BOUND_SIDE (a Gram matrix of 200 MB).
DENSE_ENTRIES, EVERY_SIDE, BOUND_SIDE = 1 << 18, 1024, 5000
#: Initial and maximum number of columns of the block; it doubles while the last one has a relevant weight.
FIRST_BLOCK, MOST_BLOCK = 16, 64
#: Maximum number of steps, and relative tolerance: the iteration stops if a step increases the norm by less, and
#: components of a smaller relative weight are ignored.
STEPS, TOLERANCE = 12, 1e-3
EPS = float(np.finfo(np.float64).eps)
GRAM_NOISE = 8.0 * math.sqrt(EPS)

#: A matrix with `shape`, `times`, `transposed_times`, `slab`, `gram`, `scale` and `size`, such as a `Structured` one.
Operator = Any
#: Function from singular values to their weights in the result; the block grows until the last weight is negligible.
Weights = Callable[[Array], Array]


def svd(c: Array) -> tuple[Array, Array, Array]:
    r"""Return the thin decomposition :math:`c = U \operatorname{diag}(\sigma) V^T` as ``(U, sigma, Vt)``.

    It uses LAPACK's divide and conquer (``gesdd``) or, if this does not converge, the slower QR iteration (``gesvd``).
    """
    try:
        return np.linalg.svd(c, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd as scipy_svd

        u, s, vt = scipy_svd(c, full_matrices=False, lapack_driver="gesvd", check_finite=False)
        return u, s, vt


def singular_values(c: Array) -> Array:
    """Return the singular values in decreasing order."""
    try:
        return np.asarray(np.linalg.svd(c, compute_uv=False))
    except np.linalg.LinAlgError:
        return svd(c)[1]


def svd_error(shape: tuple[int, int]) -> float:
    r"""Return a bound, relative to :math:`\|c\|_F`, on the backward error of `svd` in the Frobenius norm.

    Householder reductions have a backward error of at most a small multiple of the number of reflections times the
    square root of their length (Higham 2002, section 19.3, for probabilistic growth of rounding errors). The bound is
    :math:`8 (m + n) \epsilon`, about a hundred times the error measured on matrices with known singular values.
    """
    return 8 * sum(shape) * EPS


@dataclass(frozen=True)
class Spectrum:
    """Singular triples ``left, values, right``.

    If ``whole``, these are all singular values; in addition to the backward error of a decomposition, their squares
    have an error of at most ``error``. Otherwise the i-th value is a lower bound on the i-th singular value.
    """

    left: Array
    values: Array
    right: Array
    whole: bool = True
    error: float = 0.0

    @property
    def reliable(self) -> Array:
        """The values; zero for those whose singular vectors are dominated by rounding errors."""
        # Values from a Gram matrix (with error > 0) have half of the digits.
        noise = GRAM_NOISE if self.error else max(len(self.left), len(self.right)) * EPS
        return np.where(self.values > noise * self.values.max(initial=0.0), self.values, 0.0)


def spectrum(g: Operator, weights: Weights, start: Array | None = None, most: int | None = None) -> Spectrum:
    """Return the complete spectrum if the smaller dimension is at most `EVERY_SIDE`, else leading singular triples.

    Their subspace iteration starts at the orthonormal columns ``start``; there are at most ``most`` triples.
    """
    m, n = g.shape
    if m * n <= DENSE_ENTRIES:
        u, s, vt = svd(g.slab(0, m))
        return Spectrum(u, s, vt.T)
    if min(m, n) > EVERY_SIDE:
        return leading(g, weights, start, most)
    squares, vectors = np.linalg.eigh(g.gram())
    values, vectors = np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1]
    inverse = np.where(values > GRAM_NOISE * values[0], 1.0 / np.where(values > 0.0, values, 1.0), 0.0)
    if m >= n:
        return Spectrum(g.times(vectors) * inverse, values, vectors, True, gram_error(g))
    return Spectrum(vectors, values, g.transposed_times(vectors) * inverse, True, gram_error(g))


def leading(g: Operator, weights: Weights, start: Array | None, most: int | None = None) -> Spectrum:
    """Return leading singular triples by block subspace iteration; the block grows until the last weight is small."""
    m, n = g.shape
    most = min(m, n, MOST_BLOCK if most is None else most)
    basis = _extended(np.zeros((n, 0)) if start is None else start, min(FIRST_BLOCK, most))
    found = Spectrum(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)), False)
    for _ in range(STEPS):
        before, found = _step(g, basis)
        share = weights(found.values)
        first, after = float(share[: len(before)] @ before), float(share @ found.values)
        basis = found.right
        if expired():
            break
        if after - first > TOLERANCE * after:
            continue
        if basis.shape[1] >= most or share[-1] <= TOLERANCE * share[0]:
            break
        basis = _extended(basis, min(2 * basis.shape[1], most))
    return found


def _step(g: Operator, basis: Array) -> tuple[Array, Spectrum]:
    """Multiply by G, then by its transpose; return the values after the first product and the triples after both."""
    q, r = np.linalg.qr(g.times(basis))
    o, s = np.linalg.qr(g.transposed_times(q))
    u, values, vt = svd(s)
    return singular_values(r), Spectrum(q @ vt.T, values, o @ u, False)


def _extended(basis: Array, columns: int) -> Array:
    """Return an orthonormal basis of at least ``columns`` columns; new columns are random with a fixed seed."""
    n, have = basis.shape
    if have >= columns:
        return basis
    new = np.random.default_rng((n, columns)).standard_normal((n, columns - have))
    return np.linalg.qr(np.concatenate([basis, new], axis=1))[0]


def _components(g: Operator) -> int:
    """Return the number of components of the low-rank part."""
    low = getattr(g, "low", None)
    return 0 if low is None else int(low.rank)


def gram_error(g: Operator) -> float:
    """Return a bound on the rounding errors of the Gram matrix (in norm) and of its computed eigenvalues."""
    # Sums of up to max(m, n) products, then the backward error of a symmetric eigensolver; parts may cancel.
    return float(EPS * (max(g.shape) + 8 * min(g.shape) + 4 * _components(g)) * max(g.size(), g.scale) ** 2)


def entry_error(g: Operator, q: float) -> float:
    """Return a bound on the Schatten norm of the rounding errors of the entries of a matrix with a low-rank part."""
    components = _components(g)
    return (components + 4) * EPS * float(g.scale) * _from_frobenius(g, q) if components else 0.0


def _from_frobenius(g: Operator, q: float) -> float:
    """Return the largest ratio of the Schatten norm to the Frobenius norm."""
    return 1.0 if q >= 2.0 else float(min(g.shape) ** (1.0 / q - 0.5))


def frobenius_bound(g: Operator, q: float) -> float:
    """Return an upper bound on the Schatten norm from the Frobenius norm."""
    return float(g.size()) * _from_frobenius(g, q) + entry_error(g, q)


def norm_bound(g: Operator, q: float, sharp: bool = True) -> float:
    r"""Return a certified upper bound on :math:`\|G\|_{S_q}`.

    It comes from the singular values if the matrix is small, from the eigenvalues of the Gram matrix if the smaller
    dimension is at most `BOUND_SIDE` (`EVERY_SIDE` unless ``sharp``), and else from the Frobenius norm.
    """
    (m, n), bound, error = g.shape, frobenius_bound(g, q), entry_error(g, q)
    if q != 2.0 and min(m, n) > 1 and m * n <= DENSE_ENTRIES:
        return lp_norm(singular_values(g.slab(0, m)), q) + error
    if q == 2.0 or min(m, n) == 1 or min(m, n) > (BOUND_SIDE if sharp else EVERY_SIDE):
        return bound
    if math.isinf(q) and min(m, n) > EVERY_SIDE:  # the largest eigenvalue takes a tenth of the time of all
        first = leading(g, lambda s: np.eye(1, len(s))[0], None)
        return min(bound, math.sqrt(eigenvalue_bound(g.gram, float(first.values[0]) ** 2) + gram_error(g)) + error)
    return min(bound, lp_norm(np.sqrt(np.maximum(np.linalg.eigvalsh(g.gram()), 0.0) + gram_error(g)), q) + error)


def eigenvalue_bound(gram: Callable[[], Array], estimate: float) -> float:
    r"""Return an upper bound on the largest eigenvalue of a positive semidefinite matrix, given a lower ``estimate``.

    If the Cholesky factorisation of :math:`A = \mu I - H` runs to completion in floating point, then :math:`A + E` is
    positive semidefinite for an E with :math:`\|E\| \le \gamma \operatorname{tr} A` and
    :math:`\gamma = (n + 2) u / (1 - (n + 2) u)`, so that no eigenvalue of H exceeds
    :math:`\mu + \gamma \operatorname{tr} A` (Rump 2006, Verification of positive definiteness). The bound is tight for
    a tight ``estimate``, and the trace for a poor one. ``gram`` computes H for each factorisation, which overwrites it.

    Examples
    --------
    >>> import numpy as np
    >>> 3.0 <= eigenvalue_bound(lambda: np.diag([1.0, 3.0, 2.0]), 2.99) <= 3.09
    True
    """
    from scipy.linalg.lapack import dpotrf

    for bits in (15, 10, 5, 0):
        H = gram()
        n, diagonal = len(H), H.diagonal().copy()
        trace, slack = float(diagonal.sum()), 4 * (n + 2) * EPS
        mu = (1.0 + 2.0**-bits) * estimate
        np.negative(H, out=H)
        H.flat[:: n + 1] = mu - diagonal
        if dpotrf(H.T, lower=1, overwrite_a=1, clean=0)[1] == 0:  # the transpose is in Fortran order
            return mu + slack * (n * mu + trace)
    return trace * (1.0 + slack)
