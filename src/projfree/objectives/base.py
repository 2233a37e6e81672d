"""`SmoothFunction`: the methods that every solver is written in, and `Evaluation`, what it finds at a point."""

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


#: How many evaluations a function remembers: those of an iterate, a vertex, a mixture and the last iterate.
MOST_EVALUATIONS = 4


@dataclass(frozen=True)
class FunctionStructure:
    """What is known of a function without evaluating it: what solvers, plans and certificates choose by.

    Attributes
    ----------
    name : str
        The function in a few words.
    n : int or None
        The number of rows, which samples are drawn from; None where there is nothing to sample.
    outputs : int
        Predictions for each row.
    quadratic, hessian : bool
        Whether the function is a quadratic of its parameter, and whether the matrix of a `hessian` can be formed; that
        of a quadratic is that of a `quadratic_form`.
    predictions : bool
        Whether predictions of points are known, so that the function on a hull of points costs no pass.
    own_rows, coupled : bool
        Whether each row belongs to a single column of the parameter, as with tasks; whether the outputs of a row share
        one loss.
    loss : Loss or None
        The loss of one row where the function is a mean of it over data, so that others can recompute it.
    least : float
        A number that no value is below, minus infinity where none is known.
    smoothing_error : float
        By how much the reported function may exceed this one, where this is a smoothed form of it.
    term_size : float or None
        The size of the terms whose difference a value near zero is, for losses without a largest curvature. The value
        at zero then sets the scale of gaps, because exponentials at a centre far from zero would dwarf any other.
    pattern : Pattern or None
        The places of observed entries, where gradients live on them.
    rounding : Rounding or None
        How far values and bounds move where rows are summed in another way; None where that is not known.
    contradicted : bool or None
        Whether a tangent was above a value elsewhere, so that the function is not convex. None where nobody has to
        look: only the users of functions of their own may state what is not so.
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
        """Whether `SmoothFunction.quadratic_form` gives one."""
        return self.quadratic and self.hessian


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The value at a point and, if it was computed, the tangent there.

    Attributes
    ----------
    point : Point
        The point, with the intercept that belongs to it; no longer a mixture.
    value : float
        The value there, NaN where rows were sampled.
    tangent : Minorant or None
        The tangent there, or an estimate of it from sampled rows.
    also : tuple of Evaluation
        The values at further points that came with the same read.
    inner : Evaluation or None
        The evaluation of the reported function, where that is another function.
    rest : ndarray or None
        The derivative in the intercept, where that was as given; None where it was minimised out. The value is then one
        that the function takes or more, and the tangent is charged with the derivative.
    fresh : bool
        Whether nothing but the parameter went into it: its predictions were formed for it, not mixed or held before.
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
        """The intercept that belongs to the point."""
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
    """The last few evaluations of a function in one workspace."""

    #: Replaced as a whole, so that no other thread sees it half changed.
    _kept: Mapping[Handle, Evaluation] = MappingProxyType({})

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        return Memory, ()  # a copy remembers nothing

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._kept.values())

    def recall(self, f: SmoothFunction, x: Point, tangent: bool) -> Evaluation | None:
        """The evaluation of ``x``, a point of ``f``; None where there is none or its tangent is missing."""
        if x.w.shape != f.shape:
            raise ValueError(f"the point must have the shape {f.shape} of the parameter, got {x.w.shape}.")
        known = self._kept.get(x.handle)
        return None if known is None or (tangent and known.tangent is None) else known

    def keep(self, found: Evaluation) -> Evaluation:
        """Remember an evaluation and those that came with it, out of reach of later edits; returns it."""
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
        What is known of the function without evaluating it.
    convex : bool
        Whether the function is convex; only then do tangents bound it from below.
    """

    shape: tuple[int, ...]
    structure: FunctionStructure
    convex: bool = True

    @property
    @abstractmethod
    def passes(self) -> float:
        """Passes over the data so far in this function's workspace, products with its matrix or calls."""

    @abstractmethod
    def open(self) -> Self:
        """The same function with a workspace of its own, which remembers nothing and has read nothing."""

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
        """The value and the tangent at ``x``, a point of this function or another one; the point stays as it is.

        Parameters
        ----------
        also : tuple of Point
            Points whose values are computed too if they come with the same read; else they are left out.
        tangent : bool
            Whether to compute the tangent; a value alone may cost no read.
        read : bool
            Whether the data may be read; else the value is NaN and the tangent None where they are not known.
        keep : bool
            Whether to keep the predictions of ``x``, because a search from there may follow.
        near : bool
            Whether to take the intercepts that points have instead of the best ones, which saves the search for them.
        """

    def __call__(self, x: Point) -> float:
        """The value at ``x``; costs no read where the workspace knows the predictions of ``x``."""
        return self.evaluate(x, tangent=False).value

    @abstractmethod
    def hull(self, points: tuple[Point, ...], gradient: Array | None = None) -> Hull:
        """The function on the simplex spanned by ``points``, given its gradient at the first one; see `Hull`."""

    @abstractmethod
    def smoothness(self) -> float:
        """An upper bound on the Lipschitz constant of the gradient."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A string that tells this function from others."""

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        """An unbiased estimate of the gradient at ``x`` from ``m`` rows; its constant is minus infinity."""
        raise TypeError(f"{type(self).__name__} has no rows to sample from; use `sampling=FullBatch()`.")

    def hessian(self, x: Point, features: Array | None = None) -> Hessian | None:
        """The Hessian at ``x``, never with negative curvature; None where the function has none.

        Its matrix belongs to ``features``, all by default. Nothing is read before a matrix or a product is asked for.
        """
        return None

    def quadratic_form(self) -> QuadraticForm | None:
        """The function as a quadratic form of its columns; may cost one pass, which is kept.

        None if ``structure.quadratic_form`` is False, and only then.
        """
        return None

    def point(self, w: Any, intercept: Any = None) -> Point:
        """A copy of ``w`` as a point; ``intercept`` is where the search for its intercept starts."""
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
        """The function whose value and bound a run reports; differs from the one that is run on if perturbed."""
        return self


class CalledFunction(SmoothFunction):
    """A function whose value and tangent are computed from the parameter alone, and remembered."""

    def __init__(self, shape: tuple[int, ...], structure: FunctionStructure) -> None:
        self.shape, self.structure = shape, structure
        self._calls, self._memory = 0, Memory()

    @abstractmethod
    def _evaluate(self, x: Point, tangent: bool) -> Evaluation:
        """The value at ``x`` and the tangent there, which may be left out where it is not asked for."""

    @property
    def passes(self) -> float:
        """Calls of the function, reads, or products with its matrix, so far."""
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
