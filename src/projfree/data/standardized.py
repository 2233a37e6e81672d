"""Centred and scaled features as a view: no copy of the table, and a sparse one stays sparse."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import UNIT
from projfree.checks import Array, all_finite, real_array, shown
from projfree.data.base import Data, Kernel
from projfree.data.moments import row_measures
from projfree.data.spectrum import largest_eigenvalue

if TYPE_CHECKING:
    from projfree.data.curvature import RowWeights
    from projfree.data.gram import Gram


class Standardized(Data):
    r"""The rows :math:`(x_i - m) / s` of another data set, entry by entry.

    .. math:: A' w = A (w / s) - \langle m, w / s\rangle, \qquad A'^T r = (A^T r - m \textstyle\sum_i r_i) / s .

    Parameters
    ----------
    data : Data
        Any table.
    shift, scale : array of shape (d,)
        Numbers m and s > 0; a radius is then one on the coefficients of the scaled features.

    Notes
    -----
    ``row_norm`` and ``mean_square`` are those of :math:`(|x_i| + |m|) / s`: they bound the rows and also the terms that
    cancel in the adjoint, so that the rounding allowance of a certificate stays true. Columns whose mean is large
    beside their deviation make it as large as it has to be. Construction reads the data once.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> data = as_data(np.array([[1.0, 5.0], [3.0, 5.0]]), [0.0, 1.0], centre=True, scale=True)
    >>> data.apply(np.array([1.0, 1.0])).tolist(), data.raw(np.array([2.0, 0.0]), 0.5)
    ([-1.0, 1.0], (array([2., 0.]), array(-3.5)))
    """

    def __init__(self, data: Data, shift: Any, scale: Any) -> None:
        self.shift, self.scale = column_numbers("shift", shift, data), column_numbers("scale", scale, data)
        if self.scale.min() <= 0.0:
            j = int(np.argmin(self.scale))
            raise ValueError(f"`scale` must be positive, got {shown(self.scale[j])} for column {j}; use 1 to leave it.")
        self._hold(data)
        self.row_norm, self.mean_square = row_measures(data, self.shift, self.scale)
        self.feature_names, self.total_weight = data.feature_names, data.total_weight

    def _hold(self, data: Data) -> None:
        self.data, self.n, self.y, self.weight, self.meter = data, data.n, data.y, data.weight, data.meter
        self.threads, self.nbytes, self.stored = getattr(data, "threads", 1), data.nbytes, data.stored

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self.data.shape(outputs)

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Any]]:
        for rows, table in self.data.tables(nbytes):
            dense = table if isinstance(table, np.ndarray) else table.toarray()
            yield rows, (dense - self.shift) / self.scale

    def accumulate(self, vectors: Sequence[Array], kernel: Kernel) -> tuple[Array, Array | None]:
        scaled = [self._divided(w) for w in vectors]
        offsets = np.array([-(self.shift @ w) for w in scaled])
        if hasattr(kernel, "residual_sum"):
            sums, g, total = self._fields(scaled, offsets, kernel)
        else:
            sums, g, total = self._wrapped(scaled, offsets, kernel)
        return sums, None if g is None else self._divided(g - np.multiply.outer(self.shift, total))

    def _fields(self, scaled: list[Array], offsets: Array, kernel: Any) -> tuple[Array, Array | None, Array]:
        """A kernel that knows of offsets and sums its residuals anyway: compiled passes stay compiled."""
        if len(scaled):
            kernel = replace(kernel, offsets=offsets if kernel.offsets is None else kernel.offsets + offsets)
        sums, g = self.data.accumulate(scaled, kernel)
        return sums, g, np.zeros(()) if g is None else kernel.residual_sum(sums)

    def _wrapped(self, scaled: list[Array], offsets: Array, kernel: Kernel) -> tuple[Array, Array | None, Array]:
        """Any other kernel: the sum of its residuals travels behind its own sums."""
        shapes: list[tuple[int, ...]] = [(), ()]

        def shifted(rows: slice, *images: Array) -> tuple[Array | None, Array]:
            residual, sums = kernel(rows, *(u + c for u, c in zip(images, offsets, strict=True)))
            total = np.zeros(0) if residual is None else residual.sum(axis=0)
            shapes[:] = np.shape(sums), total.shape
            return residual, np.concatenate([np.ravel(sums), np.ravel(total)])

        packed, g = self.data.accumulate(scaled, shifted)
        own = int(np.prod(shapes[0]))
        return packed[:own].reshape(shapes[0]), g, packed[own:].reshape(shapes[1])

    def _divided(self, w: Array) -> Array:
        divided: Array = (w.T / self.scale).T
        return divided

    def raw(self, w: Array, intercept: Any = None) -> tuple[Array, Array]:
        inner = self._divided(np.asarray(w, dtype=np.float64))
        offset = np.asarray(0.0 if intercept is None else intercept) - self.shift @ inner
        return self.data.raw(inner, offset)

    def subset(self, rows: Array) -> Standardized:
        part = object.__new__(Standardized)
        part.shift, part.scale, part.row_norm, part.mean_square = (
            self.shift,
            self.scale,
            self.row_norm,
            self.mean_square,
        )
        part._hold(self.data.subset(rows))
        return part

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        return self.data.sample(m, rng)

    def column_sizes(self) -> Array:
        # Before the difference is taken: what is rounded are the products with either.
        sizes: Array = (self.data.column_sizes() + np.abs(self.shift)) / self.scale
        return sizes

    def gram(self) -> Gram:
        return self.data.gram().standardized(self.shift, self.scale)

    def second_moments(self, h: RowWeights, *, centred: bool) -> Array:
        if not centred:
            return super().second_moments(h, centred=False)
        by = np.append(self.scale, 1.0)  # the shift does not matter
        moments: Array = self.data.second_moments(h, centred=True) / by / by[:, None]
        return moments

    def smoothness(self, *, centred: bool) -> float:
        trace = self.mean_square * (1.0 + 8.0 * UNIT * self.summation())
        return largest_eigenvalue(self.data, self.shift, self.scale, trace, centred=centred)

    def mean_row(self) -> Array:
        return (self.data.mean_row() - self.shift) / self.scale

    def summation(self) -> float:
        return self.data.summation() + 4.0  # the product with the shift, the difference and the quotient

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.shift.tobytes() + self.scale.tobytes())
        return f"{self.data.fingerprint()} {digest.hexdigest()[:16]}"


def column_numbers(name: str, numbers: Any, data: Data) -> Array:
    """One finite number for each column."""
    columns = data.shape(())
    if len(columns) != 1:
        raise TypeError(f"{type(data).__name__} has no features to centre or scale; leave `centre` and `scale` out.")
    out = all_finite(name, real_array(name, numbers)).astype(np.float64)
    if out.shape != columns:
        raise ValueError(f"`{name}` must have one entry for each of the {columns[0]} columns, got shape {out.shape}.")
    return out
