"""`BlackBox`: any function that returns its value and gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, Self
from uuid import uuid4

import numpy as np

from projfree.algebra import UNIT, Minorant, Point, inner
from projfree.checks import Array, at_least, count, positive, real_array, shown
from projfree.objectives.base import SmoothFunction
from projfree.objectives.evaluation import Evaluation, Memory
from projfree.objectives.hull import Hull, Local

#: The unit in the last place of single precision.
SINGLE = float(np.finfo(np.float32).eps)


class BlackBox(SmoothFunction):
    """A smooth function behind ``fun(w) -> (value, gradient)``, so that JAX, torch or a simulator can sit there.

    Parameters
    ----------
    fun : callable
        Returns the value and the gradient at an array of shape ``shape``.
    shape : tuple of int
        Shape of the parameter; a single number for vectors.
    convex : bool
        Your word that the function is convex; certificates rest on it.
    smoothness : float, optional
        An upper bound on the Lipschitz constant of the gradient, for the rules that need one.
    rtol : float, optional
        The error that the value and the gradient may have, relative to what the function returns; by default 16 units
        in the last place of the dtype that it returns, or of single precision where all that it returned is exact in
        it although it comes as double. Certificates charge it.
    name : str, optional
        What tells this function from others in a checkpoint; without one no other process can go on from it.

    Examples
    --------
    >>> from projfree import BlackBox
    >>> f = BlackBox(lambda w: (w @ w, 2 * w), shape=(2,))
    >>> f.value(f.point([3.0, 4.0]))
    25.0
    """

    has_images = False

    def __init__(
        self,
        fun: Callable[[Array], tuple[Any, Any]],
        shape: tuple[int, ...] | int,
        convex: bool = True,
        smoothness: float | None = None,
        name: str = "",
        rtol: float | None = None,
    ) -> None:
        sides = (shape,) if isinstance(shape, int) else tuple(shape)
        self.fun, self.convex, self.name = fun, bool(convex), name
        self.shape = tuple(count("BlackBox(shape=...)", side) for side in sides)
        self._smoothness = None if smoothness is None else positive("BlackBox(smoothness=...)", smoothness)
        self._rtol = None if rtol is None else at_least("BlackBox(rtol=...)", rtol, 0.0)
        self._coarsest, self._single, self._long = 0.0, True, False
        self._calls, self._memory = 0, Memory()
        self._token = f"without a name, {uuid4().hex[:8]}"

    @property
    def work(self) -> int:
        """Calls of the function so far."""
        return self._calls

    def open(self) -> Self:
        f = copy(self)
        f._calls, f._memory = 0, Memory()
        return f

    def knows(self, x: Point) -> bool:
        return x.handle in self._memory

    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, keep: bool = False
    ) -> Evaluation:
        self.check_point(x)
        known = self._memory.recall(x, tangent)
        if known is None:
            value, gradient = self._call(x)
            known = self._memory.keep(Evaluation(x.alone(None), value, self._tangent(x.w, value, gradient)))
        return known

    def _call(self, x: Point) -> tuple[float, Array]:
        self._calls += 1
        value, gradient = _pair(self.fun(x.w.copy()))
        gradient = real_array("fun(w)[1]", gradient)
        self._coarsest = max(self._coarsest, float(np.finfo(gradient.dtype).eps), _eps(value))
        gradient = gradient.astype(np.float64)
        self._single = self._single and _is_single(gradient) and _is_single(np.asarray(value, dtype=np.float64))
        with np.errstate(over="ignore"):
            self._long = self._long or bool((gradient.astype(np.float16) != gradient).any())
        if gradient.shape != self.shape or not math.isfinite(value) or not np.isfinite(gradient).all():
            raise ValueError(
                f"`fun(w)` must return a finite value and a finite gradient of shape {self.shape}, "
                f"got {shown(value)} and shape {gradient.shape}; check the function at the point it was given."
            )
        return float(value), gradient

    @property
    def precision(self) -> float:
        """The unit in the last place of what the function has returned so far, relatively."""
        # Short numbers, such as whole ones, are exact in any precision and say nothing.
        return max(self._coarsest, SINGLE if self._single and self._long else 0.0)

    def _tangent(self, w: Array, value: float, gradient: Array) -> Minorant:
        along = inner(gradient, w)
        size = float(np.linalg.norm(gradient) * np.linalg.norm(w))
        rtol = 16.0 * self.precision if self._rtol is None else self._rtol
        error = UNIT * (4.0 * abs(value) + (w.size + 4.0) * size) + rtol * (abs(value) + size)
        return Minorant(value - along, gradient, error, rtol * float(np.linalg.norm(gradient)))

    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        if len(points) > 2:
            raise TypeError(
                "CorrectivePrimalAveraging needs images, which a BlackBox has not; use PrimalAveraging or FrankWolfe."
            )
        return CallHull(self, points, gradient, tilt)

    def smoothness(self) -> float:
        if self._smoothness is None:
            raise ValueError(
                "BlackBox has no `smoothness`; give it one, or use a rule that needs none: `Backtracking()` for "
                "Frank-Wolfe, `BacktrackingGradient()` for projected gradients."
            )
        return self._smoothness

    def fingerprint(self) -> str:
        # Two functions without a name are different, whatever they are called: averages of one bound no other.
        return f"blackbox {self.shape} {self.name or self._token}"


def _is_single(x: Array) -> bool:
    """Whether all numbers are exact in single precision."""
    with np.errstate(over="ignore"):
        return bool((x.astype(np.float32) == x).all())


def _pair(answer: Any) -> tuple[Any, Any]:
    """What a function has returned as a value and a gradient, or a sentence on what it must return."""
    try:
        value, gradient = answer
        float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`fun(w)` must return two things, the value as one real number and the gradient, got {shown(answer)}; "
            "return them as `value, gradient`."
        ) from error
    return value, gradient


def _eps(value: Any) -> float:
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


class CallHull(Hull):
    """A segment on which each look is a call of the function; the curvature is a difference of slopes."""

    def __init__(
        self, f: SmoothFunction, points: tuple[Point, ...], gradient: Array | None, tilt: Array | None
    ) -> None:
        super().__init__(points, gradient, tilt, f.convex)
        self.f = f
        self._last: tuple[float, float] | None = None

    def _evaluate(self, m: Array) -> Local:
        here = self.f.evaluate(self.mix(m) if m.any() else self.points[0])
        value, slope = here.value, inner(here.slope.gradient, self.points[1].w - self.points[0].w)
        place, curvature = float(m[0]), 0.0
        if self._last is not None and self._last[0] != place:
            curvature = (slope - self._last[1]) / (place - self._last[0])
        self._last = (place, slope)
        return Local(value, np.array([slope]), np.array([[curvature]]))

    @property
    def curvature(self) -> float:
        return self.f.smoothness() * self.squared_length
