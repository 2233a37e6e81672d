"""Centred and scaled features as a view: no copy of the table, and a sparse one stays sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.algebra import UNIT
from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, real_array, shown
from projfree.data.base import Data
from projfree.data.local import LocalData, TableColumns
from projfree.data.rows import Pass, WithResidualSum
from projfree.data.second_moments import Moments, RowWeights
from projfree.data.spectrum import largest_eigenvalue

if TYPE_CHECKING:
    from projfree.data.gram import Gram


class StandardizedView(Data):
    r"""The rows :math:`(x_i - m) / s` of another data set, entry by entry, wherever they are.

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
    compared with their deviation make it as large as it has to be. Construction reads the data once.
    """

    data: Data

    def __init__(self, data: Data, shift: Any, scale: Any) -> None:
        self.shift, self.scale = column_numbers("shift", shift, data), column_numbers("scale", scale, data)
        if self.scale.min() <= 0.0:
            j = int(np.argmin(self.scale))
            raise ValueError(f"`scale` must be positive, got {shown(self.scale[j])} for column {j}; use 1 to leave it.")
        self._hold(data)
        self.row_norm, self.mean_square = data.row_measures(self.shift, self.scale)
        self.feature_names, self.total_weight = data.feature_names, data.total_weight

    def _hold(self, data: Any) -> None:
        self.data, self.n, self.stored = data, data.n, data.stored

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return self.data.shape(outputs)

    def with_targets(self, convert: Callable[[Array], Array]) -> Self:
        view = copy(self)
        view._hold(self.data.with_targets(convert))
        return view

    def outputs(self, of: Callable[[Array], tuple[int, ...]]) -> tuple[int, ...]:
        return self.data.outputs(of)

    def labels(self) -> list[Array]:
        return self.data.labels()

    def mean_target(self) -> Array:
        return self.data.mean_target()

    def median_target(self) -> Array:
        return self.data.median_target()

    def divided(self, w: Array) -> Array:
        """Each row of a parameter divided by the scale of its column."""
        divided: Array = (w.T / self.scale).T
        return divided

    def raw(self, w: Array, intercept: Any = None) -> tuple[Array, Array]:
        inner = self.divided(np.asarray(w, dtype=np.float64))
        offset = np.asarray(0.0 if intercept is None else intercept) - self.shift @ inner
        return self.data.raw(inner, offset)

    def row_measures(self, shift: Array, scale: Array) -> tuple[float, float]:
        return self.data.row_measures(np.abs(self.shift) + self.scale * np.abs(shift), self.scale * scale)

    def column_deviation(self, constant: float = 1.0) -> Array:
        return self.data.column_deviation(constant) / self.scale

    def column_sizes(self) -> Array:
        # Before the difference is taken: what is rounded are the products with either.
        sizes: Array = (self.data.column_sizes() + np.abs(self.shift)) / self.scale
        return sizes

    def gram(self) -> Gram:
        return self.data.gram().standardized(self.shift, self.scale)

    def smoothness(self, *, centred: bool) -> float:
        trace = self.mean_square * (1.0 + 8.0 * UNIT * self.summation())
        return largest_eigenvalue(self.data, self.shift, self.scale, trace, centred=centred)

    def mean_row(self) -> Array:
        return (self.data.mean_row() - self.shift) / self.scale

    def centre_row(self) -> Array:
        return (self.data.centre_row() - self.shift) / self.scale

    def summation(self) -> float:
        return self.data.summation() + 4.0  # the product with the shift, the difference and the quotient

    def fingerprint(self) -> str:
        return f"{self.data.fingerprint()} {short_hash('', self.shift, self.scale)}"


class Standardized(StandardizedView, LocalData):
    """The view of rows on this machine, whose passes are those of the data underneath.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import as_data
    >>> data = as_data(np.array([[1.0, 5.0], [3.0, 5.0]]), [0.0, 1.0], centre=True, scale=True)
    >>> data.apply(np.array([1.0, 1.0])).tolist(), data.raw(np.array([2.0, 0.0]), 0.5)
    ([-1.0, 1.0], (array([2., 0.]), array(-3.5)))
    """

    data: LocalData

    def _hold(self, data: LocalData) -> None:
        super()._hold(data)
        self.y, self.weight, self.keeps_images = data.y, data.weight, data.keeps_images
        self.threads, self.nbytes = data.threads, data.nbytes

    def run(self, work: Pass) -> tuple[Array, Any]:
        scaled = tuple(self.divided(w) for w in work.vectors)
        offsets = None
        if scaled:
            offsets = np.array([-(self.shift @ w) for w in scaled])
            offsets = offsets if work.offsets is None else offsets + work.offsets
        # The sum of the residuals travels with the sums; a step that has it anyway stays as it is, and so compiled.
        step = work.step if work.step.sums_residuals else WithResidualSum(work.step)
        sums, g = self.data.run(replace(work, step=step, vectors=scaled, offsets=offsets))
        if g is None:
            return sums, None
        total = step.residual_sum(sums, work.outputs)
        sums = sums if step is work.step else sums[: len(sums) - total.size]
        return sums, self.divided(g - np.multiply.outer(self.shift, total))

    def tables(self, nbytes: int = 1 << 20) -> Iterator[tuple[slice, Any]]:
        for rows, table in self.data.tables(nbytes):
            dense = table if isinstance(table, np.ndarray) else table.toarray()
            yield rows, (dense - self.shift) / self.scale

    def subset(self, rows: Array) -> Standardized:
        part = self.alike()
        part._hold(self.data.subset(rows))
        return part

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        return self.data.sample(m, rng)

    def second_moments(self, h: RowWeights, wanted: Moments) -> Array:
        if not wanted.centred and self.shift.any():
            return super().second_moments(lambda rows, table: h(rows, table * self.scale + self.shift), wanted)
        # There is no shift, or it does not matter.
        by = np.append(wanted.among(self.scale), 1.0)
        moments: Array = self.data.second_moments(h, wanted) / by / by[:, None]
        return moments

    def feature_columns(self, features: Array, *, centred: bool) -> TableColumns | None:
        from projfree.numerics.group_l1_qp import DENSE

        found = self.data.feature_columns(features, centred=centred)
        if found is None or (found[0] != DENSE and self.shift.any() and not centred):
            return None
        kind, ptr, rows, x = found
        if kind == DENSE and not centred:
            x = x - np.repeat(self.shift[features], np.diff(ptr))
        return kind, ptr, rows, x / np.repeat(self.scale[features], np.diff(ptr))

    def image_of(self, table: Any, w: Array) -> Array:
        inner = self.divided(w)
        image: Array = self.data.image_of(table, inner) - self.shift @ inner
        return image


def column_numbers(name: str, numbers: Any, data: Data) -> Array:
    """One finite number for each column."""
    columns = data.shape(())
    if len(columns) != 1:
        raise TypeError(f"{type(data).__name__} has no features to centre or scale; leave `centre` and `scale` out.")
    out = all_finite(name, real_array(name, numbers)).astype(np.float64)
    if out.shape != columns:
        raise ValueError(f"`{name}` must have one entry for each of the {columns[0]} columns, got shape {out.shape}.")
    return out
