"""Compressed sparse rows: brought into canonical form without a copy where possible, checked, and cut into views."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from projfree.checks import Array, shown
from projfree.runtime import single_blas

#: Entries that one-time checks look at together; bounds their temporary memory.
PIECE = 1 << 16


class Compressed(NamedTuple):
    """A table in canonical form: columns increase within each row, so that none occurs twice.

    Attributes
    ----------
    rows : csr_array
        The table by rows.
    columns : csc_array or None
        The same by columns, where it was given so.
    squares : float or None
        The sum of the squares of all entries, where the check of the values has found it.
    """

    rows: sp.csr_array
    columns: sp.csc_array | None
    squares: float | None


def compressed(X: Any) -> Compressed:
    """A SciPy sparse matrix or array of any format as compressed rows of floats.

    See `canonical`; compressed columns are converted once, and kept next to the rows.
    """
    own = canonical(X)
    if own.format == "csr":
        return Compressed(own, None, checked_values(own))
    rows = by_rows(own)
    return Compressed(rows, own, checked_values(rows))


def by_rows(X: sp.csc_array) -> sp.csr_array:
    """Canonical columns as compressed rows."""
    return _marked(X.tocsr())  # in order, because the columns are read one after the other


def canonical(X: Any) -> Any:
    """A SciPy sparse matrix or array of any format as canonical CSR or, where it is that, CSC of floats.

    CSR and CSC with float32 or float64 values and increasing indices share their memory with the result. Other formats
    are converted, and so are values of other kinds. Where indices are not in order or occur twice, the result is a copy
    in which they are sorted and summed. Explicit zeros stay. Whether values are finite is for `checked_values` to see.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must be a table with at least one row and one column, got shape {X.shape}.")
    if X.dtype.kind not in "iub" and X.dtype.newbyteorder("=") not in (np.float32, np.float64):
        raise TypeError(
            f"`X` must hold real numbers, got dtype {X.dtype}; convert it first, e.g. with `.astype(float)`."
        )
    own = _canonical(_sound(X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))))
    if own.dtype.kind in "iub":
        own = with_values(own, own.data.astype(np.float64))
    return own


def _sound(X: Any) -> Any:
    """The table as CSR or CSC whose arrays have the lengths that they must have."""
    unsound = (
        "`X` is not a sound sparse matrix: {}; build it anew from triplets, with "
        "`scipy.sparse.coo_array((values, (rows, columns)), shape)`."
    )
    if X.format not in ("csr", "csc"):
        try:
            if hasattr(X, "check_format"):  # a conversion trusts its input with memory
                X.check_format(full_check=True)
            X = X.tocsr()
        except ValueError as error:
            raise ValueError(unsound.format(error)) from None
    lines = X.shape[0] if X.format == "csr" else X.shape[1]
    values, indices, pointers = X.data, X.indices, X.indptr
    if pointers.shape != (lines + 1,) or indices.ndim != 1 or indices.shape != values.shape:
        found = f"shapes {values.shape} of `data`, {indices.shape} of `indices`, {pointers.shape} of `indptr`"
        raise ValueError(unsound.format(f"{found} do not go with a table of shape {X.shape}"))
    if pointers[0] != 0 or pointers[-1] > len(indices):
        raise ValueError(
            unsound.format(f"`indptr` goes from {pointers[0]} to {pointers[-1]} with {len(indices)} entries")
        )
    narrow = indices.dtype == pointers.dtype == np.int32 and max(X.shape) <= np.iinfo(np.int32).max
    index = np.int32 if narrow else np.int64
    used = slice(0, int(pointers[-1]))  # there may be unused space behind the last entry
    return assembled(
        sp.csr_array if X.format == "csr" else sp.csc_array,
        np.ascontiguousarray(values[used]),
        np.ascontiguousarray(indices[used], dtype=index),
        np.ascontiguousarray(pointers, dtype=index),
        X.shape,
    )


def assembled(kind: Any, values: Array, indices: Array, pointers: Array, shape: tuple[int, int]) -> Any:
    """A CSR or CSC array of exactly these arrays; SciPy's constructor copies short views and narrows indices."""
    out = kind(shape, dtype=values.dtype)
    out.data, out.indices, out.indptr = values, indices, pointers
    return out


