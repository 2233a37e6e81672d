"""Products of the lines of a table with vectors, and sums of lines.

Vectors are rows of two-dimensional arrays, given by array and index: slices would have to be compiled.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from projfree.data.native.arguments import LANES
from projfree.data.native.registers import I64, Code

#: Lines that are added to a sum at a time.
TOGETHER = 8


def _products(code, x, vectors, count):
    """The sums of products of the numbers at ``x`` with those at each of ``vectors``, in sixteen partial sums each."""
    builder, sums = code.builder, [code.zeros(4) for _ in vectors]
    main, rest = code.whole(count, 4 * LANES), code.whole(count, LANES)
    with code.loop(I64(0), main, 4 * LANES) as (j, _):
        for k in range(4):
            at = code.add(j, k * LANES)
            entries = code.vector(x, at)
            for v, totals in zip(vectors, sums, strict=True):
                code.accumulate(totals[k], entries, code.vector(v, at))
    with code.loop(main, rest, LANES) as (j, _):
        entries = code.vector(x, j)
        for v, totals in zip(vectors, sums, strict=True):
            code.accumulate(totals[0], entries, code.vector(v, j))
    parts = [[builder.load(total) for total in totals] for totals in sums]
    cells = [code.cell(code.across(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)))) for a, b, c, d in parts]
    with code.loop(rest, count, 1) as (j, _):
        entry = code.scalar(x, j)
        for v, total in zip(vectors, cells, strict=True):
            code.accumulate(total, entry, code.scalar(v, j))
    return [builder.load(total) for total in cells]


@intrinsic
def dot(typing, X, line, start, V, q, count):
    """``sum_j X[line, start + j] V[q, j]`` over ``count`` numbers."""

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature, arguments)
        _, line, start, _, q, count = arguments
        return _products(code, code.place(0, line, start), [code.place(3, q, I64(0))], count)[0]

    return types.float64(X, types.int64, types.int64, V, types.int64, types.int64), codegen


@intrinsic
def dot_two(typing, X, line, V, q, out, i):
    """``out[q + c, i] = X[line] @ V[q + c]`` for c = 0 and 1, each number of the line loaded once."""

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature, arguments)
        _, line, _, q, _, i = arguments
        both = [code.place(2, code.add(q, c), I64(0)) for c in range(2)]
        for c, total in enumerate(_products(code, code.place(0, line, I64(0)), both, code.width(0))):
            code.store(total, code.place(4, code.add(q, c), i), I64(0))
        return context.get_dummy_value()

    return types.none(X, types.int64, V, types.int64, out, types.int64), codegen


@intrinsic
def add_lines(typing, X, line, start, lines, V, q, out, p, count):
    """``out[p, j] += sum_k V[q, k] X[line + k, start + j]`` over ``lines`` lines and ``count`` numbers."""

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature, arguments)
        _, line, start, lines, _, q, _, p, count = arguments
        factors, out = code.place(4, q, I64(0)), code.place(6, p, I64(0))

        def add(first, together):
            rows = [code.place(0, code.add(line, code.add(first, k)), start) for k in range(together)]
            _add(code, rows, [code.scalar(factors, code.add(first, k)) for k in range(together)], out, count)

        most = code.whole(lines, TOGETHER)
        for begin, end, together in ((I64(0), most, TOGETHER), (most, lines, 1)):
            with code.loop(begin, end, together) as (k, _):
                add(k, together)
        return context.get_dummy_value()

    i = types.int64
    return types.none(X, i, i, i, V, i, out, i, i), codegen


@intrinsic
def add_scaled(typing, X, line, start, factor, out, p, count):
    """``out[p, j] += factor * X[line, start + j]`` over ``count`` numbers."""

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature, arguments)
        _, line, start, factor, _, p, count = arguments
        _add(code, [code.place(0, line, start)], [factor], code.place(4, p, I64(0)), count)
        return context.get_dummy_value()

    i = types.int64
    return types.none(X, i, i, types.float64, out, i, i), codegen


def _add(code, rows, factors, out, count):
    rest, spread = code.whole(count, LANES), [code.spread(r) for r in factors]
    for load, coefficients, first, last, step in (
        (code.vector, spread, I64(0), rest, LANES),
        (code.scalar, factors, rest, count, 1),
    ):
        with code.loop(first, last, step) as (j, _):
            total = load(out, j)
            for r, row in zip(coefficients, rows, strict=True):
                total = code.plus(total, r, load(row, j))
            code.store(total, out, j)
