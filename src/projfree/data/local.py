"""Data whose rows lie in the memory or on the disks of this machine, read block by block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from projfree.checks import Array, all_finite, real_array, shown
from projfree.data.base import Data, Fold
from projfree.data.column_stats import ColumnStats
from projfree.data.gram import Gram, second_moments
from projfree.data.rows import TILE_BYTES, AsResidual, FormImages, Pass, Rows
from projfree.data.workspace import LocalWorkspace, Workspace
from projfree.runtime import single_blas

#: Weights below this part of the largest would leave the range of normal numbers once they are divided by their sum.
WEIGHT_SHARE = 1e-290
#: The largest target whose square, times a number of rows, is within the range of floats.
LARGEST_TARGET = 1e152


class LocalData(Data):
    """Data that a pass reads here: `run` is the one way in which that happens.

    It reads each row once however many images and sums it forms.

    Attributes
    ----------
    y : ndarray
        Targets, one row each.
    weight : ndarray or None
        Normalised weights; None where all are ``1 / n``.
    nbytes : int
        What a pass reads; 0 where no compiled kernel does.
    threads : int
        How many threads a pass may use.
    keeps_images : bool
        Whether a workspace keeps the images that a sweep forms: where forming them anew costs more than mixing them.
    adjoint_reads : bool
        Whether an adjoint reads the data; not where it only puts residuals in their places.
    places : pair of ndarray, or None
        Row and column of each observed entry of a matrix; None for tables.
    sample_run : int
        How many neighbouring rows a sample takes at a time: one where single rows are cheap to read.
    """

    sample_run: int = 1
    nbytes: int = 0
    threads: int = 1
    keeps_images: bool = False
    adjoint_reads: bool = True
    places: tuple[Array, Array] | None = None
    y: Array
    weight: Array | None

    @abstractmethod
    def run(self, work: Pass) -> tuple[Array, Any]:
        """Do the work of a pass block by block; return the added sums and the adjoint of its residuals.

        ``work(rows, *images) -> (residual, sums)``, with ``rows`` a slice and the images of ``work.vectors`` there. A
        residual of None asks for no adjoint.
        """

    @abstractmethod
    def take(self, rows: Array, weight: Array | None) -> LocalData:
        """The data of the given rows alone, with these weights and the statistics of all rows."""

    def subset(self, rows: Array | Fold) -> LocalData:
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

    def measure(self) -> None:
        """Read all rows once: check that they are finite, and set `column_stats`."""
        stats, d = None, self.shape(())[0]
        # The order in which BLAS adds depends on its threads, but for products of so few numbers it uses one.
        with single_blas(128 * self.n * d > TILE_BYTES):
            for rows, table in self.tables(max(TILE_BYTES, 128 * d)):
                part = ColumnStats.of(table, self.weights(rows), rows.start, self.n)
                if not np.isfinite(part.row_norm):
                    raise self.not_finite(rows, table) or ValueError(
                        f"`X` has entries as large as {shown(abs(table).max())}; rescale its columns."
                    )
                stats = part if stats is None else stats.merge(part)
        assert stats is not None
        self._set_stats(stats)

    def _set_stats(self, stats: ColumnStats) -> None:
        """Set `column_stats`; the errors of the table stay those of the statistics that were there before."""
        known: ColumnStats | None = self.__dict__.get("column_stats")
        self.column_stats = stats if known is None else replace(stats, errors=known.errors)

    def not_finite(self, rows: slice, table: Any) -> ValueError | None:
        """The error about the first entry of some rows that is not finite, None if all are."""
        return None

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

    def columns(self, features: Array | slice, *, centred: bool) -> Any:
        """A copy of some columns, CSC or in Fortran order; None where that takes more than a read.

        Where ``centred``, any constant may be subtracted from a column.
        """
        return None

    def open(self) -> Workspace:
        return LocalWorkspace(self)

    def with_targets(self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None) -> Self:
        data = self.alike()
        data.y = convert(self.y)
        if reweight is not None:
            weight = self.weights(slice(None)) * reweight(self.y)
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
        return labels_of(self.y if self.weight is None else self.y[self.weight > 0])

    def quantile(self, q: float) -> Array:
        return np.asarray(self.y.max(axis=0) if q == 1.0 else np.quantile(self.y.astype(np.float64), q, axis=0))

    def rows(self, rows: slice) -> Rows:
        """What a step is told about a block of rows."""
        places = None if self.places is None else (self.places[0][rows], self.places[1][rows])
        return Rows(self.y[rows], self.weights(rows), places)

    def weights(self, rows: slice | Array) -> Array | float:
        """The normalised weights of some rows, as something to multiply with."""
        return 1.0 / self.n if self.weight is None else self.weight[rows]

    def apply(self, w: Array) -> Array:
        """The image A w, in one pass."""
        outputs = w.shape[len(self.shape(())) :]
        out = np.empty((self.n, *outputs))
        self.run(Pass(FormImages(), self.n, self.y, self.weight, (w,), (0,), (out,), outputs))
        return out

    def adjoint(self, r: Array) -> Array:
        """The adjoint image, the sum over rows of ``r_i`` times row i of A, in one pass."""
        r = np.asarray(r, dtype=np.float64)
        total: Array = self.run(Pass(AsResidual(), self.n, self.y, self.weight, (), (r,), (None,), r.shape[1:]))[1]
        return total

    def tables(self, nbytes: int = TILE_BYTES) -> Iterator[tuple[slice, Any]]:
        """The rows of A in order, in float64 tables of about this size, each an array or sparse, good until the next.

        For work outside passes; whoever reads them counts them.
        """
        raise TypeError(f"{type(self).__name__} has no table of features; this needs one.")

    def image_of(self, table: Any, w: Array) -> Array:
        """The image of ``w`` on some rows, given their features as `second_moments` reads them."""
        image: Array = table @ w if w.any() else np.zeros((table.shape[0], *w.shape[1:]))
        return image

    second_moments = second_moments

    def gram(self) -> Gram:
        columns = self.shape(())
        if len(columns) != 1:
            raise TypeError(f"`gram` needs a table of features; {type(self).__name__} has observed entries.")
        return Gram(columns[0], self.y.shape[1:]).include(self)

    def standardized(self, shift: Any, scale: Any) -> LocalData:
        from projfree.data.standardized import Standardized

        return Standardized(self, shift, scale)


class TransformedData(LocalData):
    """The rows of another table with other features or another form of the parameter; nothing is copied.

    Targets and weights are those of the table, which is asked for other ones and for fewer rows.

    Attributes
    ----------
    data : LocalData
        The table.
    """

    data: LocalData

    @abstractmethod
    def _stats(self) -> ColumnStats:
        """`column_stats`, from those of the table."""

    def _hold(self, data: LocalData, *, measured: bool = True) -> Self:
        """Take over a table, and its statistics where they are those of its own rows."""
        self.data, self.n, self.y, self.weight, self.total_weight = data, data.n, data.y, data.weight, data.total_weight
        self.threads, self.nbytes, self.keeps_images = data.threads, data.nbytes, data.keeps_images
        self.rounding_units, self.sample_run = data.rounding_units, data.sample_run
        if measured:
            self._set_stats(self._stats())
        return self

    def with_targets(self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None) -> Self:
        return self.alike()._hold(self.data.with_targets(convert, reweight), measured=reweight is not None)

    def subset(self, rows: Array | Fold) -> Self:
        return self.alike()._hold(self.data.subset(rows))

    def take(self, rows: Array, weight: Array | None) -> Self:
        return self.alike()._hold(self.data.take(rows, weight), measured=False)


def labels_of(y: Array) -> list[Array]:
    """The labels in each column of some targets, in order."""
    return [np.unique(column) for column in np.atleast_2d(y.T)]


def checked_targets(y: Array, n: int) -> Array:
    """``y`` as an array of finite numbers with ``n`` rows and one or two dimensions."""
    y = all_finite("y", real_array("y", y))
    if y.ndim not in (1, 2) or len(y) != n:
        raise ValueError(
            f"`y` must have one row for each of the {n} rows of `X` and one or two dimensions, got shape {y.shape}."
        )
    if n and not y.size:
        raise ValueError(f"`y` must have at least one column, got shape {y.shape}.")
    if y.dtype.kind == "f" and y.size and (largest := max(float(y.max()), -float(y.min()))) > LARGEST_TARGET:
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
    if least < WEIGHT_SHARE:  # its share of the sum would be rounded to few digits, or to none
        raise ValueError(
            f"`sample_weight` must be zero or at least {WEIGHT_SHARE:g} times the largest, got {least:g} times that; "
            "set such weights to zero."
        )
    normalised: Array = weight / weight.sum()
    return normalised
