"""Sums over images that are known, of one or several outputs, without reading data and without temporaries."""

from __future__ import annotations

from projfree.data.native.tiles import finish


def fold_blocks(tile, tangent, slopes, several, coupled, labels, key):
    """Blocks of ``rows`` of ``n`` rows, where ``args.images`` stand for the images of vectors."""

    def blocks(n, rows, most, first_block, last_block, scratch, args):
        _ = key
        (formed, space), k = scratch, args.b.shape[1]
        for block in range(first_block, last_block):
            stop = min((block + 1) * rows, n)
            for first in range(block * rows, stop, most):
                count = min(most, stop - first)
                for q in range(len(formed)):
                    image = args.images[q]
                    for i in range(count * k):
                        formed[q, i] = image[first * k + i]
                finish(tile, tangent, slopes, several, coupled, labels, args, block, first, count, formed, space)

    return blocks
