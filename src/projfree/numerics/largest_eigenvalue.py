r"""A proven upper bound on the largest eigenvalue of a symmetric matrix, by one Cholesky factorisation.

If the factorisation of :math:`A = \mu I - H` runs to completion in floating point, then :math:`A + E` is positive
semidefinite for an E with :math:`\|E\| \le \gamma \operatorname{tr} A` and
:math:`\gamma = (n + 2) u / (1 - (n + 2) u)`, so that no eigenvalue of H exceeds
:math:`\mu + \gamma \operatorname{tr} A`. An estimate from below tells which :math:`\mu` to try.

References
----------
Rump (2006), Verification of positive definiteness.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.numerics.sums import UNIT

#: By how much, relatively, what is tried exceeds the estimate; after the last one the trace is the answer.
SLACKS = (1e-4, 5e-3, 0.05, 0.2, 1.0)
#: The accuracy of an estimate, and how often it is begun anew.
ACCURACY, MOST = 1e-3, 20
#: Rows that are restored at a time.
BLOCK = 512


def eigenvalue_bound(H: Array, estimate: float) -> float:
    """An upper bound on the largest eigenvalue of a positive semidefinite matrix, which is destroyed.

    The closer the positive ``estimate`` is to it from below, the sharper the bound.

    Examples
    --------
    >>> import numpy as np
    >>> 3.0 <= eigenvalue_bound(np.diag([1.0, 3.0, 2.0]), 2.99) <= 3.06
    True
    """
    from scipy.linalg.lapack import dpotrf

    n, diagonal = len(H), H.diagonal().copy()
    trace, slack = float(diagonal.sum()), 8.0 * (n + 2) * UNIT
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
    return max(float(found[0]), UNIT * float(g.size()) ** 2)


def _restore(H: Array) -> None:
    """Copy the lower triangle, in rows, over the upper one, which a factorisation has overwritten."""
    n = len(H)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        H[start:stop, stop:] = H[stop:, start:stop].T
        square = H[start:stop, start:stop]
        square[:] = np.tril(square) + np.tril(square, -1).T
