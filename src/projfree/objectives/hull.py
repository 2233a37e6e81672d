"""`Hull`: a function on the simplex spanned by a few points, for step rules and corrections."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import UNIT, Point, inner, mix, square
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.numerics.root_finding import find_root
from projfree.objectives.rounding import FEW
from projfree.objectives.row_steps import Curvature, by_column, total, weigh

if TYPE_CHECKING:
    from projfree.data.workspace import Workspace
    from projfree.objectives.base import SmoothFunction

NEWTON_STEPS = 20
#: Newton's method on a simplex stops when the predicted decrease is below this fraction of the total decrease so far;
#: on a segment it stops at roundoff, and a slope counts as zero below the square root of this fraction.
ENOUGH = 1e-3
#: For non-convex functions, trial steps grow by this factor from the short step, which is a guaranteed descent.
SCAN_GROWTH = 4.0
#: Relative cutoff for singular values of the second derivatives in the intercept.
RCOND = FEW * FEW * UNIT


@dataclass(frozen=True, slots=True)
class Local:
    """Value, gradient and Hessian at one point of the hull.

    ``noise`` is the rounding error of the derivative in each entry of the intercept.
    """

    value: float
    gradient: Array
    hessian: Array
    noise: Array = field(default_factory=lambda: np.zeros(0))

    def reduced(self, k: int) -> tuple[Local, Array | None]:
        """Eliminate all but the first ``k`` coordinates by a Schur complement; also return the eliminated ones.

        These are a linear function of the others: one column for the gradient and one for each remaining coordinate.
        They are a least-squares solution, because softmax is invariant to a common shift of its intercepts.
        """
        g, H = self.gradient, self.hessian
        if len(g) == k:
            return self, None
        answer: Array = np.linalg.lstsq(H[k:, k:], np.column_stack([g[k:], H[k:, :k]]), rcond=RCOND)[0]
        rest = H[:k, k:]
        return replace(self, gradient=g[:k] - rest @ answer[:, 0], hessian=H[:k, :k] - rest @ answer[:, 1:]), answer


@dataclass(frozen=True)
class HullSums(Step):
    """Compute value, gradient and Hessian of the mean loss at the coordinates ``m`` in the hull of some points.

    The variables are m and, if given, the intercept ``b``; the absolute sums of the derivative in b come last.
    ``shifts`` are added to the predictions of each point.
    """

    loss: Loss
    m: tuple[float, ...] = ()
    b: Array | None = None
    shifts: tuple[Array, ...] | None = None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        if self.shifts is not None:
            images = tuple([image + shift for image, shift in zip(images, self.shifts, strict=True)])
        u, ways = images[0], [image - images[0] for image in images[1:]]
        for c, d in zip(self.m, ways, strict=True):
            u = u + c * d
        u = u if self.b is None else u + self.b
        losses, r = self.loss.value(u, rows.y), weigh(self.loss.derivative(u, rows.y), rows.s)
        sums, curvature = [total(weigh(losses, rows.s)), *[np.vdot(r, d) for d in ways]], Curvature(self.loss, u, rows)
        if self.b is None:
            return None, np.concatenate([sums, curvature.products(ways, len(ways))[0].ravel()])
        slope, sizes, H = np.ravel(by_column(r)), np.ravel(by_column(np.abs(r))), curvature.summed()
        if ways:
            own, cross = curvature.products(ways, len(ways))
            H = np.block([[own, cross], [cross.T, H]])
        return None, np.concatenate([sums, slope, H.ravel(), sizes])

    def local(self, workspace: Workspace, points: tuple[Point, ...]) -> Local:
        """Return the sums over all rows; this needs no pass if the predictions of the points are cached."""
        sums, size = workspace.fold(self, points), len(self.m) + (0 if self.b is None else self.b.size)
        end = 1 + size + size * size
        noise = 2.0 * FEW * UNIT * sums[end:]
        return Local(float(sums[0]), sums[1 : 1 + size], sums[1 + size : end].reshape(size, size), noise)


#: Function of corners, m and an intercept (an empty array if there is none) that returns value, gradient and Hessian.
Look = Callable[[tuple[Point, ...], Array, Array], Local]


class Hull:
    r"""The function :math:`\phi(m) = f\big(p_0 + \sum_j m_j (p_j - p_0)\big)` on :math:`m \ge 0, \sum m \le 1`.

    Two points define a line search, three the step of a corrective method. Quantities are computed when
    needed, and cached.

    Parameters
    ----------
    f : SmoothFunction
        The function.
    points : tuple of Point
        The corners.
    look : callable
        Evaluates f at coordinates m and an intercept (an empty array if there is none), given the corners.
    bound : callable or None
        Returns an upper bound on the second derivative along the segment of the first two points. None for a quadratic
        function, which one evaluation at the first point determines.
    gradient : ndarray or None
        The gradient at the first point, for rules that need nothing else.
    convex : bool
        Whether the function is convex.
    intercept : ndarray or None
        The intercept of the first point, the initial value of the search; None if there is none or it is eliminated.
    """

    def __init__(
        self,
        f: SmoothFunction,
        points: tuple[Point, ...],
        look: Look,
        bound: Callable[[], float] | None = None,
        *,
        gradient: Array | None = None,
        convex: bool = True,
        intercept: Array | None = None,
    ) -> None:
        # Copies without references to other points, so that combinations refer to these points.
        self.points = tuple(p.alone(p.intercept) for p in points)
        self.convex, self._f, self._evaluate, self._bound, self._gradient = convex, f, look, bound, gradient
        self._b = np.zeros(0) if intercept is None else intercept
        self._zero = np.zeros(len(points) - 1)
        #: Slopes of an added linear function, one for each point but the first.
        self.tilt = self._zero
        self._seen: dict[bytes, Local] = {}
        self._mixtures: dict[bytes, Point] = {self._zero.tobytes(): self.points[0]}

    @property
    def curvature(self) -> float:
        """An upper bound on the second derivative along the segment of the first two points."""
        return float(self._look(self._zero).hessian[0, 0]) if self._bound is None else self._bound()

    @property
    def gap(self) -> float:
        r"""The negative slope :math:`\langle g, p_0 - p_1\rangle`, with the gradient g at the first point."""
        if self._gradient is None:
            return -float(self._look(np.append(self._zero, self._b)).gradient[0])
        return inner(self._gradient, self.points[0].w - self.points[1].w)

    @property
    def squared_length(self) -> float:
        """The squared distance of the first two points."""
        return square(self.points[1].w - self.points[0].w)

    def value(self, m: Array) -> float:
        """Return the value at ``m``, minimised over the intercept."""
        if self._bound is None:
            return self._look(m).value
        found = self._f.evaluate(self.mix(m), tangent=False)
        self._mixtures[m.tobytes()] = self.mix(m).starting_at(found.intercept)
        return found.value + float(self.tilt @ m)

    def mix(self, m: Array) -> Point:
        """Return the point at ``m``, with its intercept if that has been optimised."""
        if m.tobytes() not in self._mixtures:
            terms = zip(m.tolist(), self.points[1:], strict=True)
            self._mixtures[m.tobytes()] = mix((1.0 - float(m.sum()), self.points[0]), *terms)
        return self._mixtures[m.tobytes()]

    def _look(self, place: Array) -> Local:
        """Return value, gradient and Hessian at ``place``: m, followed by the intercept if there is one."""
        key, k = place.tobytes(), len(self.tilt)
        if key not in self._seen:
            if self._bound is None and place.any():
                here = self._look(self._zero)
                gradient = here.gradient + here.hessian @ place
                here = Local(here.value + 0.5 * float((here.gradient + gradient) @ place), gradient, here.hessian)
            else:
                here = self._evaluate(self.points, place[:k], place[k:])
                gradient = np.append(here.gradient[:k] + self.tilt, here.gradient[k:])
                here = replace(here, value=here.value + float(self.tilt @ place[:k]), gradient=gradient)
            self._seen[key] = here
        return self._seen[key]

    def minimise(self, *starts: Array) -> Array:
        """Return the minimiser over the hull; for a non-convex function a point that is not above the first one.

        Newton's method on the simplex, started at the lowest of ``starts``: each step minimises the quadratic model
        exactly, then f on the segment to its minimiser.
        """
        if self._bound is None:
            here = self._look(self._zero)
            return minimise_on_corner(here.gradient, here.hessian)
        if not self.convex:
            return self._scan()
        places = [np.append(m, self._b) for m in starts]
        here, place = min([(self._look(place), place) for place in places], key=lambda pair: pair[0].value)
        k, first = len(self.tilt), here.value
        for _ in range(NEWTON_STEPS):
            # Step to the minimiser of the quadratic model, with the intercept eliminated.
            model, answer = here.reduced(k)
            m = place[:k]
            direction = minimise_on_corner(model.gradient - model.hessian @ m, model.hessian) - m
            if answer is not None:
                direction = np.append(direction, -answer[:, 0] - answer[:, 1:] @ direction)
            decrease = -float(here.gradient @ direction)
            if decrease <= max(FEW * UNIT * abs(here.value), self._enough * (first - here.value)):
                break
            new = place + self._search(place, direction) * direction
            there = self._look(new)
            if there.value > here.value:
                break
            place, here = new, there
            if expired():
                break
        if self._b.size:
            x = self.mix(place[:k])
            self._mixtures[place[:k].tobytes()] = x.starting_at(place[k:].reshape(self._b.shape))
        return place[:k]

    @property
    def _enough(self) -> float:
        return UNIT if len(self.tilt) == 1 else ENOUGH

    def _search(self, place: Array, direction: Array, start: float = 1.0) -> float:
        """Return the minimiser of f on the segment, as a fraction of ``direction``."""
        enough = abs(float(self._look(place).gradient @ direction)) * math.sqrt(self._enough)

        def slope(s: float) -> tuple[float, float, float]:
            here = self._look(place + s * direction)
            noise = math.inf if expired() else max(FEW * UNIT * abs(here.value), enough)
            return float(here.gradient @ direction), float(direction @ here.hessian @ direction), noise

        return find_root(slope, start, 0.0, 1.0)

    def _scan(self) -> Array:
        """Return the step with the lowest value on a geometric grid, refined by Newton steps.

        Its value is at most that of the first point.
        """
        gap, curvature = self.gap, self.curvature
        short = min(1.0, gap / curvature) if gap > 0.0 and curvature > 0.0 else 1.0
        steps = [0.0]
        while 0.0 < short < 1.0:
            steps.append(short)
            short *= SCAN_GROWTH
        steps.append(1.0)
        values = [self.value(np.array([s])) for s in steps]
        best = int(np.argmin(values))
        if best == 0:
            return np.zeros(1)
        low, high, found = steps[best - 1], steps[min(best + 1, len(steps) - 1)], np.array([steps[best]])
        b = np.zeros(0) if not self._b.size else np.ravel(np.asarray(self.mix(found).intercept))
        share = self._search(np.append(low, b), np.append(high - low, 0.0 * b), (steps[best] - low) / (high - low))
        polished = np.array([low + share * (high - low)])
        return polished if self.value(polished) < values[best] else found


def minimise_on_corner(g: Array, H: Array) -> Array:
    r"""Minimise :math:`g^T m + m^T H m / 2` over :math:`m \ge 0, \sum m \le 1` for one or two coordinates.

    The minimum of a convex quadratic lies on a face (the interior, three edges, three corners), where it has a closed
    form. The best of these candidates is returned, so that the result is feasible for any H.
    """
    if len(g) == 1:
        return np.array([_on_segment(float(g[0]), float(H[0, 0]))])
    (g0, g1), a, b, c = g.tolist(), float(H[0, 0]), float(H[0, 1]), float(H[1, 1])
    s = _on_segment(g1 - g0 + b - a, a - 2.0 * b + c)  # on the edge from (1, 0) to (0, 1)
    candidates = [(_on_segment(g0, a), 0.0), (0.0, _on_segment(g1, c)), (1.0 - s, s)]
    det = a * c - b * b
    if det > 0.0:
        m0, m1 = (b * g1 - c * g0) / det, (b * g0 - a * g1) / det
        if m0 >= 0.0 and m1 >= 0.0 and m0 + m1 <= 1.0:
            candidates.append((m0, m1))
    values = [g0 * x + g1 * y + 0.5 * (a * x * x + 2.0 * b * x * y + c * y * y) for x, y in candidates]
    return np.array(candidates[int(np.argmin(values))])


def _on_segment(slope: float, curvature: float) -> float:
    if slope >= 0.0:
        return 0.0 if curvature >= 0.0 or slope + curvature / 2.0 >= 0.0 else 1.0
    return min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
