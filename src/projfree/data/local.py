"""`LocalData`: data whose rows are in memory or on the disks of this machine, read block by block."""

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
from projfree.data.gram import MIN_WEIGHT, Gram, Moments, RowWeights, weighted_products
from projfree.data.rows import TILE_BYTES, AsResidual, FormPredictions, Pass, Rows
from projfree.data.workspace import LocalWorkspace, Workspace
from projfree.runtime import single_blas_thread


class LocalData(Data):
    r"""Data that this process reads; a subclass defines `run`, `take`, `tables`, `shape` and `rounding_units`.

    Standardised features :math:`(x_i - m) / s` are stored as the original table and a ``scaling``, so that nothing is
    copied and a sparse table stays sparse:

    .. math:: A' w = A (w / s) - \langle m, w / s\rangle, \qquad A'^T r = (A^T r - m \textstyle\sum_i r_i) / s .

    Attributes
    ----------
    y : array
        Targets, one row per row of the table.
    weight : array or None
        Normalised weights; None if all are ``1 / n``.
    scaling : tuple of array or None
        The centre subtracted from the columns of the table, and the scale they are divided by.
    sample_run : int
        Number of consecutive rows drawn together in a sample; 1 if single rows are cheap to read.
    nbytes : int
        Bytes that a pass reads; 0 if the data have no compiled kernels.
    threads : int
        Maximum number of threads of a pass.
    caches_predictions : bool
        Whether to cache predictions after a sweep, because recomputing them costs more.
    adjoint_reads : bool
        Whether the adjoint reads the table; False for matrix entries, whose adjoint only stores the residuals.
    places : tuple of array or None
        Row and column indices of observed matrix entries; None for tables.
    """

    scaling: tuple[Array, Array] | None = None
    sample_run: int = 1
    nbytes: int = 0
    threads: int = 1
    caches_predictions: bool = False
    adjoint_reads: bool = True
    places: tuple[Array, Array] | None = None
    y: Array
    weight: Array | None
    #: Statistics of the unscaled table; `column_stats` are those of the scaled features.
    table_stats: ColumnStats

    @abstractmethod
    def run(self, work: Pass) -> tuple[Array, Any]:
        """Read the table once, block by block; return the sums and the adjoint of the residuals.

        The signature of ``work`` is ``work(rows, *predictions) -> (residual, sums)``, where ``rows`` is a slice and the
        predictions are those of ``work.vectors`` on these rows. If the residual is None, no adjoint is computed. Each
        row is read once, whatever the number of predictions and sums.
        """

    @abstractmethod
    def take(self, rows: Array, weight: Array | None) -> Self:
        """Return the data restricted to ``rows``, with these weights and the statistics of all rows."""

    def tables(self, nbytes: int = TILE_BYTES) -> Iterator[tuple[slice, Any]]:
        """Yield the rows in order as float64 tables of about ``nbytes``, dense or sparse, each valid until the next.

        The caller counts the rows read.
        """
        raise TypeError(f"{type(self).__name__} has no table of features; this needs one.")

    def columns(self, features: Array | slice) -> Any:
        """Return a float64 copy of some columns, CSC or in Fortran order; None if that takes more than a pass."""
        return None

    def not_finite(self, rows: slice, table: Any) -> ValueError | None:
        """Return the error for the first entry of ``table`` that is not finite, None if all are finite."""
        return None

    # ---------------------------------------------------------------- passes

    def read(self, work: Pass) -> tuple[Array, Any]:
        """Run a pass over the features, which may be scaled; see `run`."""
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
        """Divide each row of a parameter by the scale of its column."""
        divided: Array = w if self.scaling is None else (w.T / self.scaling[1]).T
        return divided

    def apply(self, w: Array) -> Array:
        """Return the predictions A w, computed in one pass."""
        outputs = w.shape[len(self.shape(())) :]
        out = np.empty((self.n, *outputs))
        self.read(Pass(FormPredictions(), self, (w,), (0,), (out,), outputs))
        return out

    def adjoint(self, r: Array) -> Array:
        """Return the adjoint ``A^T r``, the sum over i of ``r_i`` times row i of A, computed in one pass."""
        r = np.asarray(r, dtype=np.float64)
        total: Array = self.read(Pass(AsResidual(), self, (), (r,), (None,), r.shape[1:]))[1]
        return total

    def scaled_columns(self, features: Array | slice, *, centred: bool) -> Any:
        """Return a copy of some columns of the scaled features, or None as `columns` does.

        If ``centred``, any constant may be subtracted from a column.
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
        """Return the moments for each column of the weights, of shape ``(m, d + 1, d + 1)``, in one pass."""
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
        """Set `table_stats` and `column_stats`; the recorded `TableErrors` do not change."""
        known: ColumnStats | None = self.__dict__.get("column_stats")
        scaled = stats if self.scaling is None else stats.scaled(*self.scaling)
        self.table_stats, self.column_stats = stats, scaled if known is None else replace(scaled, errors=known.errors)

    def standardized(self, centre: Any, scale: Any) -> Self:
        data = self.shallow_copy()
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
        """Return the given rows with weights ``n s_i / m``, so that sums over a sample of size m are unbiased."""
        return self.take(rows, None if self.weight is None else self.weight[rows] * (self.n / len(rows)))

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Draw ``m`` distinct rows, in increasing order, each with inclusion probability :math:`m / n`, in O(m).

        Runs of `sample_run` consecutive rows are drawn without replacement (the last run is cut to size m) and shifted
        cyclically by one uniform random number, so that all rows have the same probability. The variance of a mean
        equals that of single rows if the rows are in random order, and is larger if neighbouring rows are similar:
        shuffle sorted files once. Samples of nearly all rows are drawn as single rows.
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
        data = self.shallow_copy()
        data.y = convert(self.y)
        if reweight is not None:
            weight = self.rows(slice(None)).s * reweight(self.y)
            data.total_weight = float(np.sum(weight)) * (self.n if self.total_weight is None else self.total_weight)
            data.weight = checked_weights(weight, self.n)
            data.measure()
        return data

    def shallow_copy(self) -> Self:
        """Return a shallow copy, faster than `copy.copy`: a run may draw a sample at every iteration."""
        data = object.__new__(type(self))
        data.__dict__.update(self.__dict__)
        return data

    def labels(self) -> list[Array]:
        y = self.y if self.weight is None else self.y[self.weight > 0]
        return [np.unique(column) for column in np.atleast_2d(y.T)]

    def quantile(self, q: float) -> Array:
        return np.asarray(self.y.max(axis=0) if q == 1.0 else np.quantile(self.y.astype(np.float64), q, axis=0))

    def rows(self, rows: slice) -> Rows:
        """Return targets, weights and places of a block of rows."""
        places = None if self.places is None else (self.places[0][rows], self.places[1][rows])
        return Rows(self.y[rows], 1.0 / self.n if self.weight is None else self.weight[rows], places)


def checked_scaling(data: Data, centre: Any, scale: Any) -> tuple[Array, Array]:
    """Validate ``centre`` and ``scale``; return the total centre and scale, as the features may already be scaled."""
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
    """Validate ``y`` and return it as an array of finite numbers with ``n`` rows and one or two dimensions."""
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
    """Validate sample weights and return them normalised to sum to one; None if there are none."""
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
    weight = weight / weight.max()  # avoid overflow of the sum
    least = float(weight[weight > 0.0].min())
    if least < MIN_WEIGHT:  # its normalised weight would lose digits or underflow
        raise ValueError(
            f"`sample_weight` must be zero or at least {MIN_WEIGHT:g} times the largest, got {least:g} times that; "
            "set such weights to zero."
        )
    normalised: Array = weight / weight.sum()
    return normalised
