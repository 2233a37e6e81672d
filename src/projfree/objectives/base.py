"""What an objective is: the few methods that every solver is written in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.algebra import FactoredShape, Image, Minorant, Pattern, Point, Structured
from projfree.checks import Array, all_finite, real_array
from projfree.objectives.workload import Workload

if TYPE_CHECKING:
    from projfree.losses.base import Loss
    from projfree.objectives.hull import Hull
    from projfree.objectives.quadratic import QuadraticForm


class SmoothFunction(ABC):
    """A smooth function of a parameter of fixed shape.

    Attributes
    ----------
    shape : tuple of int
        Shape of the parameter.
    convex : bool
        Whether the function is convex; only then do tangents bound it from below.
    rows : int or None
        How many rows a sample may draw from, None where there is nothing to sample.
    has_images : bool
        Whether points carry images, so that the function on a hull of points costs no pass.
    quadratic : bool
        Whether the function is a quadratic of its parameter, whether or not its matrix can be formed.
    """

    shape: tuple[int, ...]
    convex: bool = True
    rows: int | None = None
    has_images: bool = True
    quadratic: bool = False

    @property
    @abstractmethod
    def work(self) -> int:
        """What was read so far: rows, products or calls."""

    @property
    def pass_work(self) -> int:
        """The work of one pass; whole numbers, so that sums of passes are exact."""
        return 1

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self.work / self.pass_work

    @abstractmethod
    def value(self, x: Point) -> float:
        """The value at ``x``; free where the image of ``x`` is known."""

    @abstractmethod
    def minorant(self, x: Point) -> Minorant:
        """The tangent at ``x``, which also settles the value and the image of ``x``."""

    @abstractmethod
    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        """The function on the simplex spanned by ``points``.

        Parameters
        ----------
        gradient : ndarray, optional
            The gradient at the first point, for rules that need no more than it.
        tilt : ndarray, optional
            Slopes of a linear function to add, one for each further point.
        """

    @abstractmethod
    def smoothness(self) -> float:
        """An upper bound on the Lipschitz constant of the gradient."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A string that tells this function from others."""

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """``m`` rows in increasing order, each with the same probability, in the way that is cheap to read."""
        raise TypeError(f"{type(self).__name__} has no rows to sample from; use `sampling=FullBatch()`.")

    def estimate(self, x: Point, rows: Array) -> Minorant:
        """An unbiased estimate of the gradient at ``x`` from some rows; its constant is minus infinity."""
        raise TypeError(f"{type(self).__name__} has no rows to sample from; use `sampling=FullBatch()`.")

    def hessian(self, x: Point) -> Array:
        """The Hessian at ``x`` as a ``(D, D)`` matrix, D the entries of a parameter; never with negative curvature.

        For functions that are not convex, the curvature of a convex quadratic model that touches them at ``x``.
        """
        raise TypeError(f"{type(self).__name__} has no Hessian; use CorrectivePrimalAveraging or FrankWolfe.")

    @property
    def has_hessian(self) -> bool:
        """Whether `hessian` works."""
        return type(self).hessian is not SmoothFunction.hessian

    def quadratic_form(self) -> QuadraticForm | None:
        """The function as a quadratic form of its columns, None where it is none; may cost one pass, which is kept."""
        return None

    @property
    def has_quadratic_form(self) -> bool:
        """Whether `quadratic_form` gives one; costs nothing."""
        return type(self).quadratic_form is not SmoothFunction.quadratic_form

    def diagonal_form(self) -> tuple[Array, Array] | None:
        """The diagonal of H and b where the function is a quadratic without products of two entries, else None.

        Both are vectors over the entries of a parameter, or over its pattern where it has one; costs one pass.
        """
        return None

    @property
    def has_diagonal_form(self) -> bool:
        """Whether `diagonal_form` gives one; costs nothing."""
        return type(self).diagonal_form is not SmoothFunction.diagonal_form

    def workload(self) -> Workload:
        """What one evaluation costs, for the plan."""
        stored = float((self.rows or self.shape[0]) * self.shape[0])
        return Workload(type(self).__name__, outputs=math.prod(self.shape[1:]), stored=stored)

    @property
    def row_loss(self) -> Loss | None:
        """The loss of one row where the function is a mean of it over data, so that others can recompute it."""
        return None

    def centred_intercept(self, w: Array) -> Array | None:
        """The intercept of a quadratic of rows at ``w``, None where there is none; no pass."""
        return None

    def recheck(self, w: Any, intercept: Any, z: Any, z_intercept: Any) -> tuple[float, Minorant]:
        """The value at ``w`` and the tangent at ``z``, with intercepts as given where the function has some."""
        return self.value(self.point(w)), self.minorant(self.point(z))

    def point(self, w: Any, intercept: Any = None) -> Point:
        """``w`` as a point whose image is still to be met."""
        if not isinstance(w, Structured) or not isinstance(self.shape, FactoredShape):
            w = all_finite("w", real_array("w", w)).astype(np.float64, copy=False)
        elif not w.finite():
            raise ValueError("`w` must be finite, got factors with NaN or infinity; look for an overflow upstream.")
        if w.shape != self.shape:
            raise ValueError(f"`w` must have the shape {self.shape} of the objective's parameter, got {w.shape}.")
        x = Point(w, Image.of(w))
        if intercept is not None:
            x.mass, x.moment = 1.0, np.asarray(intercept, dtype=np.float64)
        return x

    def knows(self, x: Point) -> bool:
        """Whether `value` would cost no pass."""
        return x.value is not None or x.settled

    def reported_value(self, x: Point) -> float:
        """The value at ``x``, but no less than what rounding may hide of it, where that is known."""
        return self.value(x)

    def refreshed(self, x: Point) -> Point:
        """``x`` with nothing but its parameter and a start for its intercept."""
        return self.point(x.w, x.hint())

    @property
    def pattern(self) -> Pattern | None:
        """The places of observed entries, where gradients live on them."""
        return None

    @property
    def reported(self) -> SmoothFunction:
        """The function whose value and bound a run reports; differs from the one that is run on if perturbed."""
        return self

    def stripped(self, m: Minorant) -> Minorant:
        """A minorant of this function as one of the reported function."""
        return m
