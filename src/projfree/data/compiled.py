"""Which passes go through the kernels of `projfree.data.kernels`, and with what arguments.

Data classes use this in a few lines::

    found = compiled(work, features, cut, nbytes)
    blocks = None if found is None else found.dense(X, offset)
    if blocks is not None:
        over_ranges(blocks, first, last, threads)
        return found.total()

Where there is none, `Pass.__call__` computes the same in NumPy, up to rounding: it is the specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import Array
from projfree.data import layout
from projfree.data.rows import FormImages, Pass, Step
from projfree.numerics.forms import Form, form_of
from projfree.numerics.sums import tree_sum
from projfree.runtime import single_blas

if TYPE_CHECKING:
    from projfree.data.blocks import Blocks

#: From this many bytes of X on, passes are compiled. Each saves 20 ms or more then; loading the kernels takes 0.3 s.
NATIVE_BYTES = 1 << 26
#: Rows of a tile at most, for one output and for several, and its bytes: a part of the second-level cache.
TILE, OUTPUTS_TILE, TILE_BYTES = 256, 64, 1 << 18
#: Rows of a tile of a Fortran-ordered or sparse table at least: the runs of memory that are read for a column.
LONG_TILE = 64
#: Points of a pass, at most.
MOST = 4
#: The types of steps that are the sums of a tangent, laid out as `projfree.data.layout` says; no subclass of them.
TANGENTS: set[type[Step]] = set()

Work = Callable[[int, int], None]


def compiled(work: Pass, features: int, cut: Blocks, nbytes: int) -> Compiled | None:
    """The pass in compiled code; None for small data, and where the step or its loss has no compiled form."""
    kind, form = type(work.step), form_of(getattr(work.step, "loss", None))
    known = kind is FormImages or (kind in TANGENTS and form is not None)
    flat = all(keep is None or keep.flags.c_contiguous for keep in work.keep)
    if nbytes < NATIVE_BYTES or not known or not flat or len(work.scale) > MOST or work.places is not None:
        return None
    return Compiled(work, form, features, cut)


class Compiled:
    """A pass in compiled code, called on ranges of blocks; sums are added up over the chunks of a table."""

    def __init__(self, work: Pass, form: Form | None, features: int, cut: Blocks) -> None:
        from projfree.data import kernels

        loss: Any = getattr(work.step, "loss", None)
        b = getattr(work.step, "b", (None,) * len(work.scale))
        k, points, nothing = math.prod(work.outputs), len(work.scale), np.empty(0)
        coupled = form is not None and loss.coupled
        self._outputs, self._rows, self._kernels, self._one = work.outputs, cut.rows, kernels, k == 1 and not coupled
        self._loss = kernels.loss_kernel(form.tile if form else kernels.no_loss)
        rows = TILE if self._one else OUTPUTS_TILE
        offsets = 0.0 if work.offsets is None else work.coefficients @ np.reshape(work.offsets, (-1, k))
        keep = [nothing if own is None else own.reshape(-1) for own in work.keep]
        self._args = kernels.Arguments(
            vectors=_read_only(np.reshape(work.vectors, (-1, features, k))),
            coefficients=_read_only(work.coefficients),
            scale=_read_only(work.scale),
            offsets=_read_only(np.tile(np.broadcast_to(offsets, (points, k)), rows)),
            b=_read_only([np.tile(np.broadcast_to(0.0 if own is None else np.ravel(own), k), rows) for own in b]),
            base=_read_only(nothing if work.base is None else np.ravel(work.base)),
            y=_read_only(np.ravel(work.y)),
            weight=_read_only(nothing if work.weight is None else work.weight),
            keep=(*keep, *[nothing] * (MOST - points)),
            outputs=k,
            targets=work.y.size // work.n,
            values=1 if coupled else k,
            uniform=1.0 / work.n,
            shifted=b[0] is not None,
            parameters=np.array(form.parameters(loss) if form else (), dtype=np.float64),
            gradients=np.zeros((cut.count, features if form else 0, k)),
            sums=np.zeros((cut.count, layout.count(k, points) if form else 0)),
        )

    def dense(self, X: Array, offset: int = 0) -> Work | None:
        """The work on a table, or on the chunk of it that begins at row ``offset``; None if it is not contiguous."""
        fortran = not X.flags.c_contiguous
        if (fortran and not X.flags.f_contiguous) or not X.flags.aligned or X.dtype not in (np.float64, np.float32):
            return None
        tile = TILE if self._one else OUTPUTS_TILE
        while tile > (LONG_TILE if fortran else 8) and tile * X.shape[1] * X.itemsize > TILE_BYTES:
            tile //= 2  # a divisor of `TILE`, so that chunks of a file can begin where a tile does
        if self._one:
            table = _read_only(X.T if fortran else X, X.dtype)
            return self._work(self._kernels.dense_rows, table, fortran, offset, self._rows, tile)
        if X.dtype == np.float64 and not fortran:
            return self._work(self._kernels.dense_outputs, _read_only(X), offset, self._rows, tile)

        def work(first: int, last: int) -> None:
            for block in range(first, last):
                start = max(block * self._rows, offset)
                part = _read_only(X[start - offset : (block + 1) * self._rows - offset])
                self._work(self._kernels.dense_outputs, part, start, self._rows, tile)(block, block + 1)

        return work

    def csr(self, values: Array, columns: Array, pointers: Array) -> Work | None:
        """The work on compressed sparse rows whose indices have been checked; None for several outputs."""
        if not self._one:
            return None
        unsigned = _read_only(columns, columns.dtype).view(f"u{columns.itemsize}")
        parts = _read_only(values, values.dtype), unsigned, _read_only(pointers, pointers.dtype)
        return self._work(self._kernels.sparse_rows, *parts, self._rows, LONG_TILE)

    def _work(self, kernel: Any, *where: Any) -> Work:
        def work(first: int, last: int) -> None:
            with single_blas(not self._one):
                kernel(*where, first, last, self._loss, self._args)

        return work

    def total(self) -> tuple[Array, Array | None]:
        """The sums over all blocks and the gradient, if the step has one; to be called once, at the end."""
        sums, gradients = self._args.sums, self._args.gradients
        if not gradients.size:
            return np.zeros(0), None
        return tree_sum(sums), tree_sum(gradients).reshape(gradients.shape[1], *self._outputs)


def _read_only(array: Any, dtype: Any = np.float64) -> Array:
    """A contiguous view, or a copy, that cannot be written to: one compiled type for all inputs."""
    view: Array = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
