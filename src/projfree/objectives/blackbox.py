"""`BlackBox`: a user's function that returns its value and gradient, and a check of its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import uuid4

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner, mix, square
from projfree.algebra.minorant import size
from projfree.checks import Array, at_least, count, flag, positive, real_array, shown
from projfree.objectives.base import CalledFunction, Evaluation, FunctionStructure, SmoothFunction
from projfree.objectives.hull import Hull, Local, Look
from projfree.objectives.rounding import FEW

#: Machine epsilon of single precision.
SINGLE = float(np.finfo(np.float32).eps)


class NotFiniteError(ValueError):
    """A user's function returned NaN or infinity, or numbers whose tangent overflows."""


class BlackBox(CalledFunction):
    """A smooth function given by ``fun(w) -> (value, gradient)``, for example from JAX, torch or a simulator.

    Parameters
    ----------
    fun : callable
        Returns the value and the gradient at an array of shape ``shape``.
    shape : tuple of int
        Shape of the parameter; a single number for vectors.
    convex : bool
        Whether the function is convex. Lower bounds rely on this statement. A run in which a tangent exceeds the value
        at another point ends with the status `Status.NOT_CONVEX` and without a bound.
    smoothness : float, optional
        An upper bound on the Lipschitz constant of the gradient, for the rules that need one.
    rtol : float, optional
        Relative error of the value and the gradient; by default 16 units in the last place of the dtype that the
        function returns, or of single precision if it returns doubles that are all exact in single precision.
        Certificates account for it.
    name : str, optional
        Identifies the function in a checkpoint; without a name another process cannot resume from it.

    Examples
    --------
    >>> from projfree import BlackBox
    >>> f = BlackBox(lambda w: (w @ w, 2 * w), shape=(2,), convex=True)
    >>> f(f.point([3.0, 4.0]))
    25.0
    """

    def __init__(
        self,
        fun: Callable[[Array], tuple[Any, Any]],
        shape: tuple[int, ...] | int,
        *,
        convex: bool,
        smoothness: float | None = None,
        name: str = "",
        rtol: float | None = None,
    ) -> None:
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        self.fun, self.convex, self.name = fun, flag("BlackBox(convex=...)", convex), name
        self._smoothness = None if smoothness is None else positive("BlackBox(smoothness=...)", smoothness)
        self._rtol = None if rtol is None else at_least("BlackBox(rtol=...)", rtol, 0.0)
        # The largest epsilon of the dtypes returned, whether all numbers were exact in single precision, and whether
        # some were not in half precision.
        self._coarsest, self._single, self._long = 0.0, True, False
        structure = FunctionStructure(type(self).__name__, predictions=False, contradicted=False)
        super().__init__(tuple(count("BlackBox(shape=...)", side) for side in sides), structure)
        self._largest = 0.0
        self._token = f"without a name, {uuid4().hex[:8]}"

    def open(self) -> Self:
        f = super().open()
        f.structure = replace(self.structure, contradicted=False)
        return f

    def _evaluate(self, x: Point, tangent: bool) -> Evaluation:
        value, gradient = self._call(x)
        constant, rtol, product = value - inner(gradient, x.w), self._error, size(gradient) * size(x.w)
        error = UNIT * (4.0 * abs(value) + (x.w.size + 4.0) * product) + rtol * (abs(value) + product)
        if not (math.isfinite(constant) and math.isfinite(error)):
            raise NotFiniteError(
                f"the tangent of `fun(w)` must be finite, got the value {shown(value)} and a gradient of norm "
                f"{size(gradient):.3g}, which overflow; divide the function by a constant."
            )
        here = Evaluation(x.alone(None), value, Minorant(constant, gradient, error, rtol * size(gradient)))
        self._largest = max(self._largest, abs(value))
        if any(self._contradict(here, other) for other in self._memory):
            self.structure = replace(self.structure, contradicted=True)
        return here

    def _contradict(self, a: Evaluation, b: Evaluation) -> bool:
        """Return whether the tangent at one point exceeds the value at the other, which proves that f is not convex.

        The difference must exceed the square root of the relative error of its terms, so that it cannot be rounding.
        """
        tolerance, step = math.sqrt(max(self._error, UNIT)), b.point.w - a.point.w
        for here, there, rise in ((a, b, inner(a.slope.gradient, step)), (b, a, -inner(b.slope.gradient, step))):
            terms = self._largest + size(here.slope.gradient) * size(step)
            if here.value + rise > there.value + tolerance * terms:
                return True
        return False

    def _call(self, x: Point) -> tuple[float, Array]:
        self._calls += 1
        answer = self.fun(x.w.copy())
        try:
            value, gradient = answer
            float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"`fun(w)` must return two things, the value as one real number and the gradient, got {shown(answer)}; "
                "return them as `value, gradient`."
            ) from error
        gradient = real_array("fun(w)[1]", gradient)
        both = (np.asarray(value), gradient)
        self._coarsest = max([self._coarsest, *(np.finfo(x.dtype).eps for x in both if x.dtype.kind == "f")])
        with np.errstate(over="ignore"):
            self._single &= all(bool((x.astype(np.float32) == x).all()) for x in both)
            self._long |= bool((gradient.astype(np.float16) != gradient).any())
        wrong_shape = gradient.shape != self.shape
        if wrong_shape or not math.isfinite(value) or not np.isfinite(gradient).all():
            raise (ValueError if wrong_shape else NotFiniteError)(
                f"`fun(w)` must return a finite value and a finite gradient of shape {self.shape}, "
                f"got {shown(value)} and shape {gradient.shape}; check the function at the point it was given."
            )
        return float(value), gradient.astype(np.float64)

    @property
    def precision(self) -> float:
        """The relative precision of the numbers that the function has returned so far."""
        # Numbers with few digits, such as integers, are exact in any precision and do not count.
        return max(self._coarsest, SINGLE if self._single and self._long else 0.0)

    @property
    def _error(self) -> float:
        """The relative error of value and gradient."""
        return 2.0 * FEW * self.precision if self._rtol is None else self._rtol

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        def bound() -> float:
            return self.smoothness() * square(points[1].w - points[0].w)

        return Hull(self, points, secant_look(self), bound, gradient=gradient, convex=self.convex)

    def smoothness(self) -> float:
        if self._smoothness is None:
            raise ValueError(
                "BlackBox has no `smoothness`; give it one, or use a rule that needs none: `Backtracking()` for "
                "Frank-Wolfe, `BacktrackingGradient()` for projected gradients."
            )
        return self._smoothness

    def fingerprint(self) -> str:
        # Functions without a name differ, whatever their source: bounds of one do not hold for the other.
        return f"blackbox {self.shape} {self.name or self._token}"


