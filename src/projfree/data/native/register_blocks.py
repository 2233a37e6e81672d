"""Both products of a tile with several outputs, in blocks that stay in registers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from projfree.data.native.arguments import LANES
from projfree.data.native.registers import I32, I64, Code

#: Bytes that come from memory together.
LINE_BYTES = 64


def _products(rows, vectors):
    """The register block of the two products of a pass with several outputs."""

    @intrinsic
    def image(typing, X, i, W, c, out):
        """``out[i + k, c:] = X[i + k] @ W[:, c:]`` for a block of rows and of outputs."""

        def codegen(context, builder, signature, arguments):
            code = Code(context, builder, signature, arguments)
            _, i, _, c, _ = arguments
            lines = [code.place(0, code.add(i, k), I64(0)) for k in range(rows)]
            sums = [code.zeros(vectors) for _ in lines]
            with code.loop(I64(0), code.width(0), 1) as (j, _):
                weights = [code.vector(code.place(2, j, c), I64(LANES * q)) for q in range(vectors)]
                for line, totals in zip(lines, sums, strict=True):
                    x = code.spread(code.scalar(line, j))
                    for w, total in zip(weights, totals, strict=True):
                        code.accumulate(total, x, w)
            for k, totals in enumerate(sums):
                for q, total in enumerate(totals):
                    code.store(builder.load(total), code.place(4, code.add(i, k), c), I64(LANES * q))
            return context.get_dummy_value()

        return types.none(X, types.int64, W, types.int64, out), codegen

    @intrinsic
    def adjoint(typing, X, count, R, c, j, out):
        """``out[j + k, c:] += X[:count, j + k] @ R[:count, c:]`` for a block of columns and of outputs."""

        def codegen(context, builder, signature, arguments):
            code = Code(context, builder, signature, arguments)
            _, count, _, c, j, _ = arguments
            sums = [code.zeros(vectors) for _ in range(rows)]
            with code.loop(I64(0), count, 1) as (i, _):
                residuals = [code.vector(code.place(2, i, c), I64(LANES * q)) for q in range(vectors)]
                for k, totals in enumerate(sums):
                    x = code.spread(code.scalar(code.place(0, i, j), I64(k)))
                    for r, total in zip(residuals, totals, strict=True):
                        code.accumulate(total, x, r)
            for k, totals in enumerate(sums):
                out = code.place(5, code.add(j, k), c)
                for q, total in enumerate(totals):
                    at = I64(LANES * q)
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
        code = Code(context, builder, signature, arguments)
        _, row, begin, end = arguments
        start = builder.bitcast(code.place(0, row, I64(0)), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [start.type, I32, I32, I32])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        with code.loop(begin, end, LINE_BYTES) as (byte, _):
            builder.call(ask, [builder.gep(start, [byte]), I32(0), I32(3), I32(1)])
        return context.get_dummy_value()

    return types.none(X, types.int64, types.int64, types.int64), codegen
