"""Compressed sparse rows: brought into form without a copy where possible, checked, and cut into views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array, shown

#: Entries that one-time checks look at together; bounds their temporary memory.
PIECE = 1 << 20


def compressed(X: Any) -> sp.csr_array:
    """A SciPy sparse matrix or array of any format as compressed rows of floats.

    CSR with float32 or float64 values shares its memory with the result. Other formats are converted once; so are
    values of other kinds. Where entries occur twice, the result is a copy in which they are summed. Explicit zeros and
    unsorted columns stay as they are.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
    if X.dtype.kind not in "iub" and X.dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise TypeError(
            f"`X` must hold real numbers, got dtype {X.dtype}; convert it first, e.g. with `.astype(float)`."
        )
    rows = _summed(_checked(_rows(X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("=")))))
    if rows.dtype.kind in "iub":
        rows = with_values(rows, rows.data.astype(np.float64))
    return rows


def _rows(X: Any) -> sp.csr_array:
    try:
        if X.format != "csr":
            if hasattr(X, "check_format"):  # a conversion trusts its input with memory
                X.check_format(full_check=True)
            X = X.tocsr()
        whole = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    except ValueError as error:
        raise ValueError(
            f"`X` is not a sound sparse matrix: {error}; build it anew from triplets, with "
            "`scipy.sparse.coo_array((values, (rows, columns)), shape)`."
        ) from None
    return whole


def _checked(X: sp.csr_array) -> sp.csr_array:
    """Compiled kernels trust the indices, so everything that could lead them astray is refused here."""
    step = np.diff(X.indptr)
    if step.min() < 0:
        row = int(np.argmax(step < 0))
        raise ValueError(f"`X.indptr` must not decrease, got {X.indptr[row]} then {X.indptr[row + 1]} at row {row}.")
    if X.nnz:
        low, high = int(X.indices.min()), int(X.indices.max())
        if low < 0 or high >= X.shape[1]:
            bad = low if low < 0 else high
            row, _ = place(X, int(np.argmax(X.indices == bad)))
            raise ValueError(f"`X.indices` must lie between 0 and {X.shape[1] - 1}, got {bad} in row {row}.")
    for start in range(0, X.nnz, PIECE):
        finite = np.isfinite(X.data[start : start + PIECE])
        if not finite.all():
            at = start + int(np.argmin(finite))
            raise ValueError(
                f"`X` must be finite, got {shown(X.data[at])} at index {place(X, at)}; "
                "drop or impute such entries first."
            )
    return X


def _summed(X: sp.csr_array) -> sp.csr_array:
    if X.has_canonical_format or not any(_repeats(piece) for _, piece in row_pieces(X, PIECE)):
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _repeats(piece: sp.csr_array) -> bool:
    copy = piece.copy()
    copy.sum_duplicates()
    return bool(copy.nnz < piece.nnz)


def place(X: sp.csr_array, at: int) -> tuple[int, int]:
    """The row and the column of the stored entry number ``at``."""
    return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])


def row_slice(X: sp.csr_array, start: int, stop: int) -> sp.csr_array:
    """Some neighbouring rows; values and columns are views, unlike in ``X[start:stop]``."""
    first, last = X.indptr[start], X.indptr[stop]
    return sp.csr_array(
        (X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first),
        shape=(stop - start, X.shape[1]),
    )


def with_values(X: sp.csr_array, values: Array) -> sp.csr_array:
    """Other values at the same places."""
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)


def rows_for(X: sp.csr_array, entries: int) -> int:
    """How many rows hold about so many entries, on average."""
    return max(16, int(X.shape[0] * entries / max(X.nnz, 1)))


def row_pieces(X: sp.csr_array, entries: int, first: int = 0, last: int | None = None) -> Iterator[tuple[slice, Any]]:
    """The rows from ``first`` to ``last`` in pieces of about so many entries."""
    last = X.shape[0] if last is None else last
    step = rows_for(X, entries)
    for start in range(first, last, step):
        stop = min(start + step, last)
        yield slice(start, stop), row_slice(X, start, stop)


def widened(tile: sp.csr_array) -> sp.csr_array:
    """A piece with float64 values."""
    return tile if tile.dtype == np.float64 else with_values(tile, tile.data.astype(np.float64))


def row_squares(tile: sp.csr_array) -> Array:
    """The squared norms of the rows, or a sentence that they overflow."""
    with np.errstate(over="ignore"):
        squares: Array = with_values(tile, tile.data**2) @ np.ones(tile.shape[1])
    if not np.isfinite(squares).all():
        raise ValueError(f"`X` has entries as large as {shown(np.abs(tile.data).max())}; rescale its columns.")
    return squares
