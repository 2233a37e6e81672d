"""`SmoothFunction`: the methods that every solver is written in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.algebra import FactoredShape, Minorant, Pattern, Point, Structured, frozen
from projfree.checks import Array, all_finite, real_array
from projfree.objectives.evaluation import Evaluation
from projfree.objectives.workload import Workload

if TYPE_CHECKING:
    from projfree.losses.base import Loss
    from projfree.objectives.hessian import Hessian
    from projfree.objectives.hull import Hull
    from projfree.objectives.quadratic import QuadraticForm
    from projfree.objectives.rounding import Rounding
    from projfree.sets.base import ConstraintSet


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
        Whether predictions of points are known, so that the function on a hull of points costs no pass.
    quadratic : bool
        Whether the function is a quadratic of its parameter, whether or not its matrix can be formed.
    excess : float
        By how much the reported function may exceed this one, where this is a smoothed form of it.
    """

    shape: tuple[int, ...]
    convex: bool = True
    rows: int | None = None
    has_images: bool = True
    quadratic: bool = False
    excess: float = 0.0

    @property
    @abstractmethod
    def work(self) -> int:
        """What was read so far in this function's workspace: rows, products or calls."""

    @property
    def pass_work(self) -> int:
        """The work of one pass; whole numbers, so that sums of passes are exact."""
        return 1

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self.work / self.pass_work

    @abstractmethod
    def open(self) -> Self:
        """The same function with a workspace of its own, which remembers nothing and has read nothing."""

    def reopened(self, work: int) -> Self:
        """`open`, and go on counting from what earlier workspaces have read, where that decides anything."""
        return self.open()

    @property
    def intercept_shape(self) -> tuple[int, ...] | None:
        """The shape of an intercept, None where there is none or where any will do."""
        return None

    @abstractmethod
    def evaluate(
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, keep: bool = False, near: bool = False
    ) -> Evaluation:
        """The value and the tangent at ``x``.

        Parameters
        ----------
        x : Point
            Of this function or another one; the point itself stays as it is.
        also : tuple of Point
            Points whose values are wanted too if they come with the same read; where they do not, they are left out.
        tangent : bool
            Whether a tangent is wanted; a value alone may cost no read.
        keep : bool
            Whether the predictions of ``x`` are to be kept, because a search from there may follow.
        near : bool
            Whether to take the intercepts that points have instead of the best ones, which saves the search for them.
        """

    def recomputed(self, x: Point) -> Evaluation | None:
        """The evaluation of ``x`` in this workspace, if it is as good as one in a fresh workspace; else None."""
        return None

    def value(self, x: Point) -> float:
        """The value at ``x``; costs no read where the workspace knows the predictions of ``x``."""
        return self.evaluate(x, tangent=False).value

    def minorant(self, x: Point) -> Minorant:
        """The tangent at ``x``."""
        return self.evaluate(x).slope

    @abstractmethod
    def hull(self, points: tuple[Point, ...], gradient: Array | None = None, tilt: Array | None = None) -> Hull:
        """The function on the simplex spanned by ``points``, see `Hull`."""

    @abstractmethod
    def smoothness(self) -> float:
        """An upper bound on the Lipschitz constant of the gradient."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A string that tells this function from others."""

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        """An unbiased estimate of the gradient at ``x`` from ``m`` rows; its constant is minus infinity."""
        raise TypeError(f"{type(self).__name__} has no rows to sample from; use `sampling=FullBatch()`.")

    def hessian(
        self, x: Point, features: Array | None = None, rows: int | None = None, seed: int = 0
    ) -> Hessian | None:
        """The Hessian at ``x``, never with negative curvature; None where the function has none.

        Nothing is read before a matrix or a product is asked for.

        Parameters
        ----------
        features : ndarray, optional
            The features to which its matrix belongs, all by default.
        rows : int, optional
            The number of rows in a sample that it is formed from, drawn with ``seed``; all rows by default, and where
            the function has no rows.
        """
        return None

    @property
    def has_hessian(self) -> bool:
        """Whether the matrix of a `hessian` can be formed."""
        return type(self).hessian is not SmoothFunction.hessian

    def quadratic_form(self) -> QuadraticForm | None:
        """The function as a quadratic form of its columns, None where it is none; may cost one pass, which is kept."""
        return None

    @property
    def has_quadratic_form(self) -> bool:
        """Whether `quadratic_form` gives one; costs nothing."""
        return type(self).quadratic_form is not SmoothFunction.quadratic_form

    def workload(self) -> Workload:
        """What the choice of a solver depends on."""
        return Workload(type(self).__name__, outputs=math.prod(self.shape[1:]))

    @property
    def row_loss(self) -> Loss | None:
        """The loss of one row where the function is a mean of it over data, so that others can recompute it."""
        return None

    def reference(self, ball: ConstraintSet) -> Any:
        """The point whose value sets the scale of gaps where the minimum is close to zero: the centre of the set."""
        return ball.centre(self.shape)

    @property
    def term_size(self) -> float:
        """The size of the terms whose difference a value near zero is; zero where values are sums."""
        return 0.0

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

    @abstractmethod
    def knows(self, x: Point) -> bool:
        """Whether a value at ``x`` would cost no read."""

    def rounding(self, *, fine: bool = False) -> Rounding | None:
        """How far values and bounds move where rows are summed in another way; None where that is not known.

        A ``fine`` analysis reads the columns.
        """
        return None

    @property
    def least(self) -> float:
        """A number that no value is below, minus infinity where none is known."""
        return -math.inf

    @property
    def contradicted(self) -> bool | None:
        """Whether a tangent was found above a value elsewhere, so that the function is not convex.

        None where nobody has to look: only the users of functions of their own may state what is not so.
        """
        return None

    @property
    def pattern(self) -> Pattern | None:
        """The places of observed entries, where gradients live on them."""
        return None

    @property
    def reported(self) -> SmoothFunction:
        """The function whose value and bound a run reports; differs from the one that is run on if perturbed."""
        return self


def check_point(f: SmoothFunction, x: Point) -> None:
    """Raise ValueError if ``x`` does not have the shape of the parameter."""
    if x.w.shape != f.shape:
        raise ValueError(f"the point must have the shape {f.shape} of the parameter, got {x.w.shape}.")
