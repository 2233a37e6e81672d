r"""An upper bound on the largest eigenvalue of :math:`A^T S A` for features that are shifted and scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, is_sparse

if TYPE_CHECKING:
    from projfree.data.base import Data
    from projfree.data.local import LocalData

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
    if d <= min(n, GRAM_SIDE) and (data.stored is None or float(data.stored) ** 2 <= SPARSE_WORK * n):
        gram = data.gram()
        moment = gram.moment(about) / np.multiply.outer(scale, scale)
        size = float(np.trace(moment) + np.trace(gram.moment(gram.shift[:d]) / scale**2))
        return _raised(moment, size, data.summation() + d)
    columns = data.columns() if n <= GRAM_SIDE else None
    if columns is not None:
        outer = _outer(columns, cast("LocalData", data).weights(slice(None)), about, scale)
        return _raised(outer, float(np.trace(outer)), float(n + d))
    away = (data.mean_row() - about) / scale
    bound = min(data.largest_row_sum(scale) + float(away @ away), trace)
    return bound * (1.0 + 8.0 * UNIT * (data.summation() + d))


def _raised(gram: Array, size: float, units: float) -> float:
    """The largest eigenvalue of a rounded matrix, raised by what rounding may have taken from it."""
    return float(np.linalg.eigvalsh(gram)[-1]) + 8.0 * UNIT * units * size


def _outer(columns: Any, s: Array | float, about: Array, scale: Array) -> Array:
    """The Gram matrix of the rows, from a few columns at a time: no shifted copy of the table."""
    n, d = columns.shape
    total, root = np.zeros((n, n)), np.sqrt(np.broadcast_to(s, n))[:, None]
    for start in range(0, d, COLUMNS):
        part = slice(start, start + COLUMNS)
        table = columns[:, part].toarray() if is_sparse(columns) else columns[:, part]
        z = (table - about[part]) / scale[part] * root
        total += z @ z.T
    return total


def largest_row_sum(data: LocalData, scale: Array) -> float:
    """See `Data`; the largest eigenvalue of a symmetric matrix is at most that of the sizes of its entries."""
    return float((row_sums(data, scale) / scale).max())


def row_sums(data: LocalData, scale: Array) -> Array:
    r"""The sums of sizes in the rows of :math:`|A|^T S |A|`, the second of the two divided by ``scale``."""
    total = np.zeros(len(scale))
    for rows, table in data.tables():
        size = abs(table)
        total += size.T @ ((size @ (1.0 / scale)) * data.weights(rows))
    return total
