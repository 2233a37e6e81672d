"""What an objective is: the few methods that every solver is written in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from projfree.algebra import FactoredShape, Minorant, Pattern, Point, Structured, frozen
from projfree.checks import Array, all_finite, real_array
from projfree.objectives.evaluation import Bend, Evaluation
from projfree.objectives.workload import Workload

if TYPE_CHECKING:
    from projfree.losses.base import Loss
    from projfree.numerics.group_l1_qp import Columns
    from projfree.objectives.hessian_products import HessianProducts
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
        Whether points carry images, so that the function on a hull of points costs no pass.
    quadratic : bool
        Whether the function is a quadratic of its parameter, whether or not its matrix can be formed.
    """

    shape: tuple[int, ...]
    convex: bool = True
    rows: int | None = None
    has_images: bool = True
    quadratic: bool = False
    #: By how much the reported function may exceed this one, where this is a smoothed form of it.
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

    def alike(self) -> Self:
        """A shallow copy, faster than that of `copy`."""
        f = object.__new__(type(self))
        f.__dict__.update(self.__dict__)
        return f

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
        self, x: Point, also: tuple[Point, ...] = (), *, tangent: bool = True, keep: bool = False
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
            Whether the image of ``x`` is to be kept, because a search from there may follow.
        """

    def evaluate_near(self, x: Point) -> Evaluation:
        """The value and the tangent at ``x`` with the intercept that the point has, where a `bend` has told it.

        It takes one read, for the intercept is not searched for; functions without such an intercept evaluate as ever.
        """
        return self.evaluate(x, keep=True)

    def recomputed(self, x: Point) -> Evaluation | None:
        """The evaluation of ``x`` in this workspace, if it is as good as one in a fresh workspace; else None.

        That is so where its image was formed for it from the parameter alone, not mixed from others or held before.
        """
        return None

    def value(self, x: Point) -> float:
        """The value at ``x``; costs no read where the workspace knows the image of ``x``."""
        return self.evaluate(x, tangent=False).value

    def minorant(self, x: Point) -> Minorant:
        """The tangent at ``x``."""
        return self.evaluate(x).slope

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

    def estimate(self, x: Point, m: int, rng: np.random.Generator) -> Minorant:
        """An unbiased estimate of the gradient at ``x`` from ``m`` rows; its constant is minus infinity."""
        raise TypeError(f"{type(self).__name__} has no rows to sample from; use `sampling=FullBatch()`.")

    def hessian(self, x: Point) -> Array:
        """The Hessian at ``x`` as a ``(D, D)`` matrix, D the entries of a parameter; never with negative curvature.

        For functions that are not convex, the curvature of a convex quadratic model that touches them at ``x``.
        """
        raise TypeError(f"{type(self).__name__} has no Hessian; use CorrectivePrimalAveraging or FrankWolfe.")

    def bend(self, x: Point) -> Bend:
        """`hessian`, and how the intercept follows the parameter where `evaluate_near` takes one as given."""
        return Bend(self.hessian(x))

    def rough_bend(self, x: Point, m: int, rng: np.random.Generator) -> Bend:
        """`bend` of ``m`` rows that are drawn, where the function has rows: a matrix that is about right."""
        return self.bend(x)

    def hessian_among(self, x: Point, features: Array, places: Array | None = None) -> Array:
        """The part of `hessian` that belongs to some features, the rest of which is not formed where that saves work.

        Of shape ``(m, m)`` for m features where all outputs share it, else ``(m k, m k)`` for k outputs; with
        ``places`` only the rows that belong to the features there.
        """
        k = math.prod(self.shape[1:])
        entries = (features[:, None] * k + np.arange(k)).ravel()
        return rows_at(self.hessian(x)[np.ix_(entries, entries)], places, k)

    def hessian_columns(self, x: Point, features: Array) -> Columns | None:
        """The Hessian of some features through the columns of a table; None where `hessian_among` is to be used.

        For losses that couple outputs, an upper bound on the Hessian that does not.
        """
        return None

    @property
    def has_hessian(self) -> bool:
        """Whether `hessian` works."""
        return type(self).hessian is not SmoothFunction.hessian

    def hessian_at(self, x: Point) -> HessianProducts:
        """The Hessian at ``x`` through its products, about one read each; the same matrix that `hessian` forms.

        Quadratics have it whether or not they have that matrix.
        """
        from projfree.objectives.hessian_products import FormedProducts, SlopeProducts

        if self.quadratic and not self.has_hessian:
            return SlopeProducts(self)
        return FormedProducts(self.hessian(x), self.shape)

    def curvature_among(self, x: Point, points: tuple[Point, ...], others: tuple[Point, ...] = ()) -> Array:
        r"""The products :math:`\langle p, H(x)\, q\rangle` of ``points`` with themselves and then with ``others``.

        For functions that are not convex through the Hessian of a convex model, as in `hessian`; at most one read of
        the data, however many points there are.
        """
        raise TypeError(f"{type(self).__name__} has no curvature among points; use `corrections=0`.")

    @property
    def has_curvature(self) -> bool:
        """Whether `curvature_among` works."""
        return type(self).curvature_among is not SmoothFunction.curvature_among

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

    def reference(self, ball: ConstraintSet) -> Any:
        """The point whose value sets the scale of gaps where the minimum is close to zero: the centre of the set."""
        return ball.centre(self.shape)

    @property
    def term_size(self) -> float:
        """The size of the terms whose difference a value near zero is; zero where values are sums."""
        return 0.0

    def centred_intercept(self, w: Array) -> Array | None:
        """The intercept of a quadratic of rows at ``w``, None where there is none; no pass."""
        return None

    def intercept_reach(self, b: Array | None, largest: float) -> float:
        """How far ``b`` is from the best intercepts where predictions are up to ``largest``, added over outputs."""
        return 0.0

    def intercept_fits(self, b: Array, largest: float) -> bool:
        """Whether ``b`` may be the best intercept of a point whose predictions are up to ``largest``."""
        return True

    def recheck(self, w: Any, intercept: Any, z: Any, z_intercept: Any) -> tuple[Evaluation, Evaluation]:
        """The value at ``w`` and the tangent at ``z``, with intercepts as given where the function has some."""
        f = self.open()
        return f.evaluate(f.point(w), tangent=False), f.evaluate(f.point(z))

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

    def check_point(self, x: Point) -> None:
        """Raise a sentence where a point cannot be one of this function."""
        if x.w.shape != self.shape:
            raise ValueError(f"the point must have the shape {self.shape} of the parameter, got {x.w.shape}.")

    @abstractmethod
    def knows(self, x: Point) -> bool:
        """Whether a value at ``x`` would cost no read."""

    def rounding(self, *, fine: bool = False) -> Rounding | None:
        """How far values and bounds move where rows are summed in another way; None where that is not known."""
        return None

    @property
    def least(self) -> float:
        """A number that no value is below, minus infinity where none is known."""
        return -math.inf

    def reported_value(self, found: Evaluation) -> float:
        """The value that was found, but no less than what rounding may hide of it, where that is known."""
        return found.value

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


def rows_at(H: Array, places: Array | None, outputs: int) -> Array:
    """The rows of a Hessian that belong to the features at some places, each with all of its outputs."""
    if places is None:
        return H
    return np.asarray(H.reshape(-1, outputs, H.shape[1])[places].reshape(-1, H.shape[1]))
