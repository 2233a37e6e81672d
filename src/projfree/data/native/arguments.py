"""What every compiled pass is given: one named tuple whose members always have the same types."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from projfree.checks import Array
from projfree.data.rows import Pass

#: Points of a pass, and known images that are mixed, at most.
MOST = 4
#: Numbers in a vector register, as the kernels are written.
LANES = 4
#: Tables with more outputs go through BLAS, which is as good there.
MOST_OUTPUTS = 20
#: Rows of a tile of a C-ordered and of a Fortran-ordered table, at most. Both are halved for wide tables, down to eight
#: and 64, so that chunks of a file that begin at a multiple of them begin where a tile does.
TILE, F_TILE = 256, 512
#: Rows of a tile of a sparse table, of a table with several outputs, and of known images with one output. Larger ones
#: spread what is done once a tile over more rows, but must stay in the second cache together with their residuals.
SPARSE_TILE, OUTPUT_TILE, IMAGE_TILE = 32, 64, 256
#: Bytes of a tile, at most.
CACHE = 400_000
#: Rows of a tile's ``space``: residuals of the first point, derivatives of others, losses, images, images with their
#: intercept, weights of entries, and three to be added up by output.
RESIDUAL, DERIVATIVE, LOSSES, IMAGE, FULL, WEIGHT, BY_OUTPUT = range(7)
SPACE = 9


class Arguments(NamedTuple):
    """A pass with p points, m vectors, d features and k outputs, padded to q columns; see `Pass`.

    What has an entry a row is flat. What a pass does not have is an empty array, because a compiler cannot ask whether
    a member is None. Inputs are read-only, so that one type serves data that are and data that are not.

    Attributes
    ----------
    vectors : ndarray of shape (m, d q)
    coefficients : ndarray of shape (p, m)
    offsets : ndarray of shape (m, k)
    base : ndarray of shape (1, n k), or (1, 0) where there is none
    scale : ndarray of shape (p,)
    images : tuple of `MOST` arrays
        In place of vectors where no data are read: m known images of n k numbers.
    keep : tuple of `MOST` arrays
        Where the images of points are written; empty where they are not kept.
    y : ndarray of n k numbers, or empty where there are labels
    labels : ndarray of n integers, or empty
    weight : ndarray of n numbers, or empty
    uniform : float
        The weight of each row where there are none.
    b : ndarray of shape (p, k)
        Intercepts, zero where there are none.
    shifted : ndarray of shape (p,)
        Whether there are.
    parameters : ndarray
        Of the loss.
    gradients : ndarray of shape (blocks, d q)
    sums : ndarray of shape (blocks, ...)
    """

    vectors: Array
    coefficients: Array
    offsets: Array
    base: Array
    scale: Array
    images: tuple[Array, ...]
    keep: tuple[Array, ...]
    y: Array
    labels: Array
    weight: Array
    uniform: float
    b: Array
    shifted: Array
    parameters: Array
    gradients: Array
    sums: Array


def build(
    pass_: Pass,
    features: int,
    padded: int,
    intercepts: tuple[Array | None, ...],
    parameters: tuple[float, ...],
    labelled: bool,
    gradients: Array,
    sums: Array,
) -> Arguments:
    """The arguments of a pass, where ``labelled`` says whether its targets are labels."""
    k, m, p = outputs_of(pass_), pass_.coefficients.shape[1], len(pass_.scale)
    b = np.zeros((p, k))
    for j, own in enumerate(intercepts):
        b[j] = 0.0 if own is None else np.ravel(own)
    shifted = np.zeros(p, bool)
    shifted[: len(intercepts)] = [own is not None for own in intercepts]
    offsets = np.zeros((m, k)) if pass_.offsets is None else np.reshape(pass_.offsets, (m, k))
    nothing, labels = np.empty(0), np.empty(0, np.intp)
    return Arguments(
        vectors=read_only(_stacked(pass_.vectors, features, k, padded)),
        coefficients=read_only(np.reshape(pass_.coefficients, (p, m))),
        offsets=read_only(offsets),
        base=read_only(_flat(pass_.base).reshape(1, -1)),
        scale=read_only(pass_.scale),
        images=(read_only(nothing),) * MOST,
        keep=tuple(_store(own) for own in pass_.keep) + (nothing,) * (MOST - p),
        y=read_only(nothing if labelled else _flat(pass_.y)),
        labels=read_only(pass_.y if labelled else labels, np.intp),
        weight=read_only(_flat(pass_.weight)),
        uniform=1.0 / pass_.n,
        b=b,
        shifted=shifted,
        parameters=np.array(parameters, dtype=np.float64),
        gradients=gradients,
        sums=sums,
    )


def tile_rows(most: int, least: int, row_bytes: int) -> int:
    """Rows of a tile; a divisor of ``most``, so that chunks of a file can begin where a tile does."""
    rows = most
    while rows > least and rows * row_bytes > CACHE:
        rows //= 2
    return rows


def scratch(args: Arguments, rows: int) -> tuple[Array, Array]:
    """The images of the vectors on a tile, and its ``space``; each thread needs its own."""
    # Each line begins where a cache line does; lines a multiple of 4096 bytes apart would wait for each other.
    entries = -(-rows * args.b.shape[1] // 8) * 8 + 8
    m = args.coefficients.shape[1]
    memory = np.empty((m + SPACE) * entries + 8)
    first = -memory.__array_interface__["data"][0] % 64 // 8
    lines = memory[first : first + (m + SPACE) * entries].reshape(m + SPACE, entries)
    lines[WEIGHT] = args.uniform
    return lines[SPACE:], lines[:SPACE]


def outputs_of(pass_: Pass) -> int:
    """The number of outputs; one for vectors."""
    return pass_.outputs[0] if pass_.outputs else 1


def read_only(array: Any, dtype: Any = np.float64) -> Array:
    """A contiguous view, or a copy where there is none, that cannot be written to."""
    view: Array = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _flat(array: Array | None) -> Array:
    return np.empty(0) if array is None else np.ascontiguousarray(array, dtype=np.float64).reshape(-1)


def _store(array: Array | None) -> Array:
    return np.empty(0) if array is None else array.reshape(-1)


def _stacked(vectors: tuple[Any, ...], d: int, k: int, padded: int) -> Array:
    """The vectors one below the other, columns padded with zeros."""
    stacked = np.zeros((len(vectors), d, padded))
    for place, w in zip(stacked, vectors, strict=True):
        place[:, :k] = np.reshape(w, (d, k))
    return stacked.reshape(len(vectors), d * padded)
