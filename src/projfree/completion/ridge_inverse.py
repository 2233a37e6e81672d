"""Inverses of Gram matrices with a ridge, which may be too small for the rounding of the Gram matrix."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array

#: The ridge counts as at least this part of the trace: what is smaller is lost in the rounding of the sum.
LEAST = 1e-12


def ridge_inverse(gram: Array, ridge: Array) -> Array:
    r"""The inverse of :math:`G + \mathrm{diag}(\rho)` for a positive semidefinite G and a positive ridge.

    It is found in coordinates in which both are diagonal, where nothing can be singular:
    :math:`C (1 + \Lambda)^{-1} C^T` with :math:`C^T \mathrm{diag}(\rho)\,C = I` and :math:`C^T G C = \Lambda`.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.completion.ridge_inverse import ridge_inverse
    >>> ridge_inverse(np.array([[3.0, 0.0], [0.0, 1.0]]), np.ones(2)).tolist()
    [[0.25, 0.0], [0.0, 0.5]]
    """
    root = 1.0 / np.sqrt(np.maximum(ridge, max(LEAST * float(np.trace(gram)), 1e-300)))
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    change = root[:, None] * vectors
    inverse: Array = (change / (1.0 + np.maximum(values, 0.0))) @ change.T
    return inverse
