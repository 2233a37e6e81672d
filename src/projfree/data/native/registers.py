"""Vectors of numbers in registers: what the loops at the heart of a pass are written in.

They are given to LLVM as operations on vectors of four numbers, which it maps to whatever the machine has. Left to the
compiler's own vectorisation, rows of 90 numbers spend a third of their time in scalar remainders, and register blocking
for several outputs does not happen at all. All sums are float64; float32 tables are widened as they are loaded. A line
is a row of a C-ordered table or a column of a Fortran-ordered one.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from projfree.data.native.arguments import LANES

F64, I64, I32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
VECTOR = ir.VectorType(F64, LANES)
FUSE = ("contract",)


class Code:
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
        return self.builder.add(i, I64(step) if isinstance(step, int) else step)

    def scalar(self, start, i):
        x = self.builder.load(self.builder.gep(start, [i]))
        return x if x.type == F64 else self.builder.fpext(x, F64)

    def vector(self, start, i):
        kind = start.type.pointee
        place = self.builder.bitcast(self.builder.gep(start, [i]), ir.VectorType(kind, LANES).as_pointer())
        x = self.builder.load(place, align=8 if kind == F64 else 4)
        return x if kind == F64 else self.builder.fpext(x, VECTOR)

    def store(self, x, start, i):
        place = self.builder.gep(start, [i])
        if x.type == VECTOR:
            self.builder.store(x, self.builder.bitcast(place, VECTOR.as_pointer()), align=8)
        else:
            self.builder.store(x, place)

    def plus(self, total, a, x):
        """``total + a x``, rounded once where the machine can."""
        return self.builder.fadd(total, self.builder.fmul(a, x, flags=FUSE), flags=FUSE)

    def accumulate(self, cell, a, x):
        self.builder.store(self.plus(self.builder.load(cell), a, x), cell)

    def cell(self, start):
        place = cgutils.alloca_once(self.builder, start.type)
        self.builder.store(start, place)
        return place

    def zeros(self, count):
        return [self.cell(ir.Constant(VECTOR, [0.0] * LANES)) for _ in range(count)]

    def spread(self, x):
        """The same number in all lanes."""
        nothing = ir.Constant(VECTOR, ir.Undefined)
        one = self.builder.insert_element(nothing, x, I32(0))
        return self.builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))

    def across(self, x):
        """The sum of the lanes: (0 + 2) + (1 + 3)."""
        low, high = (
            self.builder.shuffle_vector(x, x, ir.Constant(ir.VectorType(I32, 2), pair)) for pair in ([0, 1], [2, 3])
        )
        pair = self.builder.fadd(low, high)
        return self.builder.fadd(*(self.builder.extract_element(pair, I32(k)) for k in range(2)))

    def whole(self, n, step):
        return self.builder.and_(n, I64(-step))

    def loop(self, start, stop, step):
        return cgutils.for_range_slice(self.builder, start, stop, I64(step), inc=True)
