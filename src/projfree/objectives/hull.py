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
from projfree.numerics.corner import minimise_on_corner
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
#: A slope along a segment counts as zero at this part of its first size: half of the digits.
FLAT = 1e-8
#: Where the function need not be convex, trial steps grow by this factor from the short step, a sure descent.
SCAN_GROWTH, SCAN_MOST = 4.0, 40


@dataclass(frozen=True, slots=True)
class Local:
    """Value, gradient and Hessian at one place of the hull."""

    value: float
    gradient: Array
    hessian: Array
    intercept: Array | None = None

    @classmethod
    def unpack(cls, sums: Array, size: int, intercept: Array | None = None) -> Local:
        """From the sums of `HullSums` at a place of so many coordinates."""
        return cls(float(sums[0]), sums[1 : 1 + size], sums[1 + size :].reshape(size, size), intercept)


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
    def _evaluate(self, places: Sequence[Array]) -> list[Local]:
        """Value, gradient and Hessian in all coordinates of the places, without the tilt."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """An upper bound on the second derivative along the segment of the first two points."""

    def _start(self, m: Array) -> Array:
        """The place at ``m`` with a first guess of the intercept."""
        return m

    def _profiled(self, m: Array) -> Array:
        """The place at ``m`` with the best intercept."""
        return m

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
            self._note(m, self._looks([self._profiled(m)])[0])
        return self._seen[m.tobytes()]

    def _note(self, m: Array, here: Local) -> None:
        """Keep what is known at ``m``, its intercept eliminated; the next search for an intercept starts there."""
        gradient, hessian, _ = reduced(here.gradient, here.hessian, len(m))
        self._seen[m.tobytes()] = Local(here.value, gradient, hessian, here.intercept)

    def _looks(self, places: Sequence[Array]) -> list[Local]:
        """Value, gradient and Hessian in all coordinates of places, those that are new together."""
        new = {place.tobytes(): place for place in places if place.tobytes() not in self._seen}
        k = len(self.tilt)
        if new:
            for (key, place), here in zip(new.items(), self._evaluate(list(new.values())), strict=True):
                gradient = here.gradient.copy()
                gradient[:k] += self.tilt
                value = here.value + float(self.tilt @ place[:k])
                self._seen[key] = Local(value, gradient, here.hessian, here.intercept)
        return [self._seen[place.tobytes()] for place in places]

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
        places = [self._start(m) for m in starts]
        here, place = min(zip(self._looks(places), places, strict=True), key=lambda pair: pair[0].value)
        first, enough = here.value, EXACT if len(self.tilt) == 1 else ENOUGH
        for _ in range(NEWTON_STEPS):
            direction = self._newton(place, here)
            decrease = -float(here.gradient @ direction)
            if decrease <= max(8.0 * UNIT * abs(here.value), enough * (first - here.value)):
                break
            new = place + self._search(place, direction) * direction
            (there,) = self._looks([new])
            if there.value > here.value:
                break
            place, here = new, there
            if expired():
                break
        m = place[: len(self.tilt)]
        self._note(m, here)
        return m

    def _newton(self, place: Array, here: Local) -> Array:
        """The step to the minimiser of the quadratic model, the intercept eliminated."""
        k, m = len(self.tilt), place[: len(self.tilt)]
        g, H, answer = reduced(here.gradient, here.hessian, k)
        step = minimise_on_corner(g - H @ m, H) - m
        return step if answer is None else np.concatenate([step, -answer[:, 0] - answer[:, 1:] @ step])

    def _search(self, place: Array, direction: Array, start: float = 1.0) -> float:
        """The minimiser of f on the segment, as a part of ``direction``."""
        # A tenth of the first slope is plenty within Newton; where the segment is all there is, it is the answer.
        enough = FLAT if len(self.tilt) == 1 else 0.1

        def look(s: float) -> Local:
            there = place + s * direction
            return self.at(there) if len(there) == len(self.tilt) else self._looks([there])[0]

        def slope(s: float) -> tuple[float, float, float]:
            here = look(s)
            first, second = float(here.gradient @ direction), float(direction @ here.hessian @ direction)
            noise = math.inf if expired() else max(4.0 * UNIT * abs(here.value), abs(initial) * enough)
            return first, second, noise

        initial = float(look(0.0).gradient @ direction)
        return find_root(slope, start, 0.0, 1.0)

    def _scan(self) -> Array:
        """The lowest of geometrically spaced steps, polished; never above the first point."""
        gap, curvature = self.gap, self.curvature
        short = min(1.0, gap / curvature) if gap > 0.0 and curvature > 0.0 else 1.0
        steps = [0.0, *(s for k in range(SCAN_MOST) if (s := short * SCAN_GROWTH**k) < 1.0), 1.0]
        places = [np.array([s]) for s in steps]
        for m, here in zip(places, self._looks([self._profiled(m) for m in places]), strict=True):
            self._note(m, here)
        values = [self.at(m).value for m in places]
        best = int(np.argmin(values))
        if best == 0:
            return np.zeros(1)
        low, high = steps[best - 1], steps[min(best + 1, len(steps) - 1)]
        base, direction = np.array([low]), np.array([high - low])
        polished = base + self._search(base, direction, start=(steps[best] - low) / (high - low)) * direction
        return polished if self.at(polished).value < values[best] else np.array([steps[best]])


def reduced(g: Array, H: Array, k: int) -> tuple[Array, Array, Array | None]:
    """Gradient and Hessian in the first ``k`` coordinates with the others eliminated, and the others' answer.

    The answer has one column for the gradient and one for each kept coordinate; least squares, because softmax
    does not see a common shift of its intercepts.
    """
    if len(g) == k:
        return g, H, None
    answer: Array = np.linalg.lstsq(H[k:, k:], np.column_stack([g[k:], H[k:, :k]]), rcond=1e-14)[0]
    return g[:k] - H[:k, k:] @ answer[:, 0], H[:k, :k] - H[:k, k:] @ answer[:, 1:], answer


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

    def _evaluate(self, places: Sequence[Array]) -> list[Local]:
        value, g, H = self._model.value, self._model.gradient, self._model.hessian
        return [Local(value + float(g @ m + 0.5 * m @ H @ m), g + H @ m, H) for m in places]

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

    def _evaluate(self, places: Sequence[Array]) -> list[Local]:
        k, size, outputs = len(self.tilt), len(places[0]), self.intercept.outputs
        b = [place[k:].reshape(outputs) if size > k else None for place in places]
        step = self._step(tuple((tuple(place[:k].tolist()), c) for place, c in zip(places, b, strict=True)))
        sums = self.workspace.fold(step, self.points).reshape(len(places), -1)
        return [Local.unpack(own, size, c) for own, c in zip(sums, b, strict=True)]

    def _step(self, places: tuple[HullPlace, ...]) -> Step:
        return HullSums(self.intercept.loss, places)

    def _start(self, m: Array) -> Array:
        if self.intercept.constant is None:
            return m
        b = np.broadcast_to(np.asarray(self.intercept.guess(self.points[0])), self.intercept.outputs)
        return np.concatenate([m, np.ravel(b)])

    def _profiled(self, m: Array) -> Array:
        if self.intercept.constant is None:
            return m
        # Convex: from the last place looked at. Otherwise from the first point, so that a place has one value.
        start = self._last if self.convex and self._last is not None else self.intercept.guess(self.points[0])
        (self._last,) = self.intercept.locate(self.workspace, (self.mix(m).starting_at(start),))
        return np.concatenate([m, np.ravel(np.asarray(self._last))])

    @property
    def curvature(self) -> float:
        intercept, ends = self.intercept, self.points[:2]
        if not np.isfinite(intercept.loss.smoothness):
            return intercept.lipschitz() * self.squared_length
        # The variance of the difference of predictions, or its mean square: no less, whatever the shift is.
        profiled = self.convex and intercept.constant is not None and intercept.measured
        shift = intercept.mean_prediction(ends[1].w - ends[0].w) if profiled else 0.0
        return intercept.loss.smoothness * float(self.workspace.fold(SquaredDifference(shift), ends)[0])


#: The coordinates of a place of a hull, and the intercept there or None.
HullPlace = tuple[tuple[float, ...], Array | None]


@dataclass(frozen=True)
class HullSums(Step):
    """Value, gradient and Hessian of the mean loss at places of a hull, in their coordinates and intercepts.

    ``b`` is what is added to the predictions of each point, nothing by default.
    """

    loss: Loss
    places: tuple[HullPlace, ...]
    b: tuple[Array | float, ...] | None = None

    def block(self, rows: Rows, *images: Array) -> tuple[Array | None, Array]:
        if self.b is not None:
            images = tuple([image + b for image, b in zip(images, self.b, strict=True)])
        ways = [image - images[0] for image in images[1:]]
        return None, np.concatenate([self._at(rows, images[0], ways, m, b) for m, b in self.places])

    def _at(self, rows: Rows, u: Array, ways: list[Array], m: tuple[float, ...], b: Array | None) -> Array:
        for c, d in zip(m, ways, strict=True):
            u = u + c * d
        u = u if b is None else u + b
        losses, derivative = self.loss.value_and_derivative(u, rows.y)
        r = weigh(derivative, rows.s)
        gradient = [np.vdot(r, d) for d in ways]
        H, cross, own = curvature_products(self.loss, self.loss.second, u, rows, ways, len(ways))
        if b is not None:
            gradient += np.ravel(r.sum(axis=0)).tolist()
            H = np.block([[H, cross], [cross.T, own]])
        return np.concatenate([[weigh(losses, rows.s).sum()], gradient, H.ravel()])


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
