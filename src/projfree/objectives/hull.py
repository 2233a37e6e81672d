"""`Hull`: a function on the simplex spanned by a few points, which is all that a step rule or a correction sees."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from projfree.algebra import UNIT, Point, inner, mix, square
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.data.workspace import Workspace
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.numerics.root_finding import find_root
from projfree.objectives.row_steps import weigh

if TYPE_CHECKING:
    from projfree.objectives.intercept import Intercept

NEWTON_STEPS = 20
#: Bytes that the second derivatives of a block of rows take: those of all rows of a coupled loss may be very many.
BLOCK_BYTES = 1 << 24
#: Newton ends when the next step would bring less than this part of what was gained: on a simplex, and on a segment,
#: where the answer is called exact.
ENOUGH, EXACT = 1e-3, 1e-12
#: A slope along a segment counts as zero at this part of its first size: half of the digits. Within Newton a tenth is
#: plenty.
FLAT, ROUGH = 1e-8, 0.1
#: Where the function need not be convex, trial steps grow by this factor from the short step, a sure descent.
SCAN_GROWTH = 4.0
#: Values within so many roundings of each other are equal.
EQUAL = 8.0
#: Singular values of second derivatives in the intercept count as zero at this part of the largest: a few roundings.
RCOND = 1e-14


@dataclass(frozen=True, slots=True)
class Local:
    """Value, gradient and Hessian at one place of the hull."""

    value: float
    gradient: Array
    hessian: Array
    intercept: Array | None = None

    @classmethod
    def unpack(cls, sums: Array, size: int, intercept: Array | None = None) -> Local:
        """From the sums of `HullSums` in so many coordinates."""
        return cls(float(sums[0]), sums[1 : 1 + size], sums[1 + size :].reshape(size, size), intercept)

    def reduced(self, k: int) -> tuple[Local, Array | None]:
        """Eliminate all but the first ``k`` coordinates; also the answer of the others.

        The answer has one column for the gradient and one for each kept coordinate; least squares, because softmax
        does not see a common shift of its intercepts.
        """
        g, H = self.gradient, self.hessian
        if len(g) == k:
            return self, None
        answer: Array = np.linalg.lstsq(H[k:, k:], np.column_stack([g[k:], H[k:, :k]]), rcond=RCOND)[0]
        rest = H[:k, k:]
        return Local(self.value, g[:k] - rest @ answer[:, 0], H[:k, :k] - rest @ answer[:, 1:], self.intercept), answer


class Hull(ABC):
    r"""The function :math:`\phi(m) = f\big(p_0 + \sum_j m_j (p_j - p_0)\big)` on :math:`m \ge 0, \sum m \le 1`.

    Two points make a line search, three a correction. Nothing is computed before it is needed, and results are cached.
    A place is m followed by an intercept, if there is one: `at` minimises over it, `minimise` moves it along.

    Parameters
    ----------
    points : tuple of Point
        The corners.
    gradient : ndarray or None
        The gradient at the first point, for rules that need no more than it.
    tilt : ndarray or None
        Slopes of a linear function to add, one for each further point.
    convex : bool
        Whether the function is convex.
    """

    def __init__(self, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None, convex: bool) -> None:
        # Each point for itself, so that mixtures refer to these very points.
        self.points = tuple(p.alone(p.intercept) for p in points)
        self._gradient, self.convex = gradient, convex
        self.tilt = np.zeros(len(points) - 1) if tilt is None else tilt
        #: By the bytes of a place; those of m alone stand for m with the intercept minimised out.
        self._seen: dict[bytes, Local] = {}

    @abstractmethod
    def _evaluate(self, m: Array, b: Array) -> Local:
        """Value, gradient and Hessian in m and an intercept, which is empty where there is none; without the tilt."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """An upper bound on the second derivative along the segment of the first two points."""

    def _intercept(self, m: Array | None = None) -> Array:
        """The best intercept at ``m``, by default that of the first point about; empty where there is none."""
        return np.zeros(0)

    @property
    def gap(self) -> float:
        r""":math:`\langle g, p_0 - p_1\rangle` with g the gradient at the first point: the slope, negated."""
        if self._gradient is None:
            return -float(self.at(np.zeros(len(self.tilt))).gradient[0])
        return inner(self._gradient, self.points[0].w - self.points[1].w)

    @property
    def squared_length(self) -> float:
        """The squared distance of the first two points."""
        return square(self.points[1].w - self.points[0].w)

    def at(self, m: Array) -> Local:
        """Value, gradient and Hessian at ``m``, the intercept minimised out."""
        if m.tobytes() not in self._seen:
            self._keep(m, self._look(np.concatenate([m, self._intercept(m)])))
        return self._seen[m.tobytes()]

    def _keep(self, m: Array, here: Local) -> None:
        """Keep what is known at ``m``, its intercept eliminated."""
        self._seen[m.tobytes()] = here.reduced(len(m))[0]

    def _look(self, place: Array) -> Local:
        """Value, gradient and Hessian in all coordinates of a place."""
        if place.tobytes() not in self._seen:
            k = len(self.tilt)
            here = self._evaluate(place[:k], place[k:])
            gradient = np.append(here.gradient[:k] + self.tilt, here.gradient[k:])
            value = here.value + float(self.tilt @ place[:k])
            self._seen[place.tobytes()] = Local(value, gradient, here.hessian, here.intercept)
        return self._seen[place.tobytes()]

    def mix(self, m: Array) -> Point:
        """The point at ``m``, with the intercept that was found there."""
        here = self._seen.get(m.tobytes())
        terms = zip(m.tolist(), self.points[1:], strict=True)
        intercept = None if here is None else here.intercept
        return mix((1.0 - float(m.sum()), self.points[0]), *terms, intercept=intercept)

    def minimise(self, *starts: Array) -> Array:
        """The minimiser over the hull for a convex function, else a point no higher than the first point.

        Newton on the simplex, from the lowest of ``starts`` and never above it: the quadratic model is minimised
        exactly, then f on the segment to its minimiser.
        """
        if not self.convex:
            return self._scan()
        places = [np.concatenate([m, self._intercept()]) for m in starts]
        here, place = min([(self._look(place), place) for place in places], key=lambda pair: pair[0].value)
        first, enough = here.value, EXACT if len(self.tilt) == 1 else ENOUGH
        for _ in range(NEWTON_STEPS):
            direction = self._newton(place, here)
            decrease = -float(here.gradient @ direction)
            if decrease <= max(EQUAL * UNIT * abs(here.value), enough * (first - here.value)):
                break
            new = place + self._search(place, direction) * direction
            there = self._look(new)
            if there.value > here.value:
                break
            place, here = new, there
            if expired():
                break
        m = place[: len(self.tilt)]
        self._keep(m, here)
        return m

    def _newton(self, place: Array, here: Local) -> Array:
        """The step to the minimiser of the quadratic model, the intercept eliminated."""
        m = place[: len(self.tilt)]
        model, answer = here.reduced(len(m))
        step = minimise_on_corner(model.gradient - model.hessian @ m, model.hessian) - m
        return step if answer is None else np.concatenate([step, -answer[:, 0] - answer[:, 1:] @ step])

    def _search(self, place: Array, direction: Array, start: float = 1.0) -> float:
        """The minimiser of f on the segment, as a part of ``direction``."""
        look = self.at if len(place) == len(self.tilt) else self._look
        initial = abs(float(look(place).gradient @ direction))
        enough = FLAT if len(self.tilt) == 1 else ROUGH  # where the segment is all there is, it is the answer

        def slope(s: float) -> tuple[float, float, float]:
            here = look(place + s * direction)
            noise = math.inf if expired() else max(EQUAL * UNIT * abs(here.value), initial * enough)
            return float(here.gradient @ direction), float(direction @ here.hessian @ direction), noise

        return find_root(slope, start, 0.0, 1.0)

    def _scan(self) -> Array:
        """The lowest of geometrically spaced steps, polished; never above the first point."""
        gap, curvature = self.gap, self.curvature
        short = min(1.0, gap / curvature) if gap > 0.0 and curvature > 0.0 else 1.0
        steps = [0.0]
        while 0.0 < short < 1.0:
            steps.append(short)
            short *= SCAN_GROWTH
        steps.append(1.0)
        values = [self.at(np.array([s])).value for s in steps]
        best = int(np.argmin(values))
        if best == 0:
            return np.zeros(1)
        low, high = steps[best - 1], steps[min(best + 1, len(steps) - 1)]
        base, direction = np.array([low]), np.array([high - low])
        polished = base + self._search(base, direction, start=(steps[best] - low) / (high - low)) * direction
        return polished if self.at(polished).value < values[best] else np.array([steps[best]])


class QuadraticHull(Hull):
    """A quadratic on its hull; ``expand`` gives its value, slope and curvature at the first point."""

    def __init__(
        self,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
        convex: bool,
        expand: Callable[[tuple[Point, ...]], Local],
    ) -> None:
        super().__init__(points, gradient, tilt, convex)
        self._expand = expand

    @cached_property
    def _model(self) -> Local:
        return self._expand(self.points)

    def _evaluate(self, m: Array, b: Array) -> Local:
        value, g, H = self._model.value, self._model.gradient, self._model.hessian
        return Local(value + float(g @ m + 0.5 * m @ H @ m), g + H @ m, H)

    @property
    def curvature(self) -> float:
        return float(self._model.hessian[0, 0])

    def minimise(self, *starts: Array) -> Array:
        return minimise_on_corner(self._model.gradient + self.tilt, self._model.hessian)


class PredictionHull(Hull):
    """The mean of any loss: places are looked at by folds over the predictions of the points, without a read of X."""

    #: The intercept at the last place that was looked at.
    _last: Array | None = None

    def __init__(
        self,
        intercept: Intercept,
        workspace: Workspace,
        points: tuple[Point, ...],
        gradient: Array | None,
        tilt: Array | None,
    ) -> None:
        super().__init__(points, gradient, tilt, intercept.loss.convex)
        self.intercept, self.workspace = intercept, workspace

    def _evaluate(self, m: Array, b: Array) -> Local:
        own = b.reshape(self.intercept.outputs) if len(b) else None
        sums = self.workspace.fold(HullSums(self.intercept.loss, tuple(m.tolist()), own), self.points)
        return Local.unpack(sums, len(m) + len(b), own)

    def _intercept(self, m: Array | None = None) -> Array:
        guess = self.intercept.guess(self.points[0])
        if guess is None:
            return np.zeros(0)
        if m is None:
            return np.ravel(np.broadcast_to(guess, self.intercept.outputs))
        # Convex: from the last place looked at. Otherwise from the first point, so that a place has one value.
        start = self._last if self.convex and self._last is not None else guess
        (self._last,) = self.intercept.locate(self.workspace, (self.mix(m).starting_at(start),))
        return np.ravel(np.asarray(self._last))

    @property
    def curvature(self) -> float:
        intercept, ends = self.intercept, self.points[:2]
        if not np.isfinite(intercept.loss.smoothness):
            return intercept.lipschitz() * self.squared_length
        # The variance of the difference of predictions, or its mean square: no less, whatever the shift is.
        profiled = self.convex and intercept.constant is not None and intercept.measured
        shift = intercept.mean_prediction(ends[1].w - ends[0].w) if profiled else 0.0
        return intercept.loss.smoothness * float(self.workspace.fold(SquaredDifference(shift), ends)[0])


@dataclass(frozen=True)
class HullSums(Step):
    """Value, gradient and Hessian of the mean loss at the place ``m`` of a hull, in its coordinates and intercepts.

    ``b`` is the intercept there, if it is a coordinate; ``shifts`` are added to the predictions of each point.
    """

    loss: Loss
    m: tuple[float, ...]
    b: Array | None = None
    shifts: tuple[Array | float, ...] | None = None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        if self.shifts is not None:
            images = tuple([image + shift for image, shift in zip(images, self.shifts, strict=True)])
        u, ways = images[0], [image - images[0] for image in images[1:]]
        for c, d in zip(self.m, ways, strict=True):
            u = u + c * d
        u = u if self.b is None else u + self.b
        losses, derivative = self.loss.value_and_derivative(u, rows.y)
        r = weigh(derivative, rows.s)
        gradient = [np.vdot(r, d) for d in ways]
        H, cross, own = curvature_products(self.loss, self.loss.second, u, rows, ways, len(ways))
        if self.b is not None:
            gradient += np.ravel(r.sum(axis=0)).tolist()
            H = np.block([[H, cross], [cross.T, own]])
        return None, np.concatenate([[weigh(losses, rows.s).sum()], gradient, H.ravel()])


@dataclass(frozen=True)
class SquaredDifference(Step):
    """The weighted sum of the squares of the difference of two predictions, less a shift."""

    shift: Array | float

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        return None, np.array([weigh((images[1] - images[0] - self.shift) ** 2, rows.s).sum()])


def curvature_products(
    loss: Loss, curvature: Callable[[Array, Array], Array], u: Array, rows: Rows, ways: Sequence[Array], fresh: int
) -> tuple[Array, Array, Array]:
    """Weighted sums of products of prediction directions through the curvature of the loss at ``u``.

    Parameters
    ----------
    loss, curvature
        The loss, and its `second` or `majorant`.
    ways : sequence of m ndarray
        The directions, of the shape of ``u``.
    fresh : int
        The first so many have products with all.

    Returns
    -------
    products, cross, own : ndarray of shapes (fresh, m), (m, k) and (k, k)
        Among directions, of each direction with the intercept, and of the intercept with itself.
    """
    n, k, m = len(u), math.prod(u.shape[1:]), len(ways)
    products, cross, own = np.zeros((fresh, m)), np.zeros((m, k)), np.zeros((k, k))
    s = np.broadcast_to(rows.s, n)
    numbers = k * max(m, k if loss.coupled else 1)  # a coupled loss has a matrix for each row
    step = max(64, BLOCK_BYTES // (8 * numbers))
    for part in (slice(first, min(first + step, n)) for first in range(0, n, step)):
        along = np.stack([d[part].reshape(-1, k) for d in ways], axis=2)
        h = curvature(u[part], rows.y[part])
        if loss.coupled:
            h = h * s[part, None, None]
            weighted, summed = h @ along, h.sum(axis=0)
        else:
            h = weigh(h, s[part]).reshape(-1, k)
            weighted, summed = along * h[:, :, None], np.diag(h.sum(axis=0))
        products += along.reshape(-1, m)[:, :fresh].T @ weighted.reshape(-1, m)
        cross += weighted.sum(axis=0).T
        own += summed
    return products, cross, own


def minimise_on_corner(g: Array, H: Array) -> Array:
    r"""Minimise :math:`g^T m + m^T H m / 2` over :math:`m \ge 0, \sum m \le 1` for one or two coordinates.

    The minimum of a convex quadratic lies on one of the faces (the inside, three edges, three corners), where it
    has a closed form; the lowest of these candidates is returned, so that the answer is feasible whatever H is.
    """
    if len(g) == 1:
        return np.array([_on_segment(float(g[0]), float(H[0, 0]))])
    g0, g1 = float(g[0]), float(g[1])
    a, b, c = float(H[0, 0]), float(H[0, 1]), float(H[1, 1])
    candidates = [(_on_segment(g0, a), 0.0), (0.0, _on_segment(g1, c))]
    # The edge m0 + m1 = 1, from (1, 0) towards (0, 1).
    s = _on_segment(g1 - g0 + b - a, a - 2.0 * b + c)
    candidates.append((1.0 - s, s))
    det = a * c - b * b
    if det > 0.0:
        m0, m1 = (b * g1 - c * g0) / det, (b * g0 - a * g1) / det
        if m0 >= 0.0 and m1 >= 0.0 and m0 + m1 <= 1.0:
            candidates.append((m0, m1))
    return np.array(min(candidates, key=lambda m: _quadratic(m, (g0, g1), (a, b, c))))


def _on_segment(slope: float, curvature: float) -> float:
    if slope >= 0.0:
        return 0.0 if curvature >= 0.0 or slope + curvature / 2.0 >= 0.0 else 1.0
    return min(1.0, -slope / curvature) if curvature > 0.0 else 1.0


def _quadratic(m: tuple[float, float], g: tuple[float, float], h: tuple[float, float, float]) -> float:
    linear = g[0] * m[0] + g[1] * m[1]
    return linear + 0.5 * (h[0] * m[0] * m[0] + 2.0 * h[1] * m[0] * m[1] + h[2] * m[1] * m[1])
