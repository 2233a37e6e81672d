r"""Matrix completion that also completes which entries were observed, and features, as one convex problem.

With B the 0/1 matrix of the observed places, known everywhere, and X, S and T blocks of one larger matrix,

.. math:: \min_{M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix}} f(X)
          + \frac{w}{n} \bigl( \|B - S\|_F^2 + \|B - T\|_F^2 \bigr),

where f is the weighted mean of the loss at the n observed entries, offsets minimised out. Rows of X and S share
factors, and so do columns of X and T: what somebody looked at says something about what they like. The added terms
have as many entries as the matrix and are never formed: for factors

.. math:: \|B - U Q^T\|_F^2 = |B| - 2 \sum_{(i,j) \in B} U_i \cdot Q_j + \operatorname{tr}(U^T U\, Q^T Q),

and features of rows and columns are further columns of S and rows of T, with a weight of their own, see `Neighbours`;
those that are missing have none.
The tangent of the squares at :math:`S_0` is :math:`|B| - \|S_0\|^2 + 2 \langle S_0 - B, S\rangle`, sparse plus low
rank.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

from projfree.algebra import UNIT, FactoredShape, LowRank, Minorant, Point
from projfree.checks import Array, at_least, instance, positive
from projfree.completion.offsets import OffsetObjective
from projfree.completion.side_information import Features, Neighbours
from projfree.completion.stacked import StackedPattern
from projfree.objectives.base import FunctionStructure, SmoothFunction, check_point
from projfree.objectives.blackbox import secant_look
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hull import Hull, SquaredDifference


class ImplicitObjective(SmoothFunction):
    """An `OffsetObjective` for X and squares for its neighbours S and T; the parameter is the larger matrix.

    Parameters
    ----------
    entries : OffsetObjective
        The loss at the observed entries of an m x n matrix.
    weight : float
        The weight w of the squares of B; zero where B is left out, and features are not.
    features : pair of OnPattern or None
        Features of the rows, m x d, and of the columns, n x e; those that are NaN are not observed.
    features_weight : float
        The weight of their squares, positive.

    Examples
    --------
    >>> from projfree import Entries, Squared, as_data
    >>> from projfree.completion.implicit import ImplicitObjective
    >>> from projfree.completion.offsets import OffsetObjective
    >>> data = as_data(Entries([0, 0, 1], [0, 1, 0], (2, 2), factored=True), [5.0, 3.0, 4.0])
    >>> f = ImplicitObjective(OffsetObjective(Squared(), data, base=4.0), weight=0.5)
    >>> tuple(f.shape)
    (4, 4)
    """

    def __init__(
        self,
        entries: OffsetObjective,
        weight: float,
        features: Features = (None, None),
        features_weight: float = 1.0,
    ) -> None:
        instance("entries", entries, OffsetObjective, "OffsetObjective(Squared(), data)")
        least = positive if features == (None, None) else partial(at_least, lowest=0.0)
        self.entries, self.implicit = entries, least("ImplicitObjective(weight=...)", weight)
        self.features_weight = positive("ImplicitObjective(features_weight=...)", features_weight)
        total = float(entries.data.n)
        self.scale = self.implicit / total
        self.neighbours = Neighbours(entries.data.pattern, self.scale, features, self.features_weight / total)
        (m, n), (below, beside) = entries.shape, self.neighbours.extra
        self.shape = FactoredShape((m + below, n + beside))
        lowest = entries.structure.least  # squares are not negative
        self.structure = FunctionStructure(type(self).__name__, predictions=False, least=lowest)

    @property
    def known(self) -> float:
        """The squares at zero."""
        return self.neighbours.known

    @property
    def passes(self) -> float:
        return self.entries.passes

    def open(self) -> Self:
        f = copy(self)
        f.entries = self.entries.open()
        return f

    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, read: bool = True, **_: bool
    ) -> Evaluation:
        check_point(self, x)
        if not read:
            return Evaluation(x, math.nan)
        f, (m, n) = self.entries, self.entries.shape
        w: Any = x.w
        found = f.evaluate(f.point(w.low.block(slice(m), slice(n)), x.intercept), tangent=tangent)
        blocks = self.neighbours.blocks(w.low)
        value = found.value + self.neighbours.value(blocks)
        slope = None if found.tangent is None else self._tangent(found.tangent, blocks)
        return Evaluation(x.alone(found.intercept), value, slope)

    def _tangent(self, own: Minorant, blocks: tuple[LowRank, LowRank]) -> Minorant:
        near, gradient = self.neighbours, cast("Any", own.gradient)
        predicted = near.predicted(blocks)
        total = StackedPattern(gradient, *near.on_patterns(predicted)) + near.placed(blocks)
        parts = [part for _, part in near.parts(blocks)]
        constant = own.constant + near.known - near.square(blocks, predicted)
        # Gram matrices add as many terms as there are rows, and products of their entries may cancel; what is taken off
        # for missing features are as many terms as there are of these, each a sum over components.
        terms, missing = sum(part.own.shape[1] for part in parts), sum(len(values) for values in predicted)
        units = sum(self.shape) + 4.0 * terms + 16.0 + (missing + 4.0 * terms if missing else 0.0)
        squares, sizes = zip(*(part.sizes for part in parts), strict=True)
        error = own.constant_error + UNIT * (units * (near.known + sum(squares)) + abs(constant))
        moved = sum(pull.size() for pull in near.pulls) + (2.0 + (terms if missing else 0.0)) * sum(sizes)
        return replace(
            own,
            constant=constant,
            gradient=total,
            constant_error=error,
            gradient_error=own.gradient_error + 8.0 * UNIT * moved,
        )

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        if len(points) > 2:
            raise TypeError(
                "CorrectivePrimalAveraging needs images, which an ImplicitObjective has not; use FrankWolfe."
            )

        def bound() -> float:
            return self.curvature_along(points[1].w - points[0].w)

        return Hull(points, secant_look(self), bound, gradient=gradient, tilt=tilt, convex=self.convex)

    def curvature_along(self, direction: Any) -> float:
        """An upper bound on the second derivative along a line, sharp for squares without offsets."""
        f, (m, n), near = self.entries, self.entries.shape, self.neighbours
        ends = f.point(LowRank((m, n), ())), f.point(direction.block(slice(m), slice(n)))
        own = f.loss.smoothness * float(f.workspace.fold(SquaredDifference(0.0), ends)[0])
        blocks = near.blocks(direction)
        return own + 2.0 * near.square(blocks, near.predicted(blocks))

    def smoothness(self) -> float:
        # Each entry of X, S and T has a curvature of its own; minimising the offsets out only lowers that of X.
        return max(self.entries.smoothness(), 2.0 * max(self.scale, self.neighbours.weight))

    def fingerprint(self) -> str:
        features = f"features {self.neighbours.fingerprint()} weight={self.features_weight!r}"
        return f"implicit weight={self.implicit!r} {features} {self.entries.fingerprint()}"
