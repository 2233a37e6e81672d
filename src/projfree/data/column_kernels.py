# mypy: disallow-untyped-decorators=False
"""Compiled products and coordinate descent with a few columns of a sparse table, whose products are not formed.

Indices are unsigned and lines are cut out as slices: negative indices, which would count from the end, are then not
asked about at every entry, which halves the time.
"""

from __future__ import annotations

from projfree.checks import Array
from projfree.numerics.compilation import FAST, compiled
from projfree.numerics.descent_kernels import SETTLED


@compiled()
def by_columns(
    indptr: Array,
    indices: Array,
    values: Array,
    roots: Array,
    begins: Array,
    rows: Array,
    out: Array,
    sums: Array,
    squares: Array,
) -> None:
    """Lay compressed rows out by columns, each entry times the root of its row, with their squares and weighted sums.

    ``begins`` has two zeros more than there are columns; its last entry is no beginning.
    """
    for a in range(len(indices)):
        begins[indices[a] + 2] += 1
    for j in range(2, len(begins)):
        begins[j] += begins[j - 1]
    for i in range(len(roots)):
        for a in range(indptr[i], indptr[i + 1]):
            j, v = indices[a], roots[i] * values[a]
            place = begins[j + 1]
            begins[j + 1] = place + 1
            rows[place], out[place] = i, v
            sums[j] += roots[i] * v
            squares[j] += v * v


@compiled(fastmath=FAST)
def weighted_product(indptr: Array, indices: Array, values: Array, h: Array, w: Array, out: Array) -> None:
    """Add the weighted squares of the rows times ``w`` to ``out``."""
    for i in range(len(h)):
        places, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
        image = 0.0
        for a in range(len(x)):
            image += x[a] * w[places[a]]
        image *= h[i]
        for a in range(len(x)):
            out[places[a]] += image * x[a]


@compiled(fastmath=FAST)
def weighted_pair(indptr: Array, indices: Array, values: Array, h: Array, w: Array, out: Array) -> None:
    """The same for the two columns of ``w`` at once, which takes little longer than one."""
    for i in range(len(h)):
        places, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
        one, other = 0.0, 0.0
        for a in range(len(x)):
            one += x[a] * w[places[a], 0]
            other += x[a] * w[places[a], 1]
        one, other = one * h[i], other * h[i]
        for a in range(len(x)):
            out[places[a], 0] += one * x[a]
            out[places[a], 1] += other * x[a]


@compiled(fastmath=FAST)
def _slope(rows: Array, x: Array, q: Array, slope: float) -> float:
    """The slope with the product of a column and an image added."""
    for a in range(len(x)):
        slope += x[a] * q[rows[a]]
    return slope


@compiled(error_model="numpy", fastmath=FAST)
def descend_columns(
    begins: Array,
    rows: Array,
    values: Array,
    centre: Array,
    diagonal: Array,
    slope: Array,
    w: Array,
    level: float,
    costs: Array,
    signed: bool,
    rounds: int,
    q: Array,
) -> None:
    """`descend_entries` for one vector, with the image ``q`` of its change, zero at first, instead of all slopes."""
    m, shift = len(w), 0.0
    for turn in range(rounds):
        moved = False
        for j in range(m):
            old, h = w[j], diagonal[j]
            if h <= 0.0 or (turn > 0 and old == 0.0):
                continue
            own, x = rows[begins[j] : begins[j + 1]], values[begins[j] : begins[j + 1]]
            z, t, new = h * old - _slope(own, x, q, slope[j] - shift * centre[j]), level * costs[j], 0.0
            if z > t:
                new = (z - t) / h
            elif signed and z < -t:
                new = (z + t) / h
            step = new - old
            if step != 0.0:
                w[j] = new
                moved = moved or abs(step) > SETTLED * abs(new)
                shift += step * centre[j]
                for a in range(len(x)):
                    q[own[a]] += step * x[a]
        if not moved:
            break
    for j in range(m):
        own, x = rows[begins[j] : begins[j + 1]], values[begins[j] : begins[j + 1]]
        slope[j] = _slope(own, x, q, slope[j] - shift * centre[j])
