r"""Singular values of matrices that are only known by their products: exactly where one side is small, else leading
ones by block subspace iteration from a subspace that the caller may give, with a proven bound on what they leave out.

For orthonormal P and :math:`P P^T G = P\,\mathrm{diag}(\theta)\,Q^T`, in an orthonormal basis that begins with P,

.. math:: G G^T = \begin{pmatrix} \mathrm{diag}(\theta^2) & F^T \\ F & C \end{pmatrix}, \qquad
   \|G\|_{S_q}^2 \le \Bigl(\sum_i \theta_i^q + \operatorname{tr} C^{q/2}\Bigr)^{2/q} + 2^{2/q} \|F\|_{S_{q/2}}

for :math:`q \ge 2` by the triangle inequality; :math:`\operatorname{tr} C = \|G\|_F^2 - \sum_i\theta_i^2` and
:math:`\|C\|_F^2 = \|G G^T\|_F^2 - \sum_i \theta_i^4 - 2 \|F\|_F^2` are known, and bound the rest of its powers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.lp_norm import lp_norm
from projfree.numerics.svd import svd

#: Up to so many entries a matrix is made dense; up to so many on the smaller side its whole spectrum is taken from the
#: Gram matrix in every call, and up to so many where a sharp bound is asked for.
DENSE_ENTRIES, EVERY_SIDE, BOUND_SIDE = 1 << 18, 1024, 5000
#: Up to so many the largest singular value alone is bounded by a factorisation of the Gram matrix.
LARGEST_SIDE = 8192
#: The block begins with so many columns and grows, up to the most, while its last one still counts for this share.
FIRST_BLOCK, MOST_BLOCK, SHARE = 16, 64, 3e-3
#: Iterations end when one adds less than this part to the norm that is asked for, or after so many: from scratch, and
#: from the subspace of a matrix that differs little.
TOLERANCE, STEPS, WARM_STEPS = 1e-3, 12, 3
#: A bound is sharp enough when it is this close, relatively, to what is attained.
SHARP = 2e-3
#: Columns count as orthonormal when their Gram matrix is so close to the identity in every norm.
DEPENDENCE = 1e-12
#: Rows that are restored at a time after a factorisation.
SLAB = 512
#: By how much, relatively, what `eigenvalue_bound` tries exceeds the estimate; after the last one it takes the trace.
SLACKS = (1e-4, 5e-3, 0.05, 0.2, 1.0)
#: The accuracy of an estimate of the largest eigenvalue, and how often it is begun anew.
ACCURACY, MOST = 1e-3, 20
EPS = float(np.finfo(np.float64).eps)


class Operator(Protocol):
    """What is asked of a matrix."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def times(self, block: Array) -> Array: ...

    def transposed_times(self, block: Array) -> Array: ...

    def slab(self, start: int, stop: int) -> Array: ...

    def gram(self) -> Array: ...

    @property
    def scale(self) -> float: ...

    def size(self) -> float: ...


@dataclass(frozen=True)
class Spectrum:
    """Singular triples ``left, values, right``.

    Where ``whole`` is False the values are those of a compression, each a lower bound on the one of its rank. Where it
    is True they are all there, their squares up to ``error`` besides the backward error of a decomposition.
    """

    left: Array
    values: Array
    right: Array
    whole: bool
    error: float = 0.0

    def norm(self, q: float) -> float:
        """The l_q norm of the values: a lower bound on the Schatten norm, exact to rounding where all are there."""
        return lp_norm(self.values, q)

    def upper(self, q: float) -> float:
        """An upper bound on the Schatten norm, where all values are there."""
        return lp_norm(np.sqrt(self.values**2 + self.error), q)


#: From singular values, those that the answer is made of; the block grows until the last one no longer counts.
Weights = Callable[[Array], Array]


def spectrum(
    g: Operator, weights: Weights, start: Array | None = None, *, steps: int = WARM_STEPS, most: int | None = None
) -> Spectrum:
    """The whole spectrum where a side has up to `EVERY_SIDE`, else leading triples that ``weights`` counts.

    These are found from the orthonormal columns ``start``, if there are any, in at most so many ``steps``; there are
    at most ``most`` (or `MOST_BLOCK`) of them.
    """
    m, n = g.shape
    if m * n <= DENSE_ENTRIES:
        u, s, vt = svd(g.slab(0, m))
        return Spectrum(u, s, vt.T, True)
    if min(m, n) <= EVERY_SIDE:
        return _by_gram(g)
    return leading(g, weights, start, steps, most)


def gram(g: Operator) -> tuple[Array, float]:
    """The Gram matrix of the smaller side and a bound on the norm of its rounding error and that of its eigenvalues."""
    total, side = g.gram(), min(g.shape)
    # Sums of up to max(m, n) products, then the backward error of a symmetric eigensolver; parts may cancel.
    scale = max(float(np.trace(total)), g.scale**2)
    return total, EPS * (max(g.shape) + 8.0 * side + 4.0 * _components(g)) * scale


