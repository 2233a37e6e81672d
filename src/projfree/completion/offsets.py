"""Matrix completion with offsets of rows, of columns and of all entries."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any

from projfree.algebra import Point
from projfree.checks import at_least, instance
from projfree.completion.bias_terms import Offsets
from projfree.completion.offset_steps import ValueAndResidual
from projfree.completion.side_information import Neighbours
from projfree.data.entries import FactoredEntriesData
from projfree.losses.base import Loss
from projfree.objectives.erm import Objective


class OffsetObjective(Objective):
    """The weighted mean of a loss over observed entries, offsets minimised out.

    Parameters
    ----------
    loss : Loss
        A convex loss of one prediction.
    data : FactoredEntriesData
        From ``as_data(Entries(rows, cols, shape, factored=True), y)``.
    ridge : float
        The penalty of an offset, in ratings: that of so many ratings that ask for zero.
    kinds : tuple of bool
        Which offsets there are: one for all, one for each row, one for each column.
    base : float
        Added to every prediction; the centre that offsets are drawn towards.

    Examples
    --------
    >>> from projfree import Entries, SchattenBall, Squared, as_data, minimize
    >>> from projfree.completion.offsets import OffsetObjective
    >>> data = as_data(Entries([0, 0, 1], [0, 1, 0], (2, 2), factored=True), [5.0, 3.0, 4.0])
    >>> f = OffsetObjective(Squared(), data, ridge=1.0, base=4.0)
    >>> minimize(f, SchattenBall(1.2, radius=0.5)).status.converged
    True
    """

    data: FactoredEntriesData
    intercept_strategy: Offsets

    def __init__(
        self,
        loss: Loss,
        data: FactoredEntriesData,
        ridge: float = 3.0,
        kinds: tuple[bool, bool, bool] = (True, True, True),
        base: float = 0.0,
    ) -> None:
        instance("loss", loss, Loss, "OffsetObjective(Squared(), data)")
        instance("data", data, FactoredEntriesData, "as_data(Entries(rows, cols, shape, factored=True), y)")
        if not loss.convex or loss.coupled:
            raise TypeError(f"OffsetObjective needs a convex loss of one prediction, got {loss!r}; use `Squared()`.")
        if not math.isfinite(loss.smoothness):
            raise TypeError(
                f"OffsetObjective measures its ridge by the loss's largest curvature, and {loss!r} has none; use "
                "`Squared()`, `Huber()` or `Logistic()`."
            )
        self.ridge, self.kinds, self.base = at_least("OffsetObjective(ridge=...)", ridge, 1e-6), kinds, float(base)
        self.form, self.fit_intercept = "data", False
        kappa = loss.smoothness * self.ridge / data.n
        self._hold(loss, data, partial(Offsets, kinds=kinds, kappa=kappa, base=self.base))

    #: The weight of the squares of the observed places, and what squares are at zero, see `ImplicitObjective`.
    implicit = scale = known = 0.0
    neighbours: Neighbours | None = None

    @property
    def entries(self) -> OffsetObjective:
        """The part of the objective that is a loss at observed entries: all of it."""
        return self

    @cached_property
    def value_without_offsets(self) -> float:
        """The mean loss where every prediction is the base."""
        return self.data.mean_loss(self.loss.value, self.base)

    def slope_at(self, x: Point) -> Any:
        """The gradient at a point with its own offsets, which need not be the best ones; one read."""
        assert x.intercept is not None
        step = self.intercept_strategy.moved(ValueAndResidual(self.loss), x.intercept)
        return self.workspace.sweep(step, (x,))[1]

    def fingerprint(self) -> str:
        settings = f"offsets {self.kinds} ridge={self.ridge!r} base={self.base!r}"
        return f"{self.loss!r} {settings} {self.data.fingerprint()}"
