"""MovieLens ratings, from your files or from their home; their licence forbids to pass them on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from projfree.checks import Array, shown
from projfree.datasets.base import Ratings
from projfree.datasets.download import HOMES, Home
from projfree.datasets.lookup import find, open_text


@dataclass(frozen=True)
class _Edition:
    home: Home
    separator: str
    n: int
    shape: tuple[int, int]


_SOURCES = {
    "100k": _Edition(HOMES["movielens-100k"], "\t", 100_000, (943, 1_682)),
    "1m": _Edition(HOMES["movielens-1m"], "::", 1_000_209, (6_040, 3_706)),
}


def load_movielens(size: Literal["100k", "1m"] = "100k", *, download: bool = True) -> Ratings:
    """Load the ratings of MovieLens 100K (943 x 1,682) or 1M (6,040 x 3,706).

    Users are rows and films are columns, in the order of their ids; films without a rating have no column.

    Parameters
    ----------
    size : {"100k", "1m"}
        ``"100k"`` reads ``ml-100k/u.data``, ``"1m"`` reads ``ml-1m/ratings.dat`` or, without the time column,
        ``ml-1m/ratings_no_timestamp.dat``; each plain, .gz or .zip, below PROJFREE_DATA or in the cache.
    download : bool
        Whether a file that is in neither place is got from GroupLens.

    Examples
    --------
    >>> from projfree.datasets import load_movielens, movielens_stand_in
    >>> try:
    ...     ratings = load_movielens("100k", download=False)
    ... except FileNotFoundError:  # neither below PROJFREE_DATA nor in the cache
    ...     ratings = movielens_stand_in("100k")
    >>> ratings.shape, len(ratings.values)
    ((943, 1682), 100000)
    """
    if size not in _SOURCES:
        raise ValueError(f"`load_movielens(size=...)` must be '100k' or '1m', got {shown(size)}.")
    source = _SOURCES[size]
    path = find(f"load_movielens({size!r})", source.home, download)
    table = _table(path, source)
    row_ids, rows = np.unique(table[:, 0], return_inverse=True)
    col_ids, cols = np.unique(table[:, 1], return_inverse=True)
    shape = (len(row_ids), len(col_ids))
    if (len(table), shape) != (source.n, source.shape):
        raise _not_original(path, source, f"{len(table):,} ratings of {shape[0]:,} users and {shape[1]:,} films")
    return Ratings(
        rows=rows,
        cols=cols,
        values=table[:, 2].astype(np.float64),
        shape=shape,
        row_ids=row_ids,
        col_ids=col_ids,
        name=f"MovieLens {size.upper()}",
        description=f"{source.n:,} ratings from 1 to 5 by {shape[0]:,} users of {shape[1]:,} films.",
        licence="GroupLens research licence: no redistribution; see the README of the data.",
        times=table[:, 3] if table.shape[1] == 4 else None,
    )


def _table(path: Path, source: _Edition) -> Array:
    with open_text(path) as text:
        # NumPy's reader wants a separator of one character.
        lines = text if source.separator == "\t" else (line.replace(source.separator, "\t") for line in text)
        try:
            table = np.loadtxt(lines, dtype=np.int64, delimiter="\t", ndmin=2)
        except ValueError as error:
            raise _not_original(path, source, f"a line that does not fit ({error})") from error
    if table.shape[1] not in (3, 4):
        raise _not_original(path, source, f"{table.shape[1]} columns")
    return table


def _not_original(path: Path, source: _Edition, found: str) -> ValueError:
    return ValueError(
        f"`load_movielens` expects {source.n:,} ratings of {source.shape[0]:,} users and {source.shape[1]:,} films in "
        f"{str(path)!r}, but it holds {found}; get it again from {source.home.page}."
    )
