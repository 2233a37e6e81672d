"""`Unsmoothed`: what a run on a smoothed loss reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from projfree.algebra import Point
from projfree.objectives.erm import Objective
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.rounding import CorneredRounding, Rounding
from projfree.objectives.row_steps import ValueSum


class Unsmoothed(Objective):
    r"""The mean of a loss that is not smooth, with the tangents of the smoothed loss below it.

    With :math:`f_\delta \le f \le f_\delta + c\,\delta`, a tangent of :math:`f_\delta` lies below f as well. Values are
    those of f, at the intercept that is best for :math:`f_\delta`; they cost one more read than those of
    :math:`f_\delta`.

    Parameters
    ----------
    f : Objective
        The mean of the smoothed loss.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import Objective, Quantile, as_data
    >>> f = Objective(Quantile(0.5, delta=1.0), as_data(np.array([[1.0], [2.0]]), [1.0, 4.0]))
    >>> x = f.point([1.0])
    >>> f.value(x), f.reported.value(x)
    (0.4375, 0.5)
    """

    def __init__(self, f: Objective) -> None:
        self.__dict__.update(f.open().__dict__)
        self.excess = 0.0

    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, keep: bool = False
    ) -> Evaluation:
        found = super().evaluate(x, also, tangent=tangent, keep=True)
        return replace(self._exact(found), also=tuple(self._exact(each) for each in found.also))

    def _exact(self, found: Evaluation) -> Evaluation:
        exact = self.workspace.fold(ValueSum(self.loss.exact, found.intercept), (found.point,))[0]
        return Evaluation(found.point, float(exact), found.tangent)

    def rounding(self, *, fine: bool = False) -> Rounding | None:
        found = super().rounding(fine=fine)
        return None if found is None else CorneredRounding(**vars(found))

    @property
    def reported(self) -> Objective:
        return self

    def recheck(self, w: Any, intercept: Any, z: Any, z_intercept: Any) -> tuple[Evaluation, Evaluation]:
        f = self.open()
        x, there = super().recheck(w, intercept, z, z_intercept)
        return f._exact(Evaluation(x.point, x.value)), there
