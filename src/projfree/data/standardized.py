"""Centred and scaled features as a view: no copy of the table, and a sparse one stays sparse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, real_array, shown
from projfree.data.base import Data
from projfree.data.column_stats import ColumnStats
from projfree.data.gram import Gram, Moments, RowWeights
from projfree.data.local import LocalData, TransformedData
from projfree.data.rows import SCALARS, SLOPE, TANGENTS, TILE_BYTES, Pass, WithResidualSum

#: Roundings of the product with the shift, of the difference and of the quotient in sums of scaled features.
SCALING_UNITS = 4.0


class Standardized(TransformedData):
    r"""The rows :math:`(x_i - m) / s` of another data set, entry by entry.

    .. math:: A' w = A (w / s) - \langle m, w / s\rangle, \qquad A'^T r = (A^T r - m \textstyle\sum_i r_i) / s .

    Passes are those of the data underneath, and `column_stats` bound the terms that cancel, see `ColumnStats.scaled`:
    columns whose mean is large compared with their deviation make rounding allowances as large as they have to be.

    Parameters
    ----------
    data : LocalData
        Any table.
    shift, scale : array of shape (d,)
        Numbers m and s > 0; a radius is then one on the coefficients of the scaled features.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> data = as_data(np.array([[1.0, 5.0], [3.0, 5.0]]), [0.0, 1.0], centre=True, scale=True)
    >>> data.apply(np.array([1.0, 1.0])).tolist(), data.column_stats.raw(np.array([2.0, 0.0]), 0.5)
    ([-1.0, 1.0], (array([2., 0.]), np.float64(-3.5)))
    """

    def __init__(self, data: LocalData, shift: Any, scale: Any) -> None:
        self.shift, self.scale = checked_scaling(data, shift, scale)
        self.feature_names = data.feature_names
        self._hold(data)

    def _hold(self, data: LocalData, *, measured: bool = True) -> Self:
        super()._hold(data, measured=measured)
        self.rounding_units += SCALING_UNITS
        return self

    def _stats(self) -> ColumnStats:
        return self.data.column_stats.scaled(self.shift, self.scale)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self.data.shape(outputs)

    def divided(self, w: Array) -> Array:
        """Each row of a parameter divided by the scale of its column."""
        divided: Array = (w.T / self.scale).T
        return divided

    def run(self, work: Pass) -> tuple[Array, Any]:
        scaled = tuple(self.divided(w) for w in work.vectors)
        offsets = None
        if scaled:
            offsets = np.array([-(self.shift @ w) for w in scaled])
            offsets = offsets if work.offsets is None else offsets + work.offsets
        # The sum of the residuals travels with the sums; those of a tangent have it anyway, and stay compiled.
        k, tangent = math.prod(work.outputs), type(work.step) in TANGENTS
        step = work.step if tangent else WithResidualSum(work.step)
        sums, g = self.data.run(replace(work, step=step, vectors=scaled, offsets=offsets))
        if g is None:
            return sums, None
        first = SCALARS + SLOPE * k if tangent else len(sums) - k
        total = sums[first : first + k].reshape(work.outputs)
        return sums if tangent else sums[:first], self.divided(g - np.multiply.outer(self.shift, total))

    def tables(self, nbytes: int = TILE_BYTES) -> Iterator[tuple[slice, Any]]:
        for rows, table in self.data.tables(nbytes):
            dense = table if isinstance(table, np.ndarray) else table.toarray()
            yield rows, (dense - self.shift) / self.scale

    def gram(self) -> Gram:
        return self.data.gram().standardized(self.shift, self.scale)

    def second_moments(self, h: RowWeights, wanted: Moments) -> Array:
        if not wanted.centred and self.shift.any():
            return super().second_moments(lambda rows, table: h(rows, table * self.scale + self.shift), wanted)
        # There is no shift, or it does not matter.
        by = np.append(wanted.among(self.scale), 1.0)
        moments: Array = self.data.second_moments(h, wanted) / by / by[:, None]
        return moments

    def columns(self, features: Array | slice, *, centred: bool) -> Any:
        found = self.data.columns(features, centred=centred)
        if isinstance(found, np.ndarray):
            return (found - (0.0 if centred else self.shift[features])) / self.scale[features]
        if found is None or (self.shift.any() and not centred):
            return None
        found.data /= np.repeat(self.scale[features], np.diff(found.indptr))  # they are a copy
        return found

    def image_of(self, table: Any, w: Array) -> Array:
        inner = self.divided(w)
        image: Array = self.data.image_of(table, inner) - self.shift @ inner
        return image

    def fingerprint(self) -> str:
        return f"{self.data.fingerprint()} {short_hash('', self.shift, self.scale)}"


def checked_scaling(data: Data, shift: Any, scale: Any) -> tuple[Array, Array]:
    """One finite number for each column to subtract, and a positive one to divide by."""
    shift, scale = column_numbers("shift", shift, data), column_numbers("scale", scale, data)
    if scale.min() <= 0.0:
        j = int(np.argmin(scale))
        raise ValueError(f"`scale` must be positive, got {shown(scale[j])} for column {j}; use 1 to leave it.")
    return shift, scale


def column_numbers(name: str, numbers: Any, data: Data) -> Array:
    """One finite number for each column."""
    columns = data.shape(())
    if len(columns) != 1:
        raise TypeError(f"{type(data).__name__} has no features to centre or scale; leave `centre` and `scale` out.")
    out = all_finite(name, real_array(name, numbers)).astype(np.float64)
    if out.shape != columns:
        raise ValueError(f"`{name}` must have one entry for each of the {columns[0]} columns, got shape {out.shape}.")
    return out
