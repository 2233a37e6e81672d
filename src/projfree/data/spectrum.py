r"""An upper bound on the largest eigenvalue of :math:`A^T S A` for features that are shifted and scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse

if TYPE_CHECKING:
    from projfree.data.base import Data

#: Up to this many rows or columns the largest eigenvalue is taken from a Gram matrix; beyond, it is bounded.
GRAM_SIDE = 3_000
#: Products that a sparse Gram matrix may cost before the bound by row sums is used instead.
SPARSE_WORK = 1e9
#: Columns that are made dense at a time for the Gram matrix of the rows.
COLUMNS = 1 << 10


def largest_eigenvalue(data: Data, shift: Array, scale: Array, trace: float, *, centred: bool) -> float:
    r"""An upper bound on :math:`\lambda_{\max}` for the rows ``(x_i - shift) / scale``, centred by their mean if asked.

    The eigenvalue of the Gram matrix of the smaller side up to 3,000, raised by its rounding. Beyond, the largest row
    sum of absolute values, which never needs the matrix: centring subtracts a positive semidefinite matrix, so the
    moments about zero bound those about the mean m, and moments about the shift add at most
    :math:`\|(m - shift) / scale\|^2`. The trace, the mean square of the shifted and scaled rows, is a bound as well.
    """
    n, d = data.n, len(scale)
    about = data.mean_row() if centred else shift
    X = getattr(data, "X", None)
    if d <= min(n, GRAM_SIDE) and _affordable(X):
        gram = data.gram()
        moment = gram.moment(about) / np.multiply.outer(scale, scale)
        size = float(np.trace(moment) + np.trace(gram.moment(gram.shift[:d]) / scale**2))
        return _raised(moment, size, data.summation() + d)
    if n <= GRAM_SIDE and X is not None:
        outer = _outer(X, np.broadcast_to(data.weights(slice(None)), (n,)), about, scale)
        return _raised(outer, float(np.trace(outer)), float(n + d))
    away = (data.mean_row() - about) / scale
    bound = min(_row_sums(data, scale) + float(away @ away), trace)
    return bound * (1.0 + 8.0 * UNIT * (data.summation() + d))


def _affordable(X: Any) -> bool:
    return not is_sparse(X) or float(X.nnz) ** 2 <= SPARSE_WORK * X.shape[0]


def _raised(gram: Array, size: float, units: float) -> float:
    """The largest eigenvalue of a rounded matrix, raised by what rounding may have taken from it."""
    return float(np.linalg.eigvalsh(gram)[-1]) + 8.0 * UNIT * units * size


def _outer(X: Any, s: Array, about: Array, scale: Array) -> Array:
    """The Gram matrix of the rows, from a few columns at a time: no shifted copy of the table."""
    columns = X.tocsc() if is_sparse(X) else X
    total, root = np.zeros((len(s), len(s))), np.sqrt(s)[:, None]
    for start in range(0, X.shape[1], COLUMNS):
        part = slice(start, start + COLUMNS)
        table = columns[:, part].toarray() if is_sparse(X) else columns[:, part]
        z = (table - about[part]) / scale[part] * root
        total += z @ z.T
    return total


def _row_sums(data: Data, scale: Array) -> float:
    # lambda_max of a symmetric matrix is at most its largest sum of absolute values along a row.
    total = np.zeros(len(scale))
    for rows, table in data.tables():
        size = abs(table)
        total += size.T @ ((size @ (1.0 / scale)) * data.weights(rows))
    return float((total / scale).max())
