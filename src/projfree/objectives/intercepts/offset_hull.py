"""The hull of points of a completion problem with offsets."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from projfree.checks import Array
from projfree.objectives.hull import Local
from projfree.objectives.hull_steps import HullSums
from projfree.objectives.image_hull import RowHull
from projfree.objectives.intercepts.matrix_offsets import Offsets


class OffsetHull(RowHull):
    """Any loss, with the offsets of the first point: an upper bound on the hull that touches it there."""

    intercept: Offsets

    @cached_property
    def b(self) -> Array:
        """The offsets of the first point."""
        return self.intercept.offsets_at(self.workspace, self.points[0])

    def _evaluate(self, m: Array) -> Local:
        step = self.intercept.moved(HullSums(self.intercept.loss, ((tuple(m.tolist()), None),)), self.b)
        (here,) = self._folded(step, len(m), [None])
        return replace(here, value=here.value + self.intercept.penalty(self.b))

    @property
    def curvature(self) -> float:
        return self._bend(0.0)