def secant_look(f: SmoothFunction) -> Look:
    """Return a function that evaluates f on a segment, for a `Hull`; the curvature is a difference quotient."""
    last: list[tuple[float, float]] = []

    def look(points: tuple[Point, ...], m: Array, b: Array) -> Local:
        s, (x, v) = float(m[0]), points
        here = f.evaluate(mix((1.0 - s, x), (s, v)) if s else x)
        slope = inner(here.slope.gradient, v.w - x.w)
        before, old = last.pop() if last else (s, slope)
        last.append((s, slope))
        curvature = (slope - old) / (s - before) if s != before else 0.0
        return Local(here.value, np.array([slope]), np.array([[curvature]]))

    return look


#: Maximum number of entries that `check_gradient` compares, drawn at random.
MOST = 100


@dataclass(frozen=True)
class GradientCheck:
    """The result of `check_gradient` for the entry with the largest deviation from its difference quotient.

    Attributes
    ----------
    ok : bool
        Whether all entries agree up to the accuracy of the differences.
    index : tuple of int
        Index of the worst entry.
    found, expected : float
        The entry, and its difference quotient.
    error : float
        Their distance relative to the largest entry of the gradient.
    """

    ok: bool
    index: tuple[int, ...]
    found: float
    expected: float
    error: float

    def __str__(self) -> str:
        if self.ok:
            return f"the gradient agrees with differences of the value, to {self.error:.1e} of its largest entry."
        return (
            f"the gradient is wrong: its entry {self.index} is {self.found:.6g}, and differences of the value give "
            f"{self.expected:.6g}; they are {self.error:.1e} of the largest entry apart."
        )


def check_gradient(f: SmoothFunction | Callable[[Array], tuple[Any, Any]], w: Any, seed: int = 0) -> GradientCheck:
    """Compare the gradient of a function at a point with central differences of its value.

    An entry is wrong if its deviation exceeds ten times the error of the difference quotient plus 1e-6 of the largest
    entry.

    Parameters
    ----------
    f : SmoothFunction or callable
        A `BlackBox` or another objective, or the function ``fun(w) -> (value, gradient)`` itself.
    w : array
        The point. A random point is better than zero, which hides many mistakes.
    seed : int
        Seed of the selection of 100 entries, if the gradient has more. Each takes four calls.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import check_gradient
    >>> print(check_gradient(lambda w: (w @ w, w), np.array([1.0, 2.0])))  # doctest: +ELLIPSIS
    the gradient is wrong: its entry (1,) is 2, and differences of the value give 4; ...
    """
    w = np.asarray(w, dtype=np.float64)
    g = f if isinstance(f, SmoothFunction) else BlackBox(f, w.shape, convex=False)
    here = g.evaluate(g.point(w))
    gradient, eps = here.slope.gradient, max(2.0 * UNIT, getattr(g, "precision", 0.0))
    scale = max(float(np.abs(gradient).max(initial=0.0)), np.finfo(float).tiny)
    checks = []
    for place in np.random.default_rng(seed).permutation(w.size)[:MOST]:
        index = tuple(int(i) for i in np.unravel_index(place, w.shape))
        h, step = math.cbrt(eps) * max(1.0, abs(float(w[index]))), np.zeros(w.shape)
        step[index] = h
        above, below, high, low = (g(g.point(w + c * step)) for c in (1.0, -1.0, 2.0, -2.0))
        quotient, entry = (above - below) / (2.0 * h), float(gradient[index])
        noise = eps * (abs(here.value) + abs(above) + abs(below)) / h + abs((high - low) / (4.0 * h) - quotient)
        apart = abs(quotient - entry)
        share = apart / (10.0 * noise + 1e-6 * scale)
        checks.append((share, GradientCheck(share <= 1.0, index, entry, quotient, apart / scale)))
    return max(checks, key=lambda pair: pair[0])[1]
