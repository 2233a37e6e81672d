"""Data whose rows lie in the memory or on the disks of this machine, read block by block."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array, all_finite, real_array, shown
from projfree.data.base import Data, Fold
from projfree.data.column_stats import ColumnStats
from projfree.data.gram import LEAST_WEIGHT, Gram, Moments, RowWeights, weighted_products
from projfree.data.rows import TILE_BYTES, AsResidual, FormImages, Pass, Rows
from projfree.data.workspace import LocalWorkspace, Workspace
from projfree.runtime import single_blas_thread


class LocalData(Data):
    r"""Data that a pass reads here; a backend has `run`, `take`, `tables`, `shape` and `rounding_units`.

    Standardised features :math:`(x_i - m) / s` are the same table with a ``scaling``, so that nothing is copied, and a
    sparse table stays sparse:

    .. math:: A' w = A (w / s) - \langle m, w / s\rangle, \qquad A'^T r = (A^T r - m \textstyle\sum_i r_i) / s .

    Targets ``y`` have one row each, and normalised weights are None where all are ``1 / n``. A ``scaling`` is what is
    subtracted from the columns of the table, and what they are divided by then. A pass reads ``nbytes``, 0 where no
    compiled kernel does, and may use so many ``threads``. A workspace keeps the images that a sweep forms where that is
    cheaper than to form them anew (``keeps_images``). Observed entries of a matrix have ``places``, rows and columns,
    and an adjoint that only puts residuals there reads nothing (``adjoint_reads``). A sample takes ``sample_run``
    neighbouring rows at a time, one where single rows are cheap to read.
    """

    scaling: tuple[Array, Array] | None = None
    sample_run: int = 1
    nbytes: int = 0
    threads: int = 1
    keeps_images: bool = False
    adjoint_reads: bool = True
    places: tuple[Array, Array] | None = None
    y: Array
    weight: Array | None
    #: The statistics of the table itself; `column_stats` are those of its scaled features.
    table_stats: ColumnStats

    @abstractmethod
    def run(self, work: Pass) -> tuple[Array, Any]:
        """Read the table once, block by block; return the added sums and the adjoint of the residuals.

        ``work(rows, *images) -> (residual, sums)``, with ``rows`` a slice and the images of ``work.vectors`` there. A
        residual of None asks for no adjoint. Each row is read once however many images and sums are formed.
        """

    @abstractmethod
    def take(self, rows: Array, weight: Array | None) -> Self:
        """The data of the given rows alone, with these weights and the statistics of all rows."""

    def tables(self, nbytes: int = TILE_BYTES) -> Iterator[tuple[slice, Any]]:
        """The rows of the table in order, in float64 tables of about this size, dense or sparse, good until the next.

        For work outside passes; whoever reads them counts them.
        """
        raise TypeError(f"{type(self).__name__} has no table of features; this needs one.")

    def columns(self, features: Array | slice) -> Any:
        """A float64 copy of some columns, CSC or in Fortran order; None where that takes more than a read."""
        return None

    def not_finite(self, rows: slice, table: Any) -> ValueError | None:
        """The error about the first entry of some rows that is not finite, None if all are."""
        return None

    # ---------------------------------------------------------------- passes

    def read(self, work: Pass) -> tuple[Array, Any]:
        """`run` for features that may be scaled."""
        if self.scaling is None:
            return self.run(work)
        vectors = tuple(self._divided(w) for w in work.vectors)
        offsets = np.array([-(self.scaling[0] @ w) for w in vectors])
        sums, g = self.run(replace(work, vectors=vectors, offsets=offsets))
        if g is None:
            return sums, None
        sums, total = np.split(sums, [len(sums) - math.prod(work.outputs)])
        return sums, self._divided(g - np.multiply.outer(self.scaling[0], total.reshape(work.outputs)))

    def _divided(self, w: Array) -> Array:
        """Each row of a parameter divided by the scale of its column."""
        divided: Array = w if self.scaling is None else (w.T / self.scaling[1]).T
        return divided

    def apply(self, w: Array) -> Array:
        """The image A w, in one pass."""
        outputs = w.shape[len(self.shape(())) :]
        out = np.empty((self.n, *outputs))
        self.read(Pass(FormImages(), self, (w,), (0,), (out,), outputs))
        return out

    def adjoint(self, r: Array) -> Array:
        """The adjoint image, the sum over rows of ``r_i`` times row i of A, in one pass."""
        r = np.asarray(r, dtype=np.float64)
        total: Array = self.read(Pass(AsResidual(), self, (), (r,), (None,), r.shape[1:]))[1]
        return total

    def scaled_columns(self, features: Array | slice, *, centred: bool) -> Any:
        """A copy of some columns of the scaled features, or None as for `columns`.

        Where ``centred``, any constant may be subtracted from a column.
        """
        shift, scale = self.scaling or (np.zeros(self.shape(())), None)
        sparse_too = centred or not shift.any()
        columns = self.columns(features)
        if isinstance(columns, np.ndarray):
            if centred or scale is not None:
                columns -= columns.mean(axis=0) if centred else shift[features]
            return columns if scale is None else np.divide(columns, scale[features], out=columns)
        if columns is not None and scale is not None:
            columns.data /= np.repeat(scale[features], np.diff(columns.indptr))
        return columns if sparse_too else None

    def second_moments(self, h: RowWeights, wanted: Moments) -> Array:
        """The sums that are wanted for each column of the weights, of shape ``(m, d + 1, d + 1)``, in one read."""
        shift, scale = self.scaling or (np.zeros(math.prod(self.shape(()))), None)
        if wanted.centred:
            shift = self.table_stats.centre if wanted.centre is None else wanted.centre
        moments = weighted_products(self, h, np.ravel(wanted.select(shift)), wanted)[0]
        if scale is not None:
            by = np.append(wanted.select(scale), 1.0)
            moments /= by * by[:, None]
        return moments

    def gram(self) -> Gram:
        if not self.column_stats.terms:
            raise TypeError(f"`gram` needs a table of features; {type(self).__name__} has observed entries.")
        gram = Gram.of(self)
        return gram if self.scaling is None else gram.standardized(*self.scaling)

    # ---------------------------------------------------------------- rows, targets and statistics

    def measure(self) -> None:
        """Read all rows once: check that they are finite, and set `column_stats`."""
        stats = None
        with single_blas_thread():
            for rows, table in self.tables():
                part = ColumnStats.of(table, self.rows(rows).s, rows.start, self.n)
                if not np.isfinite(part.row_norm):
                    raise self.not_finite(rows, table) or ValueError(
                        f"`X` has entries as large as {shown(abs(table).max())}; rescale its columns."
                    )
                stats = part if stats is None else stats.merge(part)
        assert stats is not None
        self._set_stats(stats)

    def _set_stats(self, stats: ColumnStats) -> None:
        """Set both statistics; the errors of the table stay those that were there before."""
        known: ColumnStats | None = self.__dict__.get("column_stats")
        scaled = stats if self.scaling is None else stats.scaled(*self.scaling)
        self.table_stats, self.column_stats = stats, scaled if known is None else replace(scaled, errors=known.errors)

    def standardized(self, centre: Any, scale: Any) -> Self:
        data = self.alike()
        data.scaling = checked_scaling(self, centre, scale)
        data._set_stats(self.table_stats)
        return data

    def fingerprint(self) -> str:
        own = self.table_stats
        sums = own.mean, own.squares, own.largest, own.checksum, own.stored
        return short_hash(f"{self.n} {self.shape(())} {self.y.shape}", self.y, self.weight, *sums, *self.scaling or ())

    def subset(self, rows: Array | Fold) -> Self:
        if isinstance(rows, Fold):
            dealt = np.random.default_rng(rows.seed).permutation(self.n) % rows.folds
            rows = np.flatnonzero((dealt == rows.fold) == rows.inside)
        weight = None if self.weight is None else self.weight[rows]
        part = self.take(rows, checked_weights(weight, len(rows)))
        if self.total_weight is not None and weight is not None:
            part.total_weight = self.total_weight * float(weight.sum())
        part.measure()
        return part

    def representative(self, rows: Array) -> LocalData:
        """The given rows, with weights ``n s_i / m`` that keep sums over m of them unbiased for those of all rows."""
        return self.take(rows, None if self.weight is None else self.weight[rows] * (self.n / len(rows)))

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        r"""``m`` different rows in increasing order, each with the probability :math:`m / n`, in O(m).

        Runs of `sample_run` rows are drawn without replacement, the last one in part, and shifted around the circle of
        n by one uniform number, which alone gives every row its probability. The variance of a mean is that of single
        rows where the order of the rows is random, and larger where neighbours are alike: shuffle sorted files once.
        Samples of nearly all rows are drawn as single rows.
        """
        n, run = self.n, self.sample_run
        needed = -(-m // run)
        if run == 1 or needed > n // run:
            return np.sort(rng.choice(n, size=m, replace=False, shuffle=False))
        firsts = rng.choice(n // run, size=needed, replace=False) * run
        rows = (firsts[:, None] + np.arange(run)).reshape(-1)[:m]
        return np.sort((rows + rng.integers(n)) % n)

    def open(self) -> Workspace:
        return LocalWorkspace(self)

    def with_targets(self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None) -> Self:
        data = self.alike()
        data.y = convert(self.y)
        if reweight is not None:
            weight = self.rows(slice(None)).s * reweight(self.y)
            data.total_weight = float(np.sum(weight)) * (self.n if self.total_weight is None else self.total_weight)
            data.weight = checked_weights(weight, self.n)
            data.measure()
        return data

    def alike(self) -> Self:
        """A shallow copy, faster than that of `copy`: a run may draw a sample at every iteration."""
        data = object.__new__(type(self))
        data.__dict__.update(self.__dict__)
        return data

    def labels(self) -> list[Array]:
        y = self.y if self.weight is None else self.y[self.weight > 0]
        return [np.unique(column) for column in np.atleast_2d(y.T)]

    def quantile(self, q: float) -> Array:
        return np.asarray(self.y.max(axis=0) if q == 1.0 else np.quantile(self.y.astype(np.float64), q, axis=0))

    def rows(self, rows: slice) -> Rows:
        """What a step is told about a block of rows."""
        places = None if self.places is None else (self.places[0][rows], self.places[1][rows])
        return Rows(self.y[rows], 1.0 / self.n if self.weight is None else self.weight[rows], places)


def checked_scaling(data: Data, centre: Any, scale: Any) -> tuple[Array, Array]:
    """What to subtract from the columns of the table and to divide them by, for features that may be scaled already."""
    columns, numbers = data.shape(()), list[Array]()
    if len(columns) != 1:
        raise TypeError(f"{type(data).__name__} has no features to centre or scale; leave `centre` and `scale` out.")
    for name, given in (("centre", centre), ("scale", scale)):
        own = all_finite(name, real_array(name, given)).astype(np.float64)
        if own.shape != columns:
            raise ValueError(
                f"`{name}` must have one entry for each of the {columns[0]} columns, got shape {own.shape}."
            )
        numbers.append(own)
    centre, scale = numbers
    if scale.min() <= 0.0:
        j = int(np.argmin(scale))
        raise ValueError(f"`scale` must be positive, got {shown(scale[j])} for column {j}; use 1 to leave it.")
    first, by = data.column_stats.scaling or (0.0, 1.0)
    return first + by * centre, by * scale


def checked_targets(y: Array, n: int) -> Array:
    """``y`` as an array of finite numbers with ``n`` rows and one or two dimensions."""
    y = all_finite("y", real_array("y", y))
    if y.ndim not in (1, 2) or len(y) != n:
        raise ValueError(
            f"`y` must have one row for each of the {n} rows of `X` and one or two dimensions, got shape {y.shape}."
        )
    if n and not y.size:
        raise ValueError(f"`y` must have at least one column, got shape {y.shape}.")
    largest = float(np.abs(y).max(initial=0.0)) if y.dtype.kind == "f" else 0.0
    if not math.isfinite(len(y) * largest * largest):
        raise ValueError(f"`y` has entries as large as {largest:.3g}, whose squares overflow; rescale it.")
    return y


def checked_weights(weight: Array | None, n: int) -> Array | None:
    """Sample weights normalised to the sum one, None where there are none."""
    if weight is None:
        return None
    weight = all_finite("sample_weight", real_array("sample_weight", weight)).astype(np.float64)
    if weight.shape != (n,):
        raise ValueError(f"`sample_weight` must have one entry for each of the {n} rows, got shape {weight.shape}.")
    if weight.min() < 0 or weight.max() <= 0:
        raise ValueError(
            f"`sample_weight` must be non-negative with a positive sum, got {weight.min():g} to {weight.max():g}; "
            "drop the rows that should not count."
        )
    weight = weight / weight.max()  # else the sum may overflow
    least = float(weight[weight > 0.0].min())
    if least < LEAST_WEIGHT:  # its share of the sum would be rounded to few digits, or to none
        raise ValueError(
            f"`sample_weight` must be zero or at least {LEAST_WEIGHT:g} times the largest, got {least:g} times that; "
            "set such weights to zero."
        )
    normalised: Array = weight / weight.sum()
    return normalised
