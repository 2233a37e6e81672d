"""Sums of products, written for vector registers.

The loops at the heart of a pass are given to LLVM as operations on vectors of four numbers, which it maps to whatever
the machine has. Left to the compiler's own vectorisation, rows of 90 numbers spend a third of their time in scalar
remainders, and register blocking for several outputs does not happen at all. All sums are float64; float32 tables are
widened as they are loaded. A line is a row of a C-ordered table or a column of a Fortran-ordered one.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 4
#: Bytes that come from memory together.
LINE_BYTES = 64
#: Lines that are added to a sum at a time.
TOGETHER = 8

_F64, _I64, _I32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_F64, LANES)
_FUSE = ("contract",)


class _Code:
    """What the kernels below are written in."""

    def __init__(self, context, builder, signature, arguments):
        self.context, self.builder, self.types, self.arguments = context, builder, signature.args, arguments

    def array(self, k):
        return self.context.make_array(self.types[k])(self.context, self.builder, self.arguments[k])

    def width(self, k):
        """The length of a line of the array that is argument k."""
        return cgutils.unpack_tuple(self.builder, self.array(k).shape)[-1]

    def place(self, k, *index):
        """Where an entry of argument k is; all arrays are C-ordered."""
        if len(index) == 1:
            return self.builder.gep(self.array(k).data, index)
        row, column = index
        return self.builder.gep(self.array(k).data, [self.add(self.builder.mul(row, self.width(k)), column)])

    def add(self, i, step):
        return self.builder.add(i, _I64(step) if isinstance(step, int) else step)

    def scalar(self, start, i):
        x = self.builder.load(self.builder.gep(start, [i]))
        return x if x.type == _F64 else self.builder.fpext(x, _F64)

    def vector(self, start, i):
        kind = start.type.pointee
        place = self.builder.bitcast(self.builder.gep(start, [i]), ir.VectorType(kind, LANES).as_pointer())
        x = self.builder.load(place, align=8 if kind == _F64 else 4)
        return x if kind == _F64 else self.builder.fpext(x, _VECTOR)

    def store(self, x, start, i):
        place = self.builder.gep(start, [i])
        if x.type == _VECTOR:
            self.builder.store(x, self.builder.bitcast(place, _VECTOR.as_pointer()), align=8)
        else:
            self.builder.store(x, place)

    def plus(self, total, a, x):
        """``total + a x``, rounded once where the machine can."""
        return self.builder.fadd(total, self.builder.fmul(a, x, flags=_FUSE), flags=_FUSE)

    def accumulate(self, cell, a, x):
        self.builder.store(self.plus(self.builder.load(cell), a, x), cell)

    def cell(self, start):
        place = cgutils.alloca_once(self.builder, start.type)
        self.builder.store(start, place)
        return place

    def zeros(self, count):
        return [self.cell(ir.Constant(_VECTOR, [0.0] * LANES)) for _ in range(count)]

    def spread(self, x):
        """The same number in all lanes."""
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        one = self.builder.insert_element(nothing, x, _I32(0))
        return self.builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))

    def across(self, x):
        """The sum of the lanes: (0 + 2) + (1 + 3)."""
        low, high = (
            self.builder.shuffle_vector(x, x, ir.Constant(ir.VectorType(_I32, 2), pair)) for pair in ([0, 1], [2, 3])
        )
        pair = self.builder.fadd(low, high)
        return self.builder.fadd(*(self.builder.extract_element(pair, _I32(k)) for k in range(2)))

    def whole(self, n, step):
        return self.builder.and_(n, _I64(-step))

    def loop(self, start, stop, step):
        return cgutils.for_range_slice(self.builder, start, stop, _I64(step), inc=True)


@intrinsic
def dot(typing, X, line, start, v, count):
    """``sum_j X[line, start + j] v[j]`` over ``count`` numbers, in sixteen partial sums."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        _, line, start, _, count = arguments
        x, v = code.place(0, line, start), code.array(3).data
        sums = code.zeros(4)
        main, rest = code.whole(count, 4 * LANES), code.whole(count, LANES)
        with code.loop(_I64(0), main, 4 * LANES) as (j, _):
            for k, total in enumerate(sums):
                at = code.add(j, k * LANES)
                code.accumulate(total, code.vector(x, at), code.vector(v, at))
        with code.loop(main, rest, LANES) as (j, _):
            code.accumulate(sums[0], code.vector(x, j), code.vector(v, j))
        a, b, c, d = (builder.load(total) for total in sums)
        total = code.cell(code.across(builder.fadd(builder.fadd(a, b), builder.fadd(c, d))))
        with code.loop(rest, count, 1) as (j, _):
            code.accumulate(total, code.scalar(x, j), code.scalar(v, j))
        return builder.load(total)

    return types.float64(X, types.int64, types.int64, v, types.int64), codegen


