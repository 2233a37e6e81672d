"""The workspace over partitions: each sweep and each fold is one round."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import Handle, Point
from projfree.checks import Array
from projfree.data.dask.jobs import Fold, PartitionSample, SecondMoments, Sweep
from projfree.data.dask.partition import Placed
from projfree.data.dask.recipe import Recipe
from projfree.data.rows import Step
from projfree.data.second_moments import Moments
from projfree.data.workspace import MOST_IMAGES, Meter, Workspace

if TYPE_CHECKING:
    from projfree.data.dask.dask_data import DaskData


class DaskWorkspace(Workspace):
    """Knows the names of the images that partitions hold; the images themselves are where the rows are.

    Which images are held is decided here and not by what workers happen to have: an image that a worker has lost is
    formed again in the same task, from the parameter that travels with it, to the same bits.
    """

    def __init__(
        self, data: DaskData, recipe: Recipe, meter: Meter | None = None, sample: PartitionSample | None = None
    ) -> None:
        self._data, self._recipe, self._sample = data, recipe, sample
        self._rows = data.n if sample is None else sum(sample.counts.values())
        self.meter = Meter() if meter is None else meter
        self._names: dict[Handle, str] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> DaskWorkspace:
        return DaskWorkspace(self._data, self._recipe)

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        if keep:
            self._name(points)
        found: tuple[Array, Any] = self._run(Sweep(self._recipe, step, self._placed(points), self._sample))
        self.meter.rows += self._rows
        self._drop(points)
        return found

    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        self._name(points)
        sums: Array = self._run(Fold(self._recipe, step, self._placed(points), self._sample))
        self._drop(points)
        return sums

    def holds(self, x: Point) -> bool:
        return x.handle in self._names or not x.w.any()

    def sampled(self, m: int, rng: np.random.Generator) -> DaskWorkspace:
        """``m`` rows without replacement, from each partition about as many as its share; which ones is drawn there.

        Shares are rounded systematically, so that they have the right mean: every row has the probability ``m / n``.
        """
        facts, n = self._data.facts, self._data.n
        ends = np.cumsum([0, *(one.n for one in facts)]) * (m / n) + rng.uniform()
        drawn = np.diff(np.floor(ends)).astype(int)
        counts = {one.number: min(int(own), one.n) for one, own in zip(facts, drawn, strict=True) if own}
        sample = PartitionSample(int(rng.integers(2**63)), counts, n / m)
        return DaskWorkspace(self._data, self._recipe, self.meter, sample)

    def second_moments(self, step: Step, x: Point, wanted: Moments) -> Array:
        if wanted.centred:
            wanted = replace(wanted, centre=self._data.centre_row())
        job = SecondMoments(self._recipe, step, self._placed([x]), self._sample, wanted)
        self.meter.rows += self._rows
        moments: Array = self._run(job)
        return moments

    def _run(self, job: Any) -> Any:
        return self._data.rounds.run(job)

    def _placed(self, points: Sequence[Point]) -> tuple[Placed, ...]:
        return tuple(Placed(np.asarray(x.w), self._names.get(x.handle)) for x in points)

    def _name(self, points: Sequence[Point]) -> None:
        """Have the images of points held from now on; forming those that are new reads the data."""
        new = [x for x in points if x.handle not in self._names]
        for x in points:  # the last one is the one used most recently
            self._names[x.handle] = self._names.pop(x.handle) if x.handle in self._names else _new_name()
        if any(x.w.any() for x in new):
            self.meter.rows += self._rows

    def _drop(self, points: Sequence[Point]) -> None:
        """Make the images few again, but leave those of the points that are in use."""
        used = {x.handle for x in points}
        for handle in [handle for handle in self._names if handle not in used]:
            if len(self._names) <= MOST_IMAGES:
                return
            del self._names[handle]


def _new_name() -> str:
    return uuid.uuid4().hex[:16]
