"""The hull of points of a completion problem with offsets."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from projfree.checks import Array
from projfree.completion.bias_terms import Offsets
from projfree.objectives.hull import HullSums, Local, PredictionHull


class OffsetHull(PredictionHull):
    """Any loss, with the offsets of the first point: an upper bound on the hull that touches it there."""

    intercept: Offsets

    @cached_property
    def _b(self) -> Array:
        """The offsets of the first point."""
        return self.intercept.offsets_at(self.workspace, self.points[0])

    def _evaluate(self, m: Array, b: Array) -> Local:
        step = self.intercept.moved(HullSums(self.intercept.loss, tuple(m.tolist())), self._b)
        here = Local.unpack(self.workspace.fold(step, self.points), len(m))
        return replace(here, value=here.value + self.intercept.penalty(self._b))

    def _intercept(self, m: Array | None = None) -> Array:
        return np.zeros(0)
