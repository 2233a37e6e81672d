"""Compiled passes: found by the exact types of the step and its loss, prepared once, and called on ranges of blocks.

Data classes use this in a few lines::

    compiled = native.prepare(pass_, features, block_rows, blocks)
    work = None if compiled is None else compiled.dense(X, offset)
    if work is not None:
        over_ranges(work, first, last, threads)
        return compiled.total()

`prepare` returns None where there is no compiled form, and `dense` where an array is neither C nor Fortran contiguous:
then `Pass.__call__` does the same in NumPy. A pass over several chunks calls `dense` with each of them; sums and
gradients are added up over chunks. Numba is imported when the first work is asked for, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.data import layout
from projfree.data.native.arguments import (
    F_TILE,
    IMAGE_TILE,
    LANES,
    MOST,
    MOST_OUTPUTS,
    OUTPUT_TILE,
    SPARSE_TILE,
    TILE,
    Arguments,
    build,
    outputs_of,
    read_only,
    scratch,
    tile_rows,
)
from projfree.data.rows import FormImages, Pass, Step
from projfree.numerics.forms import Form, form_of
from projfree.numerics.sums import tree_sum

Work = Callable[[int, int], None]
#: What the kernels know: nothing but images, a mean loss, slopes in the intercept, and the sums of a tangent.
KINDS = ("images", "values", "slopes", "tangent")

_STEPS: dict[type[Step], str] = {FormImages: "images"}
_KERNELS: dict[tuple[Any, ...], Any] = {}
_COMPILED: set[tuple[Any, ...]] = set()


def register_step(step: type[Step], kind: str) -> None:
    """Say that steps of exactly this type are one of `KINDS`; all but images have a ``loss`` and an intercept ``b``."""
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, got {kind!r}.")
    _STEPS[step] = kind


def prepare(pass_: Pass, features: int, block_rows: int, blocks: int) -> Prepared | None:
    """A pass over ``blocks`` blocks of ``block_rows`` rows in compiled code, or None where there is none for it."""
    kind, loss = _STEPS.get(type(pass_.step)), getattr(pass_.step, "loss", None)
    form = form_of(loss)
    if kind is None or (kind != "images" and form is None) or (kind == "slopes" and (form is None or not form.slopes)):
        return None
    few = len(pass_.scale) <= MOST and pass_.coefficients.shape[1] <= MOST and outputs_of(pass_) <= MOST_OUTPUTS
    flat = all(store is None or store.flags.c_contiguous for store in pass_.keep)
    arrays = all(isinstance(vector, np.ndarray) for vector in pass_.vectors)
    if not (few and flat and arrays) or len(pass_.outputs) > 1 or pass_.places is not None:
        return None
    return Prepared(pass_, kind, form, features, block_rows, blocks)


class Prepared:
    """One pass in compiled code; made by `prepare`."""

    def __init__(self, pass_: Pass, kind: str, form: Form | None, features: int, block_rows: int, blocks: int) -> None:
        loss = getattr(pass_.step, "loss", None)
        self._pass, self._kind, self._form, self._features, self._rows = pass_, kind, form, features, block_rows
        self._coupled = bool(loss is not None and loss.coupled)
        self._labelled = self._coupled and pass_.y.ndim == 1
        k, p = outputs_of(pass_), len(pass_.scale)
        self._one = k == 1 and not self._coupled
        self._padded = padded = 1 if self._one else -(-k // LANES) * LANES
        b = getattr(pass_.step, "b", ())
        sums = {"images": 0, "values": 1, "slopes": 3 * k, "tangent": layout.count(k, p)}[kind]
        self._args: Arguments = build(
            pass_,
            features,
            padded,
            b if isinstance(b, tuple) else (b,),
            () if form is None else form.parameters(loss),
            self._labelled,
            np.zeros((blocks, features * padded if kind == "tangent" else 0)),
            np.zeros((blocks, sums)),
        )

    def dense(self, X: Array, offset: int = 0) -> Work | None:
        """The work on a table, or on the chunk of it that begins at row ``offset``."""
        fortran = not X.flags.c_contiguous
        if (fortran and not X.flags.f_contiguous) or not X.flags.aligned or X.dtype not in (np.float64, np.float32):
            return None
        lines = read_only(X.T if fortran else X, X.dtype)
        if self._one:
            limits = (F_TILE, 64) if fortran else (TILE, 8)
            tile = tile_rows(*limits, self._features * X.itemsize)
            return self._work("f_blocks" if fortran else "c_blocks", tile, lines, offset)
        tile = tile_rows(OUTPUT_TILE, 8, 8 * self._features)
        direct = not fortran and X.dtype == np.float64
        return self._work("direct_blocks" if direct else "output_blocks", tile, lines, fortran, offset)

    def csr(self, values: Array, columns: Array, pointers: Array, offset: int = 0) -> Work | None:
        """The work on compressed sparse rows whose indices have been checked; None for several outputs."""
        if not self._one:
            return None
        unsigned = read_only(columns, columns.dtype).view(f"u{columns.itemsize}")
        parts = read_only(values, values.dtype), unsigned, read_only(pointers, np.uint64)
        return self._work("csr_blocks", SPARSE_TILE, *parts, offset)

    def fold(self, images: Sequence[Array] = ()) -> Work | None:
        """The work on known images, given in the place of vectors; None for a tangent, which needs the data."""
        if self._kind == "tangent":
            return None
        flat = tuple(read_only(image).reshape(-1) for image in images)
        self._args = self._args._replace(images=flat + self._args.images[len(flat) :])
        return self._work("fold_blocks", max(16, IMAGE_TILE // outputs_of(self._pass)), self._pass.n)

    def total(self) -> tuple[Array, Array | None]:
        """The sums over all blocks, and the gradient if the step has one; to be called once, at the end."""
        sums, outputs = tree_sum(self._args.sums), self._pass.outputs
        if self._kind != "tangent":
            return sums, None
        gradient = tree_sum(self._args.gradients).reshape(self._features, -1)[:, : outputs_of(self._pass)]
        return sums, gradient.reshape(self._features, *outputs)

    def _work(self, factory: str, tile: int, *where: Any) -> Work:
        loss, several = type(getattr(self._pass.step, "loss", None)), outputs_of(self._pass) > 1
        kernel = _kernel(factory, self._kind, loss, self._form, several, self._coupled, self._labelled)

        def work(first: int, last: int) -> None:
            kernel(*where, self._rows, tile, first, last, self._scratch(factory, tile), self._args)

        signature = (kernel, *(part.dtype for part in where if isinstance(part, np.ndarray)))
        if signature not in _COMPILED:  # here, and not in several threads at once
            work(0, 0)
            _COMPILED.add(signature)
        return work

    def _scratch(self, factory: str, rows: int) -> tuple[Array, ...]:
        if factory not in ("output_blocks", "direct_blocks"):
            return scratch(self._args, rows)
        padded = (rows, self._padded)
        return *scratch(self._args, rows), np.empty((rows, self._features)), np.empty(padded), np.zeros(padded)


def _kernel(factory: str, kind: str, loss: type, form: Form | None, *flags: bool) -> Any:
    key = (factory, kind, loss, form, *flags)
    if key not in _KERNELS:
        from projfree.data.native.kernels import specialised

        _KERNELS[key] = specialised(factory, kind, form, *flags)
    return _KERNELS[key]
