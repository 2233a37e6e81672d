"""`SmoothFunction`: the interface between functions and solvers, and `Evaluation`, the value and tangent at a point."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.algebra import FactoredShape, Handle, Minorant, Pattern, Point, Structured, frozen
from projfree.checks import Array, all_finite, real_array

if TYPE_CHECKING:
    from projfree.losses.base import Loss
    from projfree.objectives.hessian import Hessian
    from projfree.objectives.hull import Hull
    from projfree.objectives.quadratic import QuadraticForm
    from projfree.objectives.rounding import Rounding


#: Maximum number of cached evaluations: those of an iterate, a vertex, a combination of both and the previous iterate.
MOST_EVALUATIONS = 4


@dataclass(frozen=True)
class FunctionStructure:
    """Properties of a function that are known without evaluating it, by which solvers and plans are chosen.

    Attributes
    ----------
    name : str
        A short description of the function.
    n : int or None
        Number of rows, from which samples are drawn; None if the function has no rows.
    outputs : int
        Number of predictions per row.
    quadratic, hessian : bool
        Whether the function is quadratic, and whether the matrix of a `hessian` can be formed; for a quadratic
        function, whether `quadratic_form` returns a form.
    predictions : bool
        Whether predictions of points are cached, so that evaluating the function on a hull of points costs no pass.
    own_rows, coupled : bool
        Whether each row depends on a single column of the parameter, as in multi-task problems; whether the loss
        couples the outputs of a row.
    loss : Loss or None
        The loss of a row if the function is a mean of losses over data, so that others can recompute it.
    least : float
        A constant lower bound of the function, minus infinity if unknown.
    smoothing_error : float
        Maximum difference between the reported function and this one, if this is a smoothed version of it.
    term_size : float or None
        Size of the terms that cancel in a value near zero, for losses without a smoothness constant. The scale of gaps
        is then the value at zero, because exponentials at a centre far from zero would be huge.
    pattern : Pattern or None
        Positions of observed entries, if gradients are stored on these only.
    rounding : Rounding or None
        Bounds on the rounding errors of values and bounds; None if unknown.
    contradicted : bool or None
        Whether a tangent exceeded the value at another point, which proves that the function is not convex. None if
        this is not checked, because convexity is known and not stated by a user.
    """

    name: str
    n: int | None = None
    outputs: int = 1
    quadratic: bool = False
    hessian: bool = False
    predictions: bool = True
    own_rows: bool = False
    coupled: bool = False
    loss: Loss | None = None
    least: float = -math.inf
    smoothing_error: float = 0.0
    term_size: float | None = None
    pattern: Pattern | None = None
    rounding: Rounding | None = None
    contradicted: bool | None = None

    @property
    def quadratic_form(self) -> bool:
        """Whether `SmoothFunction.quadratic_form` returns a form."""
        return self.quadratic and self.hessian


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The value at a point and, if it was computed, the tangent there.

    Attributes
    ----------
    point : Point
        The point with its intercept, without references to points it was combined from.
    value : float
        The value; NaN if rows were sampled.
    tangent : Minorant or None
        The tangent, or an estimate of it from sampled rows.
    also : tuple of Evaluation
        Values at further points, computed in the same pass.
    inner : Evaluation or None
        The evaluation of the reported function, if that is another function.
    rest : ndarray or None
        The derivative in the intercept if that was not optimised, else None. The value is then an upper bound of the
        function, and the tangent is lowered to account for the derivative.
    fresh : bool
        Whether the predictions were computed from the parameter, not combined or taken from the cache.
    """

    point: Point
    value: float
    tangent: Minorant | None = None
    also: tuple[Evaluation, ...] = ()
    inner: Evaluation | None = None
    rest: Array | None = None
    fresh: bool = False

    @property
    def intercept(self) -> Array | None:
        """The intercept of the point."""
        return self.point.intercept

    @property
    def reported(self) -> Evaluation:
        """The evaluation of the function whose value a run reports."""
        return self if self.inner is None else self.inner

    @property
    def slope(self) -> Minorant:
        """The tangent, which must have been computed."""
        assert self.tangent is not None
        return self.tangent


class Memory:
    """Cache of the last evaluations of a function in one workspace."""

    #: Replaced, never modified, so that other threads always read a consistent mapping.
    _kept: Mapping[Handle, Evaluation] = MappingProxyType({})

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()  # the cache is not copied

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._kept.values())

    def recall(self, f: SmoothFunction, x: Point, tangent: bool) -> Evaluation | None:
        """Return the cached evaluation of ``x``; None if there is none, or if it lacks a required ``tangent``."""
        if x.w.shape != f.shape:
            raise ValueError(f"the point must have the shape {f.shape} of the parameter, got {x.w.shape}.")
        known = self._kept.get(x.handle)
        return None if known is None or (tangent and known.tangent is None) else known

    def keep(self, found: Evaluation) -> Evaluation:
        """Cache an evaluation and those in its ``also`` with read-only arrays, and return it."""
        kept = dict(self._kept)
        for each in (*found.also, found):
            for own in (each.point.intercept, None if each.tangent is None else each.tangent.gradient):
                if isinstance(own, np.ndarray):
                    own.flags.writeable = False
            old = kept.pop(each.point.handle, None)
            kept[each.point.handle] = each if old is None or each.tangent is not None else old
        self._kept = dict(list(kept.items())[-MOST_EVALUATIONS:])
        return found


