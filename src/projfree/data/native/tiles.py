"""What a pass does with the images of a tile of rows, whatever the storage they come from.

A tile's arrays are rows of ``space``: flat, with k entries a row, and small enough to stay in the first cache. The
flags of a kernel are None or True, because numba leaves out a branch on what is None before it looks at it: only what a
step and a loss need is compiled. Few functions, because each costs a tenth of a second to compile.
"""

from __future__ import annotations

from projfree.data.layout import ALONG, ALONG_SIZE, MEAN_IMAGE, SCALARS, SHIFTED, SIZE, SLOPE, SLOPE_SIZE, SQUARE, VALUE
from projfree.data.native.arguments import BY_OUTPUT, DERIVATIVE, FULL, IMAGE, LOSSES, RESIDUAL, WEIGHT
from projfree.data.native.compiling import exact, fast
from projfree.data.native.line_products import add_scaled, dot


@exact
def finish(tile, tangent, slopes, several, coupled, labels, args, block, first, count, formed, space):
    """Form the images of all points, keep those that are wanted, and add up what the step asks for.

    Weighted derivatives at the first point go to the first row of ``space``. Values, or slopes, are those of the first
    point alone where no tangent is asked for; without a loss, which is then None, there is nothing but images.
    """
    k = 1 if several is None else args.b.shape[1]
    at, size, points, sums = first * k, count * k, len(args.scale), args.sums[block]
    u, value, s = space[IMAGE], space[LOSSES], space[WEIGHT]
    for q in range(len(formed)):
        for c in range(k):
            offset = args.offsets[q, c]
            if offset != 0.0:
                for i in range(count):
                    formed[q, i * k + c] += offset
    if len(args.weight):
        for i in range(count):
            for c in range(k):
                s[i * k + c] = args.weight[first + i]
    for j in range(points):
        for i in range(size):
            u[i] = 0.0
        if args.scale[j] != 0.0 and args.base.shape[1]:
            add_scaled(args.base, 0, at, args.scale[j], space, IMAGE, size)
        for q in range(len(formed)):
            if args.coefficients[j, q] != 0.0:
                add_scaled(formed, q, 0, args.coefficients[j, q], space, IMAGE, size)
        keep = args.keep[j]
        if len(keep):
            for i in range(size):
                keep[at + i] = u[i]
        if tile is None or (tangent is None and j > 0):
            continue
        full = u
        if args.shifted[j]:
            full = space[FULL]
            for i in range(count):
                for c in range(k):
                    full[i * k + c] = u[i * k + c] + args.b[j, c]
        slope = space[RESIDUAL if j == 0 else DERIVATIVE]
        if coupled is None:
            tile(args.parameters, full[:size], args.y[at : at + size], value[:size], slope[:size])
        else:
            shape = (count, k)
            y = args.y[at : at + size].reshape(shape) if labels is None else args.labels[first : first + count]
            tile(args.parameters, full[:size].reshape(shape), y, value[:count], slope[:size].reshape(shape))
        if slopes is not None:
            add_slopes(value, slope, s, count, k, space[BY_OUTPUT:], sums)
            continue
        if coupled is None:
            total = dot(space, LOSSES, 0, space, WEIGHT, size)
        else:
            total = 0.0
            for i in range(count):
                total += s[i * k] * value[i]
        if tangent is None:
            sums[VALUE] += total
            continue
        if j > 0:
            sums[len(sums) - points + j] += total
            continue
        sums[VALUE] += total
        if several is None:
            add_one(u, full, value, slope, s, count, args.shifted[0], sums)
            continue
        for i in range(size if coupled is None else count):
            value[i] = abs(value[i])
        if coupled is None:
            sums[SIZE] += dot(space, LOSSES, 0, space, WEIGHT, size)
        else:
            for i in range(count):
                sums[SIZE] += s[i * k] * value[i]
        add_several(u, full, slope, s, count, k, args.shifted[0], space[BY_OUTPUT:], sums)


@fast
def add_one(u, full, value, slope, weight, count, shifted, sums):
    """Weigh the derivatives of a tile in place and add up what is left, for one output."""
    v = a = aa = sh = sq = g = ga = mu = 0.0
    for i in range(count):
        s, d = weight[i], slope[i]
        v += abs(s * value[i])
        r = d * s
        slope[i] = r
        a += r * u[i]
        aa += abs(r * u[i])
        sh += abs(r * full[i])
        sq += r * d
        g += r
        ga += abs(r)
        mu += s * u[i]
    sums[SIZE] += v
    sums[ALONG] += a
    sums[ALONG_SIZE] += aa
    sums[SHIFTED] += sh if shifted else 0.0
    sums[SQUARE] += sq
    sums[SCALARS + SLOPE] += g
    sums[SCALARS + SLOPE_SIZE] += ga
    sums[SCALARS + MEAN_IMAGE] += mu


@fast
def add_several(u, full, slope, weight, count, k, shifted, work, sums):
    """`add_one` for several outputs; ``weight`` has a number for each entry."""
    a = aa = sh = sq = 0.0
    for i in range(count * k):
        d = slope[i]
        r = d * weight[i]
        slope[i] = r
        a += r * u[i]
        aa += abs(r * u[i])
        sh += abs(r * full[i])
        sq += r * d
    sums[ALONG] += a
    sums[ALONG_SIZE] += aa
    sums[SHIFTED] += sh if shifted else 0.0
    sums[SQUARE] += sq
    for i in range(count * k):
        work[SLOPE, i] = slope[i]
        work[SLOPE_SIZE, i] = abs(slope[i])
        work[MEAN_IMAGE, i] = weight[i] * u[i]
    add_rows(work, count, k, sums[SCALARS:])


@fast
def add_slopes(slope, second, weight, count, k, work, sums):
    """The weighted sums of first derivatives, of second ones, and of the sizes of the first."""
    for i in range(count * k):
        work[0, i] = slope[i] * weight[i]
        work[1, i] = second[i] * weight[i]
        work[2, i] = abs(work[0, i])
    add_rows(work, count, k, sums)


@exact
def add_rows(work, count, k, sums):
    """Add each array's rows of k numbers to k sums: halves of the rows, so that few outputs still make long vectors."""
    for part in range(len(work)):
        x, rows = work[part], count
        while rows > 1:
            half = rows // 2
            low, high = x[: half * k], x[(rows - half) * k : rows * k]
            for i in range(half * k):
                low[i] += high[i]
            rows -= half
        for c in range(k):
            sums[part * k + c] += x[c]
