"""Singular values of matrices: dense ones, and ones that are only known by their products.

Of the latter the whole spectrum is computed where one side is small, else leading singular triples by block subspace
iteration. Upper bounds on norms come from the Frobenius norm, or from the Gram matrix of the smaller side.
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

#: Up to so many entries a matrix is made dense (2 MB); up to so many on the smaller side its whole spectrum is taken
#: from the Gram matrix in every call, and up to so many (a Gram matrix of 200 MB) where a sharp bound is asked for.
DENSE_ENTRIES, EVERY_SIDE, BOUND_SIDE = 1 << 18, 1024, 5000
#: The block begins with so many columns and doubles, up to the most, while its last one still counts.
FIRST_BLOCK, MOST_BLOCK = 16, 64
#: Steps at most, and the part of the norm that is left aside: a step that adds less is the last one, a component that
#: weighs less does not count, and a bound this close to what is attained is sharp.
STEPS, TOLERANCE = 12, 1e-3
EPS = float(np.finfo(np.float64).eps)
GRAM_NOISE = 8.0 * math.sqrt(EPS)

#: A matrix with `shape`, `times`, `transposed_times`, `slab`, `gram`, `scale` and `size`, as structured ones are.
Operator = Any
#: From singular values, those that the answer is made of; the block grows until the last one no longer counts.
Weights = Callable[[Array], Array]


def svd(c: Array) -> tuple[Array, Array, Array]:
    r"""The thin decomposition :math:`c = U \operatorname{diag}(\sigma) V^T` as ``(U, sigma, Vt)``.

    LAPACK's divide and conquer (``gesdd``); where it does not converge, QR iteration (``gesvd``), slower and sturdier.
    """
    try:
        return np.linalg.svd(c, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd as scipy_svd

        u, s, vt = scipy_svd(c, full_matrices=False, lapack_driver="gesvd", check_finite=False)
        return u, s, vt


def singular_values(c: Array) -> Array:
    """The singular values alone, largest first."""
    try:
        return np.asarray(np.linalg.svd(c, compute_uv=False))
    except np.linalg.LinAlgError:
        return svd(c)[1]


def svd_error(shape: tuple[int, int]) -> float:
    r"""A bound, relative to :math:`\|c\|_F`, on the backward error of `svd` in the Frobenius norm.

    Householder reductions have a backward error of at most a small multiple of the number of reflections times the
    root of their length (Higham 2002, section 19.3, with the rounding errors' probabilistic growth): the figure here is
    :math:`8 (m + n) \epsilon`, some hundred times what is measured on matrices with known singular values.
    """
    return 8 * sum(shape) * EPS


@dataclass(frozen=True)
class Spectrum:
    """Singular triples ``left, values, right``.

    Where ``whole`` is False the values are those of a compression, each a lower bound on the one of its rank. Where it
    is True they are all there, their squares up to ``error`` besides the backward error of a decomposition.
    """

    left: Array
    values: Array
    right: Array
    whole: bool = True
    error: float = 0.0

    @property
    def reliable(self) -> Array:
        """The values, zero where their vectors are nothing but rounding."""
        # A Gram matrix, the values of which have an error, has half of the digits.
        noise = GRAM_NOISE if self.error else max(len(self.left), len(self.right)) * EPS
        return np.where(self.values > noise * self.values.max(initial=0.0), self.values, 0.0)


def spectrum(g: Operator, weights: Weights, start: Array | None = None, most: int | None = None) -> Spectrum:
    """The whole spectrum where a side has up to `EVERY_SIDE`, else leading triples that ``weights`` counts.

    These are found from the orthonormal columns ``start``, if there are any; there are at most ``most`` of them.
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
    """Leading singular triples by block subspace iteration from ``start``; the block grows while its end counts."""
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
    """One multiplication by G and one by its transpose: the values before the second, and the triples after it."""
    q, r = np.linalg.qr(g.times(basis))
    o, s = np.linalg.qr(g.transposed_times(q))
    u, values, vt = svd(s)
    return singular_values(r), Spectrum(q @ vt.T, values, o @ u, False)


def _extended(basis: Array, columns: int) -> Array:
    """An orthonormal basis of at least so many columns, the new ones random but the same each time."""
    n, have = basis.shape
    if have >= columns:
        return basis
    new = np.random.default_rng((n, columns)).standard_normal((n, columns - have))
    return np.linalg.qr(np.concatenate([basis, new], axis=1))[0]


def _components(g: Operator) -> int:
    """The number of components of the part in factors."""
    low = getattr(g, "low", None)
    return 0 if low is None else int(low.rank)


def gram_error(g: Operator) -> float:
    """A bound on the norm of the rounding error of the Gram matrix and on that of its computed eigenvalues."""
    # Sums of up to max(m, n) products, then the backward error of a symmetric eigensolver; parts may cancel.
    return float(EPS * (max(g.shape) + 8 * min(g.shape) + 4 * _components(g)) * max(g.size(), g.scale) ** 2)


def entry_error(g: Operator, q: float) -> float:
    """A bound on the Schatten norm of what rounding puts into the entries of a matrix with a part in factors."""
    components = _components(g)
    return (components + 4) * EPS * float(g.scale) * _from_frobenius(g, q) if components else 0.0


def _from_frobenius(g: Operator, q: float) -> float:
    """The largest ratio of the Schatten norm to the Euclidean norm."""
    return 1.0 if q >= 2.0 else float(min(g.shape) ** (1.0 / q - 0.5))


def frobenius_bound(g: Operator, q: float) -> float:
    """An upper bound on the Schatten norm from the Euclidean norm."""
    return float(g.size()) * _from_frobenius(g, q) + entry_error(g, q)


def norm_bound(g: Operator, q: float, sharp: bool = True) -> float:
    r"""A proven upper bound on :math:`\|G\|_{S_q}`.

    From the singular values where the matrix is small, from the eigenvalues of its Gram matrix up to `BOUND_SIDE` rows
    on the smaller side (without ``sharp`` up to `EVERY_SIDE`), else from the Euclidean norm.
    """
    (m, n), bound, error = g.shape, frobenius_bound(g, q), entry_error(g, q)
    if q != 2.0 and min(m, n) > 1 and m * n <= DENSE_ENTRIES:
        return lp_norm(singular_values(g.slab(0, m)), q) + error
    if q == 2.0 or min(m, n) == 1 or min(m, n) > (BOUND_SIDE if sharp else EVERY_SIDE):
        return bound
    if math.isinf(q) and min(m, n) > EVERY_SIDE:  # the largest one alone takes a tenth of the time
        first = leading(g, lambda s: np.eye(1, len(s))[0], None)
        return min(bound, math.sqrt(eigenvalue_bound(g.gram, float(first.values[0]) ** 2) + gram_error(g)) + error)
    return min(bound, lp_norm(np.sqrt(np.maximum(np.linalg.eigvalsh(g.gram()), 0.0) + gram_error(g)), q) + error)


def eigenvalue_bound(gram: Callable[[], Array], estimate: float) -> float:
    r"""An upper bound on the largest eigenvalue of a positive semidefinite matrix, which each attempt forms anew.

    If the Cholesky factorisation of :math:`A = \mu I - H` runs to completion in floating point, then :math:`A + E` is
    positive semidefinite for an E with :math:`\|E\| \le \gamma \operatorname{tr} A` and
    :math:`\gamma = (n + 2) u / (1 - (n + 2) u)`, so that no eigenvalue of H exceeds
    :math:`\mu + \gamma \operatorname{tr} A` (Rump 2006, Verification of positive definiteness). The closer the
    ``estimate`` is to the eigenvalue from below, the sharper the bound; a poor one ends at the trace.

    Examples
    --------
    >>> import numpy as np
    >>> 3.0 <= eigenvalue_bound(lambda: np.diag([1.0, 3.0, 2.0]), 2.99) <= 3.06
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
        if dpotrf(H.T, lower=1, overwrite_a=1, clean=0)[1] == 0:  # the transpose is in Fortran's order
            return mu + slack * (n * mu + trace)
    return trace * (1.0 + slack)
