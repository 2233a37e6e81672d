r"""Matrix completion with offsets of rows, of columns and of all: minimised out, with a ridge, outside the ball.

.. math:: F(X) = \min_b \sum_i s_i\,\ell\big(X_{r_i c_i} + o_i(b), y_i\big) + \tfrac12 \kappa \|b\|^2, \qquad
          o_i(b) = b_0 + b_{r_i} + b_{c_i}

For any b, with :math:`r_i = s_i\ell'` and h its sums over all, rows and columns, convexity and the ridge give

.. math:: F(X') \ge \sum_i (s_i\ell_i - r_i (u_i + o_i)) - \tfrac{1}{2\kappa}\|h\|^2 + \langle A^T r, X'\rangle,

which is what a tangent here is: true however inexactly the offsets were found, and tight where they are optimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra import UNIT, Image, Minorant, Pattern, Point
from projfree.checks import Array, at_least, instance
from projfree.data.factored_entries import FactoredEntriesData
from projfree.losses.base import Loss
from projfree.objectives.base import SmoothFunction
from projfree.objectives.hull import Hull
from projfree.objectives.offset_hull import OffsetHull, OffsetSquaresHull
from projfree.objectives.offset_map import Offsets
from projfree.objectives.workload import Workload

#: Newton steps for the offsets of one image, and what they may leave of the value: so little that bounds, which feel
#: the root of it, agree to all digits that are checked.
STEPS, ENOUGH = 60, 1e-20


class OffsetObjective(SmoothFunction):
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
    >>> from projfree.objectives.offsets import OffsetObjective
    >>> data = as_data(Entries([0, 0, 1], [0, 1, 0], (2, 2), factored=True), [5.0, 3.0, 4.0])
    >>> f = OffsetObjective(Squared(), data, ridge=1.0, base=4.0)
    >>> minimize(f, SchattenBall(1.2, radius=0.5)).status.converged
    True
    """

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
        self.loss, self.data, self.base = loss, data, float(base)
        self.ridge = at_least("OffsetObjective(ridge=...)", ridge, 1e-6)
        self.y, self.shape, self.rows = loss.targets(data.y), data.shape(()), data.n
        self.offsets = Offsets(data, kinds, loss.smoothness * self.ridge / data.n)

    @property
    def work(self) -> int:
        return self.data.meter.rows

    @property
    def pass_work(self) -> int:
        return self.data.n

    @property
    def pattern(self) -> Pattern | None:
        return self.data.pattern

    def smoothness(self) -> float:
        return self.loss.smoothness * self.data.smoothness(centred=False)

    def workload(self) -> Workload:
        name = f"{self.loss!r} with offsets"
        return Workload(name, outputs=1, stored=float(self.data.n * self.shape[0]))

    def fingerprint(self) -> str:
        settings = f"offsets {self.offsets.kinds} ridge={self.ridge!r} base={self.base!r}"
        return f"{self.loss!r} {settings} {self.data.fingerprint()}"

    def settled(self, x: Point) -> Array:
        """The image of ``x``; costs one read if part of it is pending."""
        pending, known = x.image.pending(), x.image.known() if x.image.terms else None
        image = np.zeros(self.data.n) if known is None else known
        for source, c in pending:
            met = self.data.image(source.vector)
            source.image = met
            image = image + c * met
        self.data.meter.rows += self.data.n if pending else 0
        x.image.settle(image)
        return image

    def profiled(self, x: Point) -> tuple[Array, Array]:
        """The image of ``x`` and its offsets."""
        u = self.settled(x)
        if x.intercept is None:
            x.anchored(self._profile(u, x.hint()))
        assert x.intercept is not None
        return u, x.intercept

    def _profile(self, u: Array, hint: Any) -> Array:
        b = self.offsets.zero() if hint is None else np.array(np.broadcast_to(hint, self.offsets.zero().shape))
        s, kappa, loss = self.data.weights(slice(None)), self.offsets.kappa, self.loss
        value, slope, full = self._look(u, b)
        for _ in range(STEPS):
            # By the ridge, the value is at most this far above its minimum over the offsets.
            left, size = ENOUGH * abs(value), float(slope @ slope)
            if 0.5 * size / kappa <= left:
                break
            share = min(max(0.3 * float(np.sqrt(2.0 * kappa * left / size)), 1e-12), 0.1)
            second = np.full(self.data.n, loss.smoothness) if loss.quadratic else loss.second(full, self.y)
            step, length = self.offsets.solve(slope, second * s, share if loss.quadratic else max(share, 1e-4)), 1.0
            promised, here = float(slope @ step), self._look(u, b - step)
            while here[0] > value - 0.1 * length * promised + 1e-14 * abs(value) and length > 1e-6:
                length *= 0.5
                here = self._look(u, b - length * step)
            if here[0] >= value and float(here[1] @ here[1]) >= size:  # nothing but rounding is left
                break
            b, (value, slope, full) = b - length * step, here
        return b

    def _look(self, u: Array, b: Array) -> tuple[float, Array, Array]:
        """The value of offsets, its derivative in them, and the predictions."""
        s, full = self.data.weights(slice(None)), u + self.offsets.apply(b) + self.base
        losses, derivative = self.loss.value_and_derivative(full, self.y)
        value = float(np.sum(losses * s)) + 0.5 * self.offsets.kappa * float(b @ b)
        return value, self.offsets.adjoint(derivative * s) + self.offsets.kappa * b, full

    def value(self, x: Point) -> float:
        if x.value is None:
            u, b = self.profiled(x)
            losses = self.loss.value(u + self.offsets.apply(b) + self.base, self.y)
            x.value = float(np.sum(losses * self.data.weights(slice(None)))) + 0.5 * self.offsets.kappa * float(b @ b)
        return x.value

    def minorant(self, x: Point) -> Minorant:
        u, b = self.profiled(x)
        s, kappa = self.data.weights(slice(None)), self.offsets.kappa
        full = u + self.offsets.apply(b)
        losses, derivative = self.loss.value_and_derivative(full + self.base, self.y)
        losses, r = losses * s, derivative * s
        h, along = self.offsets.adjoint(r), r * full
        value, drop = float(losses.sum()), 0.5 * float(h @ h) / kappa
        x.value = value + 0.5 * kappa * float(b @ b)
        units = max(self.data.summation(), self.offsets.most) + 2.0 * self.loss.rounding + 8.0
        terms = np.abs(losses).sum() + np.abs(along).sum() + float(np.abs(h) @ self.offsets.adjoint(np.abs(r))) / kappa
        error = UNIT * units * (float(terms) + drop + abs(self.base) * float(np.abs(r).sum())) + 1e-290
        gradient: Any = self.data.scatter(r)
        spread = UNIT * units * float(np.sqrt(max(float(r @ derivative), 0.0)))
        return Minorant(value - float(along.sum()) - drop, gradient, error, spread)

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        return self.data.sample(m, rng)

    def estimate(self, x: Point, rows: Array) -> Minorant:
        hint = x.hint()
        b = self.offsets.zero() if hint is None else np.asarray(hint)
        start, part, y = self.offsets.apply(b)[rows] + self.base, self.data.subset(rows), self.y[rows]

        def kernel(block: slice, u: Array) -> tuple[Array, Array]:
            return self.loss.derivative(u + start[block], y[block]) * part.weights(block), np.zeros(())

        gradient = part.accumulate([x.w], kernel)[1]
        assert gradient is not None
        return Minorant(-np.inf, gradient)

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        kind = OffsetSquaresHull if self.loss.quadratic else OffsetHull
        return kind(self, points, gradient, tilt)

    def point(self, w: Any, intercept: Any = None) -> Point:
        x = super().point(w, intercept)
        if not x.w.any():
            x.image = Image({})
        return x