def _canonical(X: Any) -> Any:
    """The same table with increasing indices in each line; a copy where they are not.

    Products and compiled code trust the indices, so everything that could lead them astray is refused here.
    """
    side, line = (X.shape[1], "row") if X.format == "csr" else (X.shape[0], "column")
    steps = np.diff(X.indptr)
    if steps.min() < 0:
        at = int(np.argmax(steps < 0))
        raise ValueError(f"`X.indptr` must not decrease, got {X.indptr[at]} then {X.indptr[at + 1]} at {line} {at}.")
    starts = X.indptr if steps.min() else X.indptr[np.concatenate([steps > 0, [True]])]  # of lines with entries
    first, last = X.indices.take(starts[:-1]), X.indices.take(starts[1:] - 1)
    increasing = _falls(X.indices) == int(np.count_nonzero(first[1:] <= last[:-1]))
    if not increasing:
        first = last = X.indices
    if X.nnz and (int(first.min()) < 0 or int(last.max()) >= side):
        bad = int(np.argmax((X.indices < 0) | (X.indices >= side)))
        raise ValueError(
            f"`X.indices` must lie between 0 and {side - 1}, got {X.indices[bad]} in {line} {_line(X, bad)}."
        )
    if not increasing:
        X = X.copy()
        X.has_canonical_format = False
        X.sum_duplicates()
    return _marked(X)


def _falls(indices: Array) -> int:
    """How many indices are not larger than the one before them."""
    rises = 0
    for start in range(0, len(indices) - 1, PIECE):
        piece = indices[start : start + PIECE + 1]
        rises += int(np.count_nonzero(piece[1:] > piece[:-1]))
    return max(len(indices) - 1, 0) - rises


def _marked(X: Any) -> Any:
    """Tell SciPy that a table is canonical, so that it need not look."""
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def checked_values(X: Any) -> float | None:
    """The sum of the squares of all entries of CSR or CSC, None where it overflows or values have single precision.

    Raises a sentence where an entry is not finite, or where the squares of a row overflow.
    """
    with np.errstate(all="ignore"), single_blas():  # the digits do not depend on the number of threads
        # A sum of squares that is finite has finite terms, and so has each row.
        pieces = [X.data[start : start + PIECE] for start in range(0, X.nnz, PIECE)]
        squares = math.fsum(float(np.dot(piece, piece)) for piece in pieces)
    if np.isfinite(squares):
        return squares if X.dtype == np.float64 else None
    X = X if X.format == "csr" else by_rows(X)
    for start in range(0, X.nnz, PIECE):
        finite = np.isfinite(X.data[start : start + PIECE])
        if not finite.all():
            at = start + int(np.argmin(finite))
            raise ValueError(
                f"`X` must be finite, got {shown(X.data[at])} at index ({_line(X, at)}, {X.indices[at]}); "
                "drop or impute such entries first."
            )
    with np.errstate(over="ignore"):
        if not all(np.isfinite(row_squares(tile)).all() for _, tile in row_pieces(X, PIECE)):
            raise ValueError(f"`X` has entries as large as {shown(np.abs(X.data).max())}; rescale its columns.")
    return None


def _line(X: Any, at: int) -> int:
    """The row, or the column of CSC, of the stored entry number ``at``."""
    return int(np.searchsorted(X.indptr, at, side="right")) - 1


def row_slice(X: sp.csr_array, start: int, stop: int) -> sp.csr_array:
    """Some neighbouring rows; values and columns are views, unlike in ``X[start:stop]``."""
    first, last = X.indptr[start], X.indptr[stop]
    pointers = X.indptr[start : stop + 1] - first
    rows = assembled(sp.csr_array, X.data[first:last], X.indices[first:last], pointers, (stop - start, X.shape[1]))
    return _marked(rows)


def with_values(X: Any, values: Array) -> Any:
    """Other values at the same places, in the same format."""
    return _marked(assembled(type(X), values, X.indices, X.indptr, X.shape))


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


def row_squares(tile: sp.csr_array, scratch: Array | None = None) -> Array:
    """The squared norms of the rows; ``scratch`` is memory to use, at least as long as there are entries."""
    out, starts = np.zeros(tile.shape[0]), tile.indptr[:-1]
    place = None if scratch is None else scratch[: tile.nnz]
    squares = np.square(tile.data, out=place, dtype=np.float64)
    full = starts < tile.indptr[1:]  # `reduceat` knows no empty sums
    if full.all():
        np.add.reduceat(squares, starts, out=out)
    elif full.any():
        out[full] = np.add.reduceat(squares, starts[full])
    return out