def _components(g: Operator) -> int:
    """The number of components of the part in factors."""
    low = getattr(g, "low", None)
    return 0 if low is None else int(low.rank)


def entry_error(g: Operator, q: float) -> float:
    """A bound on the Schatten norm of what rounding puts into the entries of a matrix with a part in factors."""
    components = _components(g)
    if not components:
        return 0.0
    return (components + 4.0) * EPS * g.scale * (1.0 if q >= 2.0 else min(g.shape) ** (1.0 / q - 0.5))


def _by_gram(g: Operator) -> Spectrum:
    total, error = gram(g)
    squares, vectors = np.linalg.eigh(total)
    squares, vectors = squares[::-1], vectors[:, ::-1]
    values = np.sqrt(np.maximum(squares, 0.0))
    inverse = np.where(values > 1e-7 * values[0], 1.0 / np.where(values > 0.0, values, 1.0), 0.0)
    if g.shape[0] >= g.shape[1]:
        return Spectrum(g.times(vectors) * inverse, values, vectors, True, error)
    return Spectrum(vectors, values, g.transposed_times(vectors) * inverse, True, error)


def leading(
    g: Operator, weights: Weights, start: Array | None, steps: int = WARM_STEPS, most: int | None = None
) -> Spectrum:
    """Leading singular triples by block subspace iteration from ``start``; the block grows while its end counts."""
    m, n = g.shape
    most = min(m, n, MOST_BLOCK if most is None else most)
    basis = _more(start, min(FIRST_BLOCK, most), n)
    found = Spectrum(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)), False)
    for _ in range(STEPS if start is None else steps):
        before, found = _step(g, basis)
        share = weights(found.values)
        first, after = float(share[: len(before)] @ before), float(share @ found.values)
        basis = found.right
        if expired():
            break
        if after - first > TOLERANCE * after:
            continue
        if basis.shape[1] >= most or share[-1] <= SHARE * share[0]:
            break
        basis = _more(basis, min(2 * basis.shape[1], most), n)
    return found


def _step(g: Operator, basis: Array) -> tuple[Array, Spectrum]:
    """One multiplication by G and one by its transpose: the values before the second, and the triples after it."""
    q, r = orthonormal(g.times(basis))
    o, s = orthonormal(g.transposed_times(q))
    u, values, vt = svd(s)
    return np.linalg.svd(r, compute_uv=False), Spectrum(q @ vt.T, values, o @ u, False)


def orthonormal(block: Array) -> tuple[Array, Array]:
    """QR of a tall block: by Cholesky, which is matrix products alone, twice where once leaves more than a trace of
    dependence; else by reflections.
    """
    q, r = block, np.eye(block.shape[1])
    if not block.shape[1]:
        return q, r
    try:
        for _ in range(2):
            gram = q.T @ q
            if q is not block and np.abs(gram - np.eye(len(gram))).max() <= DEPENDENCE / len(gram):
                break
            upper = np.linalg.cholesky(gram).T
            if np.diag(upper).min() <= 1e-6 * np.diag(upper).max():  # too near to dependent for this way
                return np.linalg.qr(block)
            q, r = q @ np.linalg.inv(upper), upper @ r
    except np.linalg.LinAlgError:
        return np.linalg.qr(block)
    return q, r


def _more(basis: Array | None, columns: int, n: int) -> Array:
    """The basis with so many columns, the new ones random but the same each time; orthonormal."""
    have = 0 if basis is None else basis.shape[1]
    if have >= columns and basis is not None:
        return basis
    new = np.random.default_rng((n, columns)).standard_normal((n, columns - have))
    return orthonormal(new if basis is None else np.concatenate([basis, new], axis=1))[0]


def is_sharp(shape: tuple[int, ...], p: float, sharp: bool) -> bool:
    """Whether the bound of the dual norm of p comes from a whole spectrum, or for p = 1 from its largest value."""
    m, n = shape
    if m * n <= DENSE_ENTRIES or min(m, n) <= EVERY_SIDE:
        return True
    return sharp and min(m, n) <= (LARGEST_SIDE if p == 1.0 else BOUND_SIDE)


def norm_bound(g: Operator, q: float, found: Spectrum) -> float:
    r"""A proven upper bound on :math:`\|G\|_{S_q}`, from leading triples where they are sharp, or the Gram matrix.

    Where the Gram matrix is too large it is the tail bound of this module's head.
    """
    side, frobenius = min(g.shape), g.size()
    bound = frobenius * (1.0 if q >= 2.0 else side ** (1.0 / q - 0.5))
    if q == 2.0 or side == 1:
        return bound
    if q > 2.0 and len(found.values):
        bound = min(bound, tail_bound(g, q, found, frobenius))
        if bound <= (1.0 + SHARP) * found.norm(q):
            return bound
    if side > (LARGEST_SIDE if math.isinf(q) else BOUND_SIDE):
        return bound
    total, error = gram(g)
    if math.isinf(q) and side > EVERY_SIDE:
        return min(bound, math.sqrt(eigenvalue_bound(total, largest_square(g)) + error))
    return min(bound, lp_norm(np.sqrt(np.maximum(np.linalg.eigvalsh(total), 0.0) + error), q))


