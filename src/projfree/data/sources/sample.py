"""Samples of rows outside memory: short runs of neighbours, drawn so that every row is as likely as any other."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.data.sources.base import Source


def draw_runs(n: int, m: int, run: int, rng: np.random.Generator) -> Array:
    r"""``m`` different rows in increasing order, in runs of up to ``run`` neighbours.

    Cells of ``run`` rows are drawn without replacement, the last one in part, and then all rows are shifted around
    the circle of n by one uniform number. The shift alone gives every row the probability :math:`m / n`, whatever the
    cells were, so that a mean over the sample is unbiased. Its variance is that of single rows where the order of
    the rows is random, and larger where neighbours are alike: shuffle sorted files once.

    Costs O(m), nothing of order n. Samples of nearly all rows, which leave no cell free, are drawn as single rows.

    Examples
    --------
    >>> draw_runs(100, 6, 3, np.random.default_rng(0))
    array([ 7,  8,  9, 89, 90, 91])
    """
    needed, cells = -(-m // run), n // run
    if needed > cells:
        return np.sort(rng.choice(n, size=m, replace=False, shuffle=False))
    firsts = rng.choice(cells, size=needed, replace=False) * run
    rows = (firsts[:, None] + np.arange(run)).reshape(-1)[:m]
    return np.sort((rows + rng.integers(n)) % n)


class SourceRows(Source):
    """Some rows of another source, in increasing order."""

    def __init__(self, source: Source, rows: Array) -> None:
        self.source, self.rows = source, np.asarray(rows)
        self.name, self.n, self.d, self.dtype = f"a sample of {source.name}", len(rows), source.d, source.dtype
        self.fortran, self.run, self.columns = source.fortran, source.run, source.columns

    def read(self, start: int, stop: int, out: Array) -> Array:
        return self.source.take(self.rows[start:stop], out)

    def check(self) -> None:
        self.source.check()

    def place(self, row: int, column: int) -> str:
        return self.source.place(int(self.rows[row]), column)
