"""`Hull`: a function on the simplex spanned by a few points, which is all that a step rule or a correction sees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from projfree.algebra import UNIT, Point, inner, mix, square
from projfree.checks import Array
from projfree.data.rows import Rows, Step
from projfree.deadline import expired
from projfree.losses.base import Loss
from projfree.numerics.root_finding import find_root
from projfree.objectives.row_steps import weigh

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


#: Value, gradient and Hessian of a function in m and an intercept, an empty array where there is none.
Look = Callable[[tuple[Point, ...], Array, Array], Local]


class Hull:
    r"""The function :math:`\phi(m) = f\big(p_0 + \sum_j m_j (p_j - p_0)\big)` on :math:`m \ge 0, \sum m \le 1`.

    Two points make a line search, three a correction. Nothing is computed before it is needed, and results are cached.
    A place is m followed by an intercept, if there is one: `at` minimises over it, `minimise` moves it along.

    Parameters
    ----------
    points : tuple of Point
        The corners.
    look : callable
        Evaluates f at a place, given the corners.
    bound : callable
        An upper bound on the second derivative along the segment of the first two points; not of a quadratic, where it
        is known.
    gradient : ndarray or None
        The gradient at the first point, for rules that need no more than it.
    tilt : ndarray or None
        Slopes of a linear function to add, one for each further point.
    convex, quadratic : bool
        Whether the function is convex, and whether it is a quadratic, of which a look at the first point tells all.
    intercept : ndarray or None
        That of the first point, or about it; None where there is none or it is eliminated.
    locate : callable or None
        The best intercept of a point, searched for from the one that it has.
    """

    def __init__(
        self,
        points: tuple[Point, ...],
        look: Look,
        bound: Callable[[], float] | None = None,
        *,
        gradient: Array | None = None,
        tilt: Array | None = None,
        convex: bool = True,
        quadratic: bool = False,
        intercept: Array | None = None,
        locate: Callable[[Point], Array] | None = None,
    ) -> None:
        # Each point for itself, so that mixtures refer to these very points.
        self.points = tuple(p.alone(p.intercept) for p in points)
        self.convex, self._evaluate, self._bound, self._gradient = convex, look, bound, gradient
        self._quadratic, self._locate = quadratic, locate
        self._first = np.zeros(0) if intercept is None else np.ravel(intercept)
        self._last = intercept
        self.tilt = np.zeros(len(points) - 1) if tilt is None else tilt
        #: By the bytes of a place; those of m alone stand for m with the intercept minimised out.
        self._seen: dict[bytes, Local] = {}

    @property
    def curvature(self) -> float:
        """An upper bound on the second derivative along the segment of the first two points."""
        if self._bound is not None:
            return self._bound()
        return float(self._look(np.zeros(len(self.tilt))).hessian[0, 0])

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
            place = m
            if self._locate is not None:
                b = self._locate(self.mix(m).starting_at(self._last))
                # Without convexity each search starts from the first point, so that a place has one value.
                self._last, place = b if self.convex else self._last, np.append(m, b)
            self._seen[m.tobytes()] = self._look(place).reduced(len(m))[0]
        return self._seen[m.tobytes()]

    def _look(self, place: Array) -> Local:
        """Value, gradient and Hessian in all coordinates of a place."""
        if place.tobytes() not in self._seen:
            k = len(self.tilt)
            if self._quadratic and place.any():
                here = self._look(np.zeros(k))
                gradient = here.gradient + here.hessian @ place
                here = Local(here.value + 0.5 * float((here.gradient + gradient) @ place), gradient, here.hessian)
            else:
                here = self._evaluate(self.points, place[:k], place[k:])
                gradient = np.append(here.gradient[:k] + self.tilt, here.gradient[k:])
                here = Local(here.value + float(self.tilt @ place[:k]), gradient, here.hessian, here.intercept)
            self._seen[place.tobytes()] = here
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
        if self._quadratic:
            here = self._look(np.zeros(len(self.tilt)))
            return minimise_on_corner(here.gradient, here.hessian)
        if not self.convex:
            return self._scan()
        places = [np.append(m, self._first) for m in starts]
        here, place = min([(self._look(place), place) for place in places], key=lambda pair: pair[0].value)
        k, first, enough = len(self.tilt), here.value, EXACT if len(self.tilt) == 1 else ENOUGH
        for _ in range(NEWTON_STEPS):
            # To the minimiser of the quadratic model, the intercept eliminated.
            model, answer = here.reduced(k)
            m = place[:k]
            direction = minimise_on_corner(model.gradient - model.hessian @ m, model.hessian) - m
            if answer is not None:
                direction = np.append(direction, -answer[:, 0] - answer[:, 1:] @ direction)
            decrease = -float(here.gradient @ direction)
            if decrease <= max(EQUAL * UNIT * abs(here.value), enough * (first - here.value)):
                break
            new = place + self._search(self._look, place, direction) * direction
            there = self._look(new)
            if there.value > here.value:
                break
            place, here = new, there
            if expired():
                break
        self._seen[place[:k].tobytes()] = here.reduced(k)[0]
        return place[:k]

    def _search(self, look: Callable[[Array], Local], place: Array, direction: Array, start: float = 1.0) -> float:
        """The minimiser of f on the segment, as a part of ``direction``."""
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
        share = self._search(self.at, base, direction, (steps[best] - low) / (high - low))
        polished = base + share * direction
        return polished if self.at(polished).value < values[best] else np.array([steps[best]])


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
        losses, r = self.loss.value(u, rows.y), weigh(self.loss.derivative(u, rows.y), rows.s)
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
        The loss, and its `second` or another curvature.
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
