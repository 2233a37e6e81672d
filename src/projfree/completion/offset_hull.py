"""The hull of points of a completion problem with offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from projfree.checks import Array
from projfree.completion.bias_terms import Offsets
from projfree.data.rows import Step
from projfree.objectives.hull import HullPlace, Local, PredictionHull


class OffsetHull(PredictionHull):
    """Any loss, with the offsets of the first point: an upper bound on the hull that touches it there."""

    intercept: Offsets

    @cached_property
    def _b(self) -> Array:
        """The offsets of the first point."""
        return self.intercept.offsets_at(self.workspace, self.points[0])

    def _evaluate(self, places: Sequence[Array]) -> list[Local]:
        penalty = self.intercept.penalty(self._b)
        return [replace(here, value=here.value + penalty) for here in super()._evaluate(places)]

    def _step(self, places: tuple[HullPlace, ...]) -> Step:
        return self.intercept.moved(super()._step(places), self._b)

    def _start(self, m: Array) -> Array:
        return m

    def _profiled(self, m: Array) -> Array:
        return m