def _adds(lines):
    @intrinsic
    def add(typing, X, line, start, r, i, out, count):
        """``out[j] += sum_k r[i + k] X[line + k, start + j]`` over a fixed number of lines and ``count`` numbers."""

        def codegen(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            _, line, start, _, i, _, count = arguments
            rows = [code.place(0, code.add(line, k), start) for k in range(lines)]
            factors = [code.scalar(code.array(3).data, code.add(i, k)) for k in range(lines)]
            spread = [code.spread(r) for r in factors]
            out, rest = code.array(5).data, code.whole(count, LANES)
            for load, coefficients, first, last, step in (
                (code.vector, spread, _I64(0), rest, LANES),
                (code.scalar, factors, rest, count, 1),
            ):
                with code.loop(first, last, step) as (j, _):
                    total = load(out, j)
                    for r, row in zip(coefficients, rows, strict=True):
                        total = code.plus(total, r, load(row, j))
                    code.store(total, out, j)
            return context.get_dummy_value()

        return types.none(X, types.int64, types.int64, r, types.int64, out, types.int64), codegen

    return add


add_one, add_eight = _adds(1), _adds(TOGETHER)


def _products(rows, vectors):
    """The register block of the two products of a pass with several outputs."""

    @intrinsic
    def image(typing, X, i, W, c, out):
        """``out[i + k, c:] = X[i + k] @ W[:, c:]`` for a block of rows and of outputs."""

        def codegen(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            _, i, _, c, _ = arguments
            lines = [code.place(0, code.add(i, k), _I64(0)) for k in range(rows)]
            sums = [code.zeros(vectors) for _ in lines]
            with code.loop(_I64(0), code.width(0), 1) as (j, _):
                weights = [code.vector(code.place(2, j, c), _I64(LANES * q)) for q in range(vectors)]
                for line, totals in zip(lines, sums, strict=True):
                    x = code.spread(code.scalar(line, j))
                    for w, total in zip(weights, totals, strict=True):
                        code.accumulate(total, x, w)
            for k, totals in enumerate(sums):
                for q, total in enumerate(totals):
                    code.store(builder.load(total), code.place(4, code.add(i, k), c), _I64(LANES * q))
            return context.get_dummy_value()

        return types.none(X, types.int64, W, types.int64, out), codegen

    @intrinsic
    def adjoint(typing, X, count, R, c, j, out):
        """``out[j + k, c:] += X[:count, j + k] @ R[:count, c:]`` for a block of columns and of outputs."""

        def codegen(context, builder, signature, arguments):
            code = _Code(context, builder, signature, arguments)
            _, count, _, c, j, _ = arguments
            sums = [code.zeros(vectors) for _ in range(rows)]
            with code.loop(_I64(0), count, 1) as (i, _):
                residuals = [code.vector(code.place(2, i, c), _I64(LANES * q)) for q in range(vectors)]
                for k, totals in enumerate(sums):
                    x = code.spread(code.scalar(code.place(0, i, j), _I64(k)))
                    for r, total in zip(residuals, totals, strict=True):
                        code.accumulate(total, x, r)
            for k, totals in enumerate(sums):
                out = code.place(5, code.add(j, k), c)
                for q, total in enumerate(totals):
                    at = _I64(LANES * q)
                    code.store(builder.fadd(code.vector(out, at), builder.load(total)), out, at)
            return context.get_dummy_value()

        return types.none(X, types.int64, R, types.int64, types.int64, out), codegen

    return image, adjoint


image_4x8, adjoint_4x8 = _products(4, 2)
image_1x8, adjoint_1x8 = _products(1, 2)
image_8x4, adjoint_8x4 = _products(8, 1)
image_1x4, adjoint_1x4 = _products(1, 1)


@intrinsic
def fetch(typing, X, row, begin, end):
    """Ask for the bytes from ``begin`` to ``end``, counted from the start of a row, without waiting for them."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        _, row, begin, end = arguments
        start = builder.bitcast(code.place(0, row, _I64(0)), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [start.type, _I32, _I32, _I32])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        with code.loop(begin, end, LINE_BYTES) as (byte, _):
            builder.call(ask, [builder.gep(start, [byte]), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.none(X, types.int64, types.int64, types.int64), codegen


@intrinsic
def bits(typing, x):
    """The bits of a float64 as an int64."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], _I64)

    return types.int64(types.float64), codegen


@intrinsic
def from_bits(typing, i):
    """The float64 with the bits of an int64."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], _F64)

    return types.float64(types.int64), codegen
