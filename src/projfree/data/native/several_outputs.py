"""Several outputs: both products of a tile in blocks of registers.

A tile of rows that is not float64 in C order is copied as such first; that costs a tenth of the products and makes one
kernel serve all such tables. Outputs are padded with zeros to a multiple of the vector length.
"""

from __future__ import annotations

from projfree.data.native.arguments import RESIDUAL
from projfree.data.native.compiling import exact
from projfree.data.native.register_blocks import (
    adjoint_1x4,
    adjoint_1x8,
    adjoint_4x8,
    adjoint_8x4,
    fetch,
    image_1x4,
    image_1x8,
    image_4x8,
    image_8x4,
)
from projfree.data.native.tiles import finish


@exact
def _images(X, count, W, out, table, ahead, share):
    """``out = X @ W`` for ``count`` rows; W has a multiple of four columns.

    Meanwhile ``share`` bytes of the table from row ``ahead`` on are fetched, a part with each block of rows.
    """
    k = W.shape[1]
    wide, four, eight = k - k % 8, count - count % 4, count - count % 8
    for c in range(0, wide, 8):
        for i in range(0, four, 4):
            if c == 0:
                fetch(table, ahead, share * i // count, share * (i + 4) // count)
            image_4x8(X, i, W, c, out)
        for i in range(four, count):
            image_1x8(X, i, W, c, out)
    if wide < k:
        for i in range(0, eight, 8):
            if wide == 0:
                fetch(table, ahead, share * i // count, share * (i + 8) // count)
            image_8x4(X, i, W, wide, out)
        for i in range(eight, count):
            image_1x4(X, i, W, wide, out)


@exact
def _adjoint(X, count, R, out, table, ahead, share):
    """``out += X.T @ R`` for ``count`` rows; meanwhile as many bytes are fetched again, behind those of `_images`."""
    k, d = R.shape[1], X.shape[1]
    wide, four, eight = k - k % 8, d - d % 4, d - d % 8
    for c in range(0, wide, 8):
        for j in range(0, four, 4):
            if c == 0:
                fetch(table, ahead, share + share * j // d, share + share * (j + 4) // d)
            adjoint_4x8(X, count, R, c, j, out)
        for j in range(four, d):
            adjoint_1x8(X, count, R, c, j, out)
    if wide < k:
        for j in range(0, eight, 8):
            if wide == 0:
                fetch(table, ahead, share + share * j // d, share + share * (j + 8) // d)
            adjoint_8x4(X, count, R, wide, j, out)
        for j in range(eight, d):
            adjoint_1x4(X, count, R, wide, j, out)


@exact
def _unpad(pads, k, count, out):
    """The padded images of a tile as rows of k numbers that follow one another."""
    if pads.shape[1] == k:
        flat = pads.reshape(-1)
        for i in range(count * k):
            out[i] = flat[i]
        return
    for i in range(count):
        for c in range(k):
            out[i * k + c] = pads[i, c]


@exact
def _pad(residual, k, count, R):
    """The inverse of `_unpad`; what is padded stays zero."""
    if R.shape[1] == k:
        flat = R.reshape(-1)
        for i in range(count * k):
            flat[i] = residual[i]
        return
    for i in range(count):
        for c in range(k):
            R[i, c] = residual[i * k + c]


def output_blocks(tile, tangent, slopes, several, coupled, labels, key):
    """`c_blocks` for several outputs, of a C-ordered array or the transpose of a Fortran-ordered one."""
    return _blocks(True, tile, tangent, slopes, several, coupled, labels, key)


def direct_blocks(tile, tangent, slopes, several, coupled, labels, key):
    """`output_blocks` for a C-ordered float64 array, whose tiles need not be copied."""
    return _blocks(None, tile, tangent, slopes, several, coupled, labels, key)


def _blocks(copied, tile, tangent, slopes, several, coupled, labels, key):
    def blocks(X, fortran, offset, rows, most, first_block, last_block, scratch, args):
        _ = key
        (formed, space, copy, pads, R), k = scratch, args.b.shape[1]
        d, padded = copy.shape[1], pads.shape[1]
        n = X.shape[1] if fortran else X.shape[0]
        end = offset + n
        for block in range(first_block, last_block):
            stop = min((block + 1) * rows, end)
            for first in range(max(block * rows, offset), stop, most):
                count, line = min(most, stop - first), first - offset
                if copied is None:
                    part = X[line : line + count]
                else:
                    part = copy
                    if fortran:
                        for j in range(d):
                            for i in range(count):
                                copy[i, j] = X[j, line + i]
                    else:
                        for i in range(count):
                            for j in range(d):
                                copy[i, j] = X[line + i, j]
                # Arithmetic is all there is to wait for here, so let the next tile come meanwhile.
                ahead = line + most
                share = 0 if fortran or ahead + most > n else most * d * X.itemsize // 2
                for q in range(len(formed)):
                    W = args.vectors[q].reshape((d, padded))
                    _images(part, count, W, pads, X, ahead, share if q == 0 else 0)
                    _unpad(pads, k, count, formed[q])
                finish(tile, tangent, slopes, several, coupled, labels, args, block, first, count, formed, space)
                if tangent is not None:
                    _pad(space[RESIDUAL], k, count, R)
                    _adjoint(part, count, R, args.gradients[block].reshape((d, padded)), X, ahead, share)

    return blocks
