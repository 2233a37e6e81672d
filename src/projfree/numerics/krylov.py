"""Leading singular triples from one Krylov space, of matrices whose largest singular values lie close together.

Block iterations tell values apart by powers of their ratio; Lanczos' recurrence does so by Chebyshev polynomials, which
matters where many values are nearly the largest, as in the gradient at an answer of low rank.
"""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.subspace import EPS, Operator, Spectrum


def krylov(g: Operator, steps: int) -> Spectrum:
    """As many triples as the space has dimensions, of which the first are accurate; the values are lower bounds.

    Two products with one column are taken for each step, and the basis is kept orthonormal.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.algebra import LowRank
    >>> g = LowRank.of(np.diag([3.0, 2.0, 1.0]), np.eye(3))
    >>> krylov(g, 3).values.round(6)
    array([3., 2., 1.])
    """
    n = g.shape[1]
    steps = min(steps, *g.shape)
    basis, diagonal, beside = np.zeros((steps + 1, n)), np.zeros(steps), np.zeros(steps)
    basis[0] = _unit(np.random.default_rng(n).standard_normal(n))
    used = 0
    for j in range(steps):
        v = g.transposed_times(g.times(basis[j][:, None])).ravel()
        diagonal[j], used = basis[j] @ v, j + 1
        v -= diagonal[j] * basis[j] + (beside[j - 1] * basis[j - 1] if j else 0.0)
        v -= (basis[:used] @ v) @ basis[:used]  # what rounding has left of earlier vectors
        beside[j] = np.linalg.norm(v)
        if expired() or not beside[j] > n * EPS * diagonal[:used].max():
            break
        basis[used] = v / beside[j]
    small = np.diag(diagonal[:used]) + np.diag(beside[: used - 1], 1) + np.diag(beside[: used - 1], -1)
    return _triples(g, basis[:used].T @ np.linalg.eigh(small)[1][:, ::-1])


def _triples(g: Operator, right: Array) -> Spectrum:
    """The triples whose right vectors are given; images of no length are left out."""
    left = g.times(right)
    values = np.linalg.norm(left, axis=0)
    real = values > 1e-7 * values.max(initial=0.0)
    return Spectrum(left[:, real] / values[real], values[real], right[:, real], False)


def _unit(v: Array) -> Array:
    return v / max(float(np.linalg.norm(v)), 1e-300)
