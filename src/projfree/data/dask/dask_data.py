"""`DaskData`: a table whose rows are partitions of a Dask collection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np

from projfree.algebra.hashing import short_hash
from projfree.checks import Array
from projfree.data.base import Data
from projfree.data.dask import jobs
from projfree.data.dask.meeting import Meeting
from projfree.data.dask.order_statistics import middle
from projfree.data.dask.partition import Facts
from projfree.data.dask.recipe import InFold, Recipe, Times
from projfree.data.dask.rounds import Rounds
from projfree.data.dask.workspace import DaskWorkspace
from projfree.data.gram import LEAST_WEIGHT, MOST_WEIGHT, Gram
from projfree.data.local import WEIGHT_SHARE, labels_of
from projfree.data.moments import deviation_of
from projfree.data.once import Once
from projfree.data.spectrum import largest_eigenvalue
from projfree.data.standardized import StandardizedView

T = TypeVar("T")
#: The time of a round that does nothing, in numbers read from memory: 10 ms, as `RoundModel` has it.
ROUND_NUMBERS = 1e7


class DaskData(Data):
    """A table in partitions, each of which some worker has; made by `as_data`.

    A sweep or a fold is one round: a task for each worker carries the step and the parameters there, and brings back
    sums, which form a fixed binary tree over the partitions. So results do not depend on how many workers there are,
    nor on their order, nor on what was lost and made again on the way.

    Parameters
    ----------
    rounds : Rounds
        The partitions.
    """

    round_numbers, reweighs = ROUND_NUMBERS, True

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, self.facts = rounds, rounds.facts
        _refuse_unlike(self.facts)
        first = self.facts[0]
        self.n, self.d = sum(one.n for one in self.facts), first.d
        self.feature_names = first.names
        self.stored = None if first.stored is None else sum(one.stored or 0 for one in self.facts)
        ranges = [one.weights for one in self.facts]
        known = None if ranges[0] is None else reduce(jobs.put_together, [one for one in ranges if one is not None])
        self._weigh(Recipe(nbytes=sum(one.nbytes for one in self.facts)), known)

    def _weigh(self, recipe: Recipe, known: tuple[float, float, float] | None) -> None:
        """Take raw weights, whose range is known, in the unit that makes their sum one; None where each counts one."""
        largest, least, total = (1.0, 1.0, float(self.n)) if known is None else known
        if not largest > 0.0:
            raise ValueError("`sample_weight` must have a positive sum, got zeros only; drop rows that do not count.")
        if least / largest < WEIGHT_SHARE:
            raise ValueError(
                f"`sample_weight` must be zero or at least {WEIGHT_SHARE:g} times the largest, got {least / largest:g} "
                "times that; set such weights to zero."
            )
        self.recipe = recipe.but(unit=(largest, total)).with_own_weights()
        with np.errstate(over="ignore"):
            self.total_weight = None if known is None else float(min(largest * total, np.finfo(np.float64).max))
        plain = np.zeros(self.d), np.ones(self.d)
        # Without a cycle, so that rows are freed with the last reference to the data.
        known_measures = _measures_of(self.facts) if known is None else None
        self._measures: Once[Any] = Once(
            partial(self.rounds.run, jobs.RowMeasures(self.recipe, *plain)), known_measures
        )
        self._mean: Once[Array] = Once(partial(self.rounds.run, jobs.MeanRow(self.recipe)))

    def _run(self, kind: Callable[..., jobs.Job], *settings: Any) -> Any:
        return self.rounds.run(kind(self.recipe, *settings))

    @property
    def row_norm(self) -> float:  # type: ignore[override]  # which nobody sets
        return float(self._measures.get()[0])

    @property
    def mean_square(self) -> float:  # type: ignore[override]  # as above
        return float(self._measures.get()[1])

    def open(self) -> DaskWorkspace:
        return DaskWorkspace(self, self.recipe)

    def with_targets(self, convert: Callable[[Array], Array]) -> DaskData:
        data = copy(self)
        data.recipe = self.recipe.but(targets=(*self.recipe.targets, convert))
        return data

    def reweighted(self, factor: Callable[[Array], Array]) -> DaskData:
        return self._weighed_by(Times(self.recipe.weigh, factor))[0]

    def split(self, folds: int, seed: int) -> list[tuple[Data, Data]]:
        # Rows are dealt within their partitions, and those that do not count have the weight zero: nothing is copied.
        inner = self.recipe.weigh
        sides = [InFold(inner, seed, folds, k, inside) for inside in (False, True) for k in range(folds)]
        views = self._weighed_by(*sides)
        return list(zip(views[:folds], views[folds:], strict=True))

    def side_by_side(self, works: Sequence[Callable[[], T]]) -> list[T]:
        return Meeting(self.rounds).hold(works)

    def _weighed_by(self, *weighs: Any) -> list[DaskData]:
        """A view for each of some weights, which one round measures."""
        raw = [self.recipe.but(weigh=weigh, unit=(1.0, 1.0)).with_own_weights() for weigh in weighs]
        ranges = self.rounds.run(jobs.Several(tuple(jobs.WeightRange(one) for one in raw)))
        views = [copy(self) for _ in raw]
        for view, own, known in zip(views, raw, ranges, strict=True):
            view._weigh(own, known)
        return views

    def outputs(self, of: Callable[[Array], tuple[int, ...]]) -> tuple[int, ...]:
        targets = self._different_targets()
        shape: tuple[int, ...] = self._run(jobs.Outputs, of) if targets is None else of(targets)
        return shape

    def labels(self) -> list[Array]:
        targets = self._different_targets()
        return list(self._run(jobs.Labels)) if targets is None else labels_of(targets)

    def _different_targets(self) -> Array | None:
        """All targets that differ, as losses take them, where partitions have told of them; else None."""
        known = [one.labels for one in self.facts if one.labels is not None]
        if len(known) < len(self.facts) or not self.recipe.as_given:
            return None
        with suppress(ValueError):  # which the rows will raise again, with the name of their partition
            return self.recipe.converted(reduce(np.union1d, known))
        return None

    def mean_target(self) -> Array:
        mean: Array = self._run(jobs.MeanTarget, 0.0)
        rest: Array = self._run(jobs.MeanTarget, mean)  # takes off the rounding of the first turn
        return np.asarray(mean + rest)

    def median_target(self) -> Array:
        shape = self.facts[0].outputs
        return middle(lambda places: self._run(jobs.CountBelow, places), self.n, math.prod(shape)).reshape(shape)

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    def smoothness(self, *, centred: bool) -> float:
        return largest_eigenvalue(self, np.zeros(self.d), np.ones(self.d), self.mean_square, centred=centred)

    def mean_row(self) -> Array:
        return self._mean.get()

    def summation(self) -> float:
        # Each partition as it is summed by itself, then a tree over partitions; weights are divided once more.
        return max(one.summation for one in self.facts) + math.ceil(math.log2(len(self.facts) + 1)) + 2.0

    def row_measures(self, shift: Array, scale: Array) -> tuple[float, float]:
        largest, mean = self._run(jobs.RowMeasures, shift, scale)
        return float(largest), float(mean)

    def largest_row_sum(self, scale: Array) -> float:
        return float((self._run(jobs.RowSums, scale) / scale).max())

    def column_deviation(self, constant: float = 1.0) -> Array:
        mean = self.mean_row()
        return deviation_of(self._run(jobs.Deviations, mean), mean, self, constant)

    def column_sizes(self) -> Array:
        sizes: Array = self._run(jobs.ColumnSizes)
        return sizes

    def gram(self) -> Gram:
        total = float(self.n if self.total_weight is None else self.total_weight)
        total = min(max(total, LEAST_WEIGHT), MOST_WEIGHT)
        shift = np.concatenate([self.centre_row(), self.mean_target().ravel()])
        gram = Gram.about(shift, self.d, self.mean_target().shape)
        gram.matrix, gram.n = self._run(jobs.ProductsJob, shift, total), self.n
        return gram

    def standardized(self, shift: Any, scale: Any) -> ScaledData:
        return ScaledData(self, shift, scale)

    def fingerprint(self) -> str:
        sums = " ".join(one.checksum for one in self.facts)
        return short_hash(f"dask {self.n} {self.d} {sums} {self.recipe.describe()}")


class ScaledData(StandardizedView):
    """Centred and scaled features of partitions: passes over them are compiled as those of the features themselves."""

    data: DaskData
    round_numbers = ROUND_NUMBERS

    def _hold(self, data: DaskData) -> None:
        super()._hold(data)
        self.recipe = data.recipe.but(scaling=(self.shift, self.scale))

    def open(self) -> DaskWorkspace:
        return DaskWorkspace(self.data, self.recipe)


def _measures_of(facts: list[Facts]) -> tuple[float, float]:
    """`row_norm` and `mean_square` of all rows, where each counts one."""
    squares = math.fsum(one.n * one.row_measures[1] for one in facts)
    return max(one.row_measures[0] for one in facts), squares / sum(one.n for one in facts)


def _refuse_unlike(facts: list[Facts]) -> None:
    """Raise where a partition is not a part of the same table as the first one."""
    if not facts:
        raise ValueError("`X` must be a table with at least one row, got partitions without any.")
    first = facts[0]
    about: dict[str, list[Any]] = {
        "columns": [one.d for one in facts],
        "names of columns": [one.names for one in facts],
        "dtype": [one.dtype for one in facts],
        "kind of rows": ["dense" if one.stored is None else "sparse" for one in facts],
        "trailing shape of targets": [one.outputs for one in facts],
        "kind of targets": [one.targets for one in facts],
        "weights": ["none" if one.weights is None else "some" for one in facts],
    }
    for what, found in about.items():
        for one, own in zip(facts, found, strict=True):
            if own != found[0]:
                raise ValueError(
                    f"partition {one.number} of the data (rows 0 to {one.n - 1} of it) must have the same {what} as "
                    f"partition {first.number}, {found[0]}, got {own}; convert the partitions alike."
                )
