r"""Matrix completion that also completes which entries were observed, as one convex problem.

With B the 0/1 matrix of the observed places, known everywhere, and X, S and T blocks of one larger matrix,

.. math:: \min_{M = \begin{pmatrix} X & S \\ T & \cdot \end{pmatrix}} f(X)
          + \frac{w}{\sum_i s_i} \bigl( \|B - S\|_F^2 + \|B - T\|_F^2 \bigr),

where f is the loss at the observed entries, offsets minimised out, and :math:`s_i` are its weights before they are
normalised. Rows of X and S share factors, and so do columns of X and T: what somebody looked at says something about
what they like. The added terms have as many entries as the matrix and are never formed: for factors

.. math:: \|B - U Q^T\|_F^2 = |B| - 2 \sum_{(i,j) \in B} U_i \cdot Q_j + \operatorname{tr}(U^T U\, Q^T Q),

and their tangent at :math:`S_0` is :math:`|B| - \|S_0\|^2 + 2 \langle S_0 - B, S\rangle`, sparse plus low rank.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from projfree.algebra import UNIT, FactoredShape, LowRank, Minorant, OnPattern, Point
from projfree.algebra.stacked import StackedPattern
from projfree.checks import Array, instance, positive
from projfree.objectives.base import SmoothFunction
from projfree.objectives.blackbox import CallHull
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.hull import Hull
from projfree.objectives.offsets import OffsetObjective


class ImplicitObjective(SmoothFunction):
    """An `OffsetObjective` for X and the squares of B for its neighbours S and T; the parameter is the larger matrix.

    Parameters
    ----------
    entries : OffsetObjective
        The loss at the observed entries of an m x n matrix.
    weight : float
        The weight w of the squares, positive.

    Examples
    --------
    >>> from projfree import Entries, Squared, as_data
    >>> from projfree.objectives.implicit import ImplicitObjective
    >>> from projfree.objectives.offsets import OffsetObjective
    >>> data = as_data(Entries([0, 0, 1], [0, 1, 0], (2, 2), factored=True), [5.0, 3.0, 4.0])
    >>> f = ImplicitObjective(OffsetObjective(Squared(), data, base=4.0), weight=0.5)
    >>> tuple(f.shape)
    (4, 4)
    """

    has_images = False

    def __init__(self, entries: OffsetObjective, weight: float) -> None:
        instance("entries", entries, OffsetObjective, "OffsetObjective(Squared(), data)")
        self.entries, self.implicit = entries, positive("ImplicitObjective(weight=...)", weight)
        m, n = entries.shape
        self.shape = FactoredShape((2 * m, 2 * n))
        total = entries.data.total_weight
        self.scale = self.implicit / float(entries.data.n if total is None else total)

    @property
    def work(self) -> int:
        return self.entries.work

    @property
    def pass_work(self) -> int:
        return self.entries.pass_work

    def open(self) -> Self:
        f = copy(self)
        f.entries = self.entries.open()
        return f

    def knows(self, x: Point) -> bool:
        return False

    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, keep: bool = False
    ) -> Evaluation:
        self.check_point(x)
        f, (m, n) = self.entries, self.entries.shape
        w: Any = x.w
        found = f.evaluate(f.point(w.low.block(slice(m), slice(n)), x.intercept), tangent=tangent)
        blocks = self._blocks(w.low)
        value = found.value + self._squares(blocks)
        slope = None if found.tangent is None else self._tangent(found.tangent, blocks)
        return Evaluation(x.alone(found.intercept), value, slope)

    def _blocks(self, w: LowRank) -> tuple[LowRank, LowRank]:
        """S and T, as factors."""
        (left, right), (m, n) = w.factors(), self.entries.shape
        return LowRank.of(left[:m], right[n:]), LowRank.of(left[m:], right[:n])

    def _squares(self, blocks: tuple[LowRank, LowRank]) -> float:
        at = self.entries.data.pattern
        each = [at.count - 2.0 * float(block.on_places(at).sum()) + block.inner(block) for block in blocks]
        return self.scale * max(sum(each), 0.0)

    def _tangent(self, own: Minorant, blocks: tuple[LowRank, LowRank]) -> Minorant:
        at, c = self.entries.data.pattern, self.scale
        gradient: Any = own.gradient
        ones = OnPattern(at, np.ones(at.count)) * (-2.0 * c)
        total = StackedPattern(gradient, ones, ones) + self._placed(blocks) * (2.0 * c)
        constant = own.constant + c * (2.0 * at.count - sum(block.inner(block) for block in blocks))
        # Gram matrices add as many terms as there are rows, and products of their entries may cancel.
        units = sum(self.shape) + 4.0 * sum(block.rank for block in blocks) + 16.0
        terms = 2.0 * at.count + sum(_size(block) ** 2 for block in blocks)
        error = own.constant_error + UNIT * (units * c * terms + abs(constant))
        moved = 2.0 * c * (2.0 * np.sqrt(at.count) + sum(_size(block) for block in blocks))
        return replace(
            own,
            constant=constant,
            gradient=total,
            constant_error=error,
            gradient_error=own.gradient_error + 8.0 * UNIT * moved,
        )

    def _placed(self, blocks: tuple[LowRank, LowRank]) -> LowRank:
        """The larger matrix with S and T at their places and zeros elsewhere."""
        (U, Q), (P, V) = (block.factors() for block in blocks)
        left, right = _diagonal(U, P), _diagonal(V, Q)
        k = V.shape[1]
        return LowRank.of(left, np.concatenate([right[:, k:], right[:, :k]], axis=1))

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        if len(points) > 2:
            raise TypeError(
                "CorrectivePrimalAveraging needs images, which an ImplicitObjective has not; use FrankWolfe."
            )
        return ImplicitHull(self, points, gradient, tilt)

    def curvature_along(self, direction: LowRank) -> float:
        """An upper bound on the second derivative along a line, sharp for squares without offsets."""
        f, (m, n) = self.entries, self.entries.shape
        along = direction.block(slice(m), slice(n)).on_places(f.data.pattern)
        own = f.loss.smoothness * float(np.sum(f.data.weights(slice(None)) * along**2))
        return own + 2.0 * self.scale * sum(block.inner(block) for block in self._blocks(direction))

    def smoothness(self) -> float:
        # Each entry of X, S and T has a curvature of its own; minimising the offsets out only lowers that of X.
        return max(self.entries.smoothness(), 2.0 * self.scale)

    def fingerprint(self) -> str:
        return f"implicit weight={self.implicit!r} {self.entries.fingerprint()}"


class ImplicitHull(CallHull):
    """A segment on which each look is an evaluation, and whose curvature is known."""

    f: ImplicitObjective

    @property
    def curvature(self) -> float:
        direction: Any = self.points[1].w - self.points[0].w
        return self.f.curvature_along(direction)


def _size(block: LowRank) -> float:
    """The product of the Euclidean norms of the factors, at least the norm of the matrix."""
    left, right = block.factors()
    return float(np.linalg.norm(left) * np.linalg.norm(right))


def _diagonal(first: Array, second: Array) -> Array:
    """The two matrices as the blocks of a diagonal."""
    out = np.zeros((len(first) + len(second), first.shape[1] + second.shape[1]))
    out[: len(first), : first.shape[1]], out[len(first) :, first.shape[1] :] = first, second
    return out
