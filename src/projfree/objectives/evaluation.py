"""`Evaluation`: the value and the tangent of a function at a point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from projfree.algebra import Handle, Minorant, Point, frozen
from projfree.checks import Array

#: How many evaluations a function remembers: those of an iterate, a vertex, a mixture and the last iterate.
MOST_EVALUATIONS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The value at a point and, if it was computed, the tangent there.

    Attributes
    ----------
    point : Point
        The point, with the intercept that belongs to it; no longer a mixture.
    value : float
        The value there, NaN where rows were sampled.
    tangent : Minorant or None
        The tangent there, or an estimate of it from sampled rows.
    also : tuple of Evaluation
        The values at further points that came with the same read.
    inner : Evaluation or None
        The evaluation of the reported function, where that is another function.
    rest : ndarray or None
        The derivative in the intercept, where that was as given; None where it was minimised out. The value is then one
        that the function takes or more, and the tangent is charged with the derivative.
    fresh : bool
        Whether nothing but the parameter went into it: its predictions were formed for it, not mixed or held before.
    """

    point: Point
    value: float
    tangent: Minorant | None = None
    also: tuple[Evaluation, ...] = ()
    inner: Evaluation | None = None
    rest: Array | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        # Nobody's later edits reach what a function remembers.
        if self.point.intercept is not None:
            frozen(self.point.intercept)
        if self.tangent is not None:
            frozen(self.tangent.gradient)

    @property
    def intercept(self) -> Array | None:
        """The intercept that belongs to the point."""
        return self.point.intercept

    @property
    def reported(self) -> Evaluation:
        """The evaluation of the function whose value a run reports."""
        return self if self.inner is None else self.inner

    @property
    def exact(self) -> bool:
        """Whether it has a tangent, not an estimate from sampled rows."""
        return self.tangent is not None and math.isfinite(self.tangent.constant)

    @property
    def slope(self) -> Minorant:
        """The tangent, which must have been computed."""
        assert self.tangent is not None
        return self.tangent


class Memory:
    """The last few evaluations of a function in one workspace."""

    def __init__(self) -> None:
        self._kept: dict[Handle, Evaluation] = {}

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()  # a copy remembers nothing

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._kept.values())

    def recall(self, x: Point, tangent: bool) -> Evaluation | None:
        """The evaluation of ``x``, None where there is none or its tangent is missing."""
        known = self._kept.get(x.handle)
        return None if known is None or (tangent and known.tangent is None) else known

    def keep(self, found: Evaluation) -> Evaluation:
        """Remember an evaluation and those that came with it; returns it."""
        kept = dict(self._kept)  # replaced at once, so that no other thread sees it half changed
        for each in (*found.also, found):
            old = kept.pop(each.point.handle, None)
            kept[each.point.handle] = each if old is None or each.tangent is not None else old
        self._kept = dict(list(kept.items())[-MOST_EVALUATIONS:])
        return found
