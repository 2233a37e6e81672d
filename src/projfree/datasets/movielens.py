"""MovieLens ratings, from local files or downloaded; their licence forbids redistribution."""

from __future__ import annotations

from typing import Literal

import numpy as np

from projfree.checks import shown
from projfree.datasets.base import Ratings
from projfree.datasets.sources import SOURCES, check_content, find_file, open_text

#: Separator, number of ratings, users and films.
FORMATS = {"100k": ("\t", 100_000, (943, 1_682)), "1m": ("::", 1_000_209, (6_040, 3_706))}


def load_movielens(size: Literal["100k", "1m"] = "100k", *, download: bool = True) -> Ratings:
    """Load the ratings of MovieLens 100K (943 x 1,682) or 1M (6,040 x 3,706).

    Rows are users and columns are films, in the order of their ids; films without a rating are left out.

    Parameters
    ----------
    size : {"100k", "1m"}
        ``"100k"`` reads ``ml-100k/u.data``, ``"1m"`` reads ``ml-1m/ratings.dat`` or, without the time column,
        ``ml-1m/ratings_no_timestamp.dat``; each plain, .gz or .zip, in PROJFREE_DATA or in the cache.
    download : bool
        Whether to download the file from GroupLens if it is in neither folder.

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
    if size not in FORMATS:
        raise ValueError(f"`load_movielens(size=...)` must be '100k' or '1m', got {shown(size)}.")
    (separator, n, shape), source = FORMATS[size], SOURCES[f"movielens-{size}"]
    path = find_file(f"load_movielens({size!r})", source, download)
    what = f"{n:,} ratings of {shape[0]:,} users and {shape[1]:,} films"
    with check_content("load_movielens", what, path, source), open_text(path) as text:
        # NumPy takes separators of one character only.
        table = np.loadtxt((line.replace(separator, "\t") for line in text), np.int64, delimiter="\t", ndmin=2)
        if len(table) != n or table.shape[1] not in (3, 4):
            raise ValueError(f"a table of {len(table)} x {table.shape[1]} numbers")
        row_ids, rows = np.unique(table[:, 0], return_inverse=True)
        col_ids, cols = np.unique(table[:, 1], return_inverse=True)
        if (len(row_ids), len(col_ids)) != shape:
            raise ValueError(f"ratings of {len(row_ids):,} users and {len(col_ids):,} films")
    return Ratings(
        rows=rows,
        cols=cols,
        values=table[:, 2].astype(np.float64),
        shape=shape,
        row_ids=row_ids,
        col_ids=col_ids,
        name=f"MovieLens {size.upper()}",
        description=f"{what}, from 1 to 5.",
        licence="GroupLens research licence: no redistribution; see the README of the data.",
    )