class SmoothFunction(ABC):
    """A smooth function of a parameter of fixed shape.

    Attributes
    ----------
    shape : tuple of int
        Shape of the parameter.
    structure : FunctionStructure
        Properties that are known without evaluating the function.
    convex : bool
        Whether the function is convex; only then are tangents lower bounds.
    """

    shape: tuple[int, ...]
    structure: FunctionStructure
    convex: bool = True

    @property
    @abstractmethod
    def passes(self) -> float:
        """Number of passes over the data, products with the matrix, or calls so far in this workspace."""

    @abstractmethod
    def open(self) -> Self:
        """Return the same function with a new empty workspace and a pass counter of zero."""

    @abstractmethod
    def evaluate(
        self,
        x: Point,
        also: tuple[Point, ...] = (),
        *,
        tangent: bool = True,
        read: bool = True,
        keep: bool = False,
        near: bool = False,
    ) -> Evaluation:
        """Return the value and the tangent at ``x``, which is not modified and may be a point of another function.

        Parameters
        ----------
        also : tuple of Point
            Points whose values are returned as well if the same pass can compute them, and omitted otherwise.
        tangent : bool
            Whether to compute the tangent; the value alone may not need a pass.
        read : bool
            Whether the data may be read; if not, an unknown value is NaN and an unknown tangent None.
        keep : bool
            Whether to cache the predictions of ``x`` for a subsequent line search.
        near : bool
            Whether to use the intercepts of the points instead of optimal ones, which avoids the search for these.
        """

    def __call__(self, x: Point) -> float:
        """Return the value at ``x``; this needs no pass if the predictions of ``x`` are cached."""
        return self.evaluate(x, tangent=False).value

    @abstractmethod
    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        """Return the function on the simplex spanned by ``points``, given its gradient at the first one; see `Hull`."""

    @abstractmethod
    def smoothness(self) -> float:
        """Return an upper bound on the Lipschitz constant of the gradient."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a string that identifies the function."""

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        """Return an unbiased estimate of the gradient at ``x`` from ``m`` rows; its constant is minus infinity."""
        raise TypeError(f"{type(self).__name__} has no rows to sample from; use `sampling=FullBatch()`.")

    def hessian(self, x: Point, features: Array | None = None) -> Hessian | None:
        """Return the Hessian at ``x`` with negative curvature of the loss replaced by its size; None if not available.

        Its matrix is restricted to ``features``, by default all. The data are read when a matrix or a product is
        needed.
        """
        return None

    def quadratic_form(self) -> QuadraticForm | None:
        """Return the function as a quadratic form, computed in one pass and cached.

        The result is None only if ``structure.quadratic_form`` is False.
        """
        return None

    def point(self, w: Any, intercept: Any = None) -> Point:
        """Copy ``w`` to a point; ``intercept`` is the initial value of the search for its intercept."""
        if not isinstance(w, Structured) or not isinstance(self.shape, FactoredShape):
            w = all_finite("w", real_array("w", w)).astype(np.float64, copy=False)
        elif not w.finite():
            raise ValueError("`w` must be finite, got factors with NaN or infinity; look for an overflow upstream.")
        if w.shape != self.shape:
            raise ValueError(f"`w` must have the shape {self.shape} of the objective's parameter, got {w.shape}.")
        if isinstance(w, np.ndarray):
            w = frozen(np.array(w, dtype=np.float64))
        return Point(w, None if intercept is None else frozen(np.array(intercept, dtype=np.float64)))

    @property
    def reported(self) -> SmoothFunction:
        """The function whose value and bound a run reports: the original one for perturbed and smoothed functions."""
        return self


class CalledFunction(SmoothFunction):
    """A function without data, computed from the parameter only, with a cache of evaluations."""

    def __init__(self, shape: tuple[int, ...], structure: FunctionStructure) -> None:
        self.shape, self.structure = shape, structure
        self._calls, self._memory = 0, Memory()

    @abstractmethod
    def _evaluate(self, x: Point, tangent: bool) -> Evaluation:
        """Compute the value and, if ``tangent``, the tangent at ``x``."""

    @property
    def passes(self) -> float:
        """Number of calls of the function, passes, or products with its matrix so far."""
        return float(self._calls)

    def open(self) -> Self:
        f = copy(self)
        f._calls, f._memory = 0, Memory()
        return f

    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, read: bool = True, **_: bool
    ) -> Evaluation:
        known = self._memory.recall(self, x, tangent)
        if known is None:
            known = self._memory.keep(self._evaluate(x, tangent)) if read else Evaluation(x, math.nan)
        further = also if read and self.structure.predictions else ()
        return replace(known, also=tuple(self.evaluate(p) for p in further)) if further else known