def tail_bound(g: Operator, q: float, found: Spectrum, frobenius: float) -> float:
    """The bound of this module's head, for triples whose ``left`` is orthonormal."""
    theta, noise = found.values, 64.0 * EPS * (sum(g.shape) + _components(g))
    rounding = noise * max(frobenius, g.scale) ** 2
    applied = g.times(found.right * theta)  # G G^T P, then what of it is not in P
    applied -= found.left @ (found.left.T @ applied)
    squares = np.maximum(np.linalg.eigvalsh(applied.T @ applied)[::-1], 0.0)
    off = np.sqrt(squares + noise * float(squares.sum()))
    trace = max(frobenius**2 - float(theta @ theta), 0.0) + rounding
    square = trace**2
    if q >= 4.0 and hasattr(g, "gram_square"):
        # From the Schatten-4 norm, which sees the tail much better than the trace does.
        power = float(g.gram_square)
        square = min(square, max(power - float(np.sum(theta**4)) - 2.0 * float(squares.sum()), 0.0) + noise * power)
    top = math.sqrt(square)
    side = 2.0 ** (2.0 / q) * lp_norm(off, q / 2.0) if math.isfinite(q) else float(off[0])
    return math.sqrt((_joined(theta, trace, square, top, q) + side) * (1.0 + noise) + rounding)


def _joined(theta: Array, trace: float, square: float, top: float, q: float) -> float:
    r""":math:`(\sum\theta^q + \operatorname{tr} C^{q/2})^{2/q}`, scaled so that powers stay in range."""
    largest = float(theta[0]) ** 2 if len(theta) else 0.0
    if math.isinf(q):
        return max(largest, top)
    scale = max(largest, top)
    if scale == 0.0:
        return 0.0
    relative = top / scale
    tail = (
        (square / scale**2) * relative ** (q / 2.0 - 2.0) if q >= 4.0 else trace / scale * relative ** (q / 2.0 - 1.0)
    )
    return scale * float((np.sum((theta**2 / scale) ** (q / 2.0)) + tail) ** (2.0 / q))


def eigenvalue_bound(H: Array, estimate: float) -> float:
    r"""An upper bound on the largest eigenvalue of a positive semidefinite matrix, which is destroyed.

    If the Cholesky factorisation of :math:`A = \mu I - H` runs to completion in floating point, then :math:`A + E` is
    positive semidefinite for an E with :math:`\|E\| \le \gamma \operatorname{tr} A` and
    :math:`\gamma = (n + 2) u / (1 - (n + 2) u)`, so that no eigenvalue of H exceeds
    :math:`\mu + \gamma \operatorname{tr} A` (Rump 2006, Verification of positive definiteness). The closer the positive
    ``estimate`` is to the eigenvalue from below, the sharper the bound.

    Examples
    --------
    >>> import numpy as np
    >>> 3.0 <= eigenvalue_bound(np.diag([1.0, 3.0, 2.0]), 2.99) <= 3.06
    True
    """
    from scipy.linalg.lapack import dpotrf

    n, diagonal = len(H), H.diagonal().copy()
    trace, slack = float(diagonal.sum()), 4.0 * (n + 2) * EPS
    np.negative(H, out=H)
    for share in SLACKS:
        mu = (1.0 + share) * estimate
        H[np.diag_indices(n)] = mu - diagonal
        # The transpose is in Fortran's order: its lower triangle is factorised in place.
        _, failed = dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return mu + slack * (n * mu + trace)
        _restore(H)
    return trace * (1.0 + slack)


def largest_square(g: Any) -> float:
    """About the square of the largest singular value of a matrix that is known by its products, never above it."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = g.shape[1]
    apply = LinearOperator((n, n), lambda x: g.transposed_times(g.times(x.reshape(-1, 1))).ravel(), dtype=np.float64)
    start = np.random.default_rng(n).standard_normal(n)
    try:
        found = eigsh(apply, k=1, which="LA", tol=ACCURACY, v0=start, maxiter=MOST, return_eigenvectors=False)
    except ArpackNoConvergence:
        x = start / np.linalg.norm(start)
        for _ in range(8):
            x = apply @ x
            x /= np.linalg.norm(x)
        found = [float(x @ (apply @ x))]
    return max(float(found[0]), (0.5 * EPS) * float(g.size()) ** 2)


def _restore(H: Array) -> None:
    """Copy the lower triangle, in rows, over the upper one, which a factorisation has overwritten."""
    n = len(H)
    for start in range(0, n, SLAB):
        stop = min(start + SLAB, n)
        H[start:stop, stop:] = H[stop:, start:stop].T
        square = H[start:stop, start:stop]
        square[:] = np.tril(square) + np.tril(square, -1).T
