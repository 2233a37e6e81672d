"""What a round does with each partition: sums over rows that are added up in the tree of partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from projfree.checks import Array, shown
from projfree.data.dask.making import weight_range
from projfree.data.dask.partition import Partition, Placed, View
from projfree.data.dask.recipe import Recipe
from projfree.data.dask.tree import added
from projfree.data.gram import Gram
from projfree.data.moments import deviation_sums
from projfree.data.rows import Step
from projfree.data.second_moments import Moments
from projfree.data.spectrum import row_sums

#: Labels of classes that may come back from a partition.
MOST_LABELS = 10_000


@dataclass(frozen=True, eq=False)
class PartitionSample:
    """Rows that are drawn inside of partitions: how many of each, a seed, and what weights are multiplied by."""

    seed: int
    counts: dict[int, int]
    factor: float

    def of(self, view: View, number: int) -> View | None:
        """The rows of one partition, None where none were drawn."""
        m, n = self.counts.get(number, 0), view.data.n
        if not m:
            return None
        rng = np.random.default_rng([self.seed, number])
        rows = np.sort(rng.choice(n, size=m, replace=False, shuffle=False))
        return view.sampled(rows, self.factor)

    def some(self, numbers: list[int]) -> PartitionSample:
        """What concerns some of the partitions: nobody is told about the others."""
        return replace(self, counts={k: self.counts[k] for k in numbers if k in self.counts})


class Work(ABC):
    """What is computed of each partition, and how the results of two are put together."""

    #: What the tasks are called in the dashboard.
    name: ClassVar[str] = "measure"

    @abstractmethod
    def on(self, rows: Partition, threads: int) -> Any:
        """The result for one partition."""

    def add(self, a: Any, b: Any) -> Any:
        """The results of two neighbours put together, the left one first."""
        return added(a, b)

    def some(self, numbers: list[int]) -> Work:
        """What a worker that has these partitions has to know."""
        return self


@dataclass(frozen=True, eq=False)
class Several(Work):
    """Works that have nothing to do with each other, in one round."""

    name = "several"
    works: tuple[Work, ...]

    def on(self, rows: Partition, threads: int) -> Any:
        return tuple(work.on(rows, threads) for work in self.works)

    def add(self, a: Any, b: Any) -> Any:
        return tuple(work.add(x, y) for work, x, y in zip(self.works, a, b, strict=True))

    def some(self, numbers: list[int]) -> Work:
        return Several(tuple(work.some(numbers) for work in self.works))


@dataclass(frozen=True, eq=False)
class Job(Work):
    """What is computed of a view of each partition."""

    recipe: Recipe

    def on(self, rows: Partition, threads: int) -> Any:
        return self.of(rows.view(self.recipe, threads))

    @abstractmethod
    def of(self, view: View) -> Any:
        """The result for a view of the rows of a partition."""


@dataclass(frozen=True, eq=False)
class RowsJob(Job):
    """A job on images: a step, the points, and the rows if they are sampled."""

    step: Step
    points: tuple[Placed, ...]
    sample: PartitionSample | None = None

    def on(self, rows: Partition, threads: int) -> Any:
        view: View | None = rows.view(self.recipe, threads)
        if self.sample is not None and view is not None:
            view = self.sample.of(view, rows.facts.number)
        return None if view is None else self.of(view)

    def some(self, numbers: list[int]) -> Work:
        return self if self.sample is None else replace(self, sample=self.sample.some(numbers))


@dataclass(frozen=True, eq=False)
class Sweep(RowsJob):
    """`Workspace.sweep`."""

    name = "sweep"

    def of(self, view: View) -> Any:
        return view.workspace.sweep(self.step, view.points(self.points))


@dataclass(frozen=True, eq=False)
class Fold(RowsJob):
    """`Workspace.fold`."""

    name = "fold"

    def of(self, view: View) -> Any:
        return view.workspace.fold(self.step, view.points(self.points))


@dataclass(frozen=True, eq=False)
class SecondMoments(RowsJob):
    """`Workspace.second_moments`."""

    name = "moments"
    wanted: Moments | None = None

    def of(self, view: View) -> Any:
        (x,) = view.points(self.points)
        assert self.wanted is not None
        return view.workspace.second_moments(self.step, x, self.wanted)


@dataclass(frozen=True, eq=False)
class ProductsJob(Job):
    """The moments of features and targets about a centre, with weights whose sum over all rows is ``total``."""

    name = "gram"
    shift: Array
    total: float

    def of(self, view: View) -> Any:
        data = view.raw.alike()
        data.total_weight = self.total
        return Gram.about(self.shift, data.shape(())[0], data.y.shape[1:]).include(data).matrix


@dataclass(frozen=True, eq=False)
class MeanRow(Job):
    """The weighted sum of the rows."""

    def of(self, view: View) -> Any:
        assert view.raw.weight is not None
        return view.raw.adjoint(view.raw.weight)


@dataclass(frozen=True, eq=False)
class MeanTarget(Job):
    """The weighted sum of what is left of the targets without a first guess of their mean."""

    guess: Array | float

    def of(self, view: View) -> Any:
        assert view.raw.weight is not None
        return np.asarray(view.raw.weight @ (view.raw.y - self.guess))


@dataclass(frozen=True, eq=False)
class RowMeasures(Job):
    """`Data.row_measures`: the largest norm, and the mean square of the norms."""

    shift: Array
    scale: Array

    def of(self, view: View) -> Any:
        return view.raw.row_measures(self.shift, self.scale)

    def add(self, a: Any, b: Any) -> Any:
        return max(a[0], b[0]), a[1] + b[1]


@dataclass(frozen=True, eq=False)
class Deviations(Job):
    """The sums that `Data.column_deviation` is made of."""

    mean: Array

    def of(self, view: View) -> Any:
        return deviation_sums(view.raw, self.mean)


@dataclass(frozen=True, eq=False)
class ColumnSizes(Job):
    """`Data.column_sizes`."""

    def of(self, view: View) -> Any:
        return view.raw.column_sizes()

    def add(self, a: Any, b: Any) -> Any:
        return np.stack([np.hypot(a[0], b[0]), np.maximum(a[1], b[1])])


@dataclass(frozen=True, eq=False)
class RowSums(Job):
    """The sums that `Data.largest_row_sum` is the largest of."""

    scale: Array

    def of(self, view: View) -> Any:
        return row_sums(view.raw, self.scale)


@dataclass(frozen=True, eq=False)
class Labels(Job):
    """The labels of rows with some weight, for each output."""

    def of(self, view: View) -> Any:
        return tuple(_few(labels) for labels in view.raw.labels())

    def add(self, a: Any, b: Any) -> Any:
        return tuple(_few(np.union1d(x, y)) for x, y in zip(a, b, strict=True))


def _few(labels: Array) -> Array:
    """The labels, unless they are so many that they would travel as rows do."""
    if len(labels) > MOST_LABELS:
        raise ValueError(
            f"`y` must hold at most {MOST_LABELS:,} different labels, got more, such as {shown(labels[0])}; for "
            "numbers use ConstrainedRegressor."
        )
    return labels


@dataclass(frozen=True, eq=False)
class Outputs(Job):
    """The largest of the trailing shapes that a loss finds in the targets."""

    of_targets: Callable[[Array], tuple[int, ...]]

    def of(self, view: View) -> Any:
        return self.of_targets(view.raw.y)

    def add(self, a: Any, b: Any) -> Any:
        return tuple(np.maximum(a, b).tolist())


@dataclass(frozen=True, eq=False)
class WeightRange(Job):
    """The largest weight, the smallest positive one, and their sum in units of the largest.

    Of raw weights, for a recipe that divides them by one.
    """

    def of(self, view: View) -> Any:
        assert view.raw.weight is not None
        return weight_range(view.raw.weight)

    def add(self, a: Any, b: Any) -> Any:
        return put_together(a, b)


def put_together(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    """`weight_range` of the rows of two partitions."""
    largest = max(a[0], b[0]) or 1.0
    return max(a[0], b[0]), min(a[1], b[1]), a[2] * (a[0] / largest) + b[2] * (b[0] / largest)


@dataclass(frozen=True, eq=False)
class CountBelow(Job):
    """How many targets of each output are at most each of some places, of shape ``(places, outputs)``."""

    places: Array

    def of(self, view: View) -> Any:
        y = view.raw.y.reshape(view.raw.n, -1)
        columns = (np.searchsorted(np.sort(y[:, j]), self.places[:, j], side="right") for j in range(y.shape[1]))
        return np.stack(list(columns), axis=1)
