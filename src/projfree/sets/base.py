"""What a constraint set is: pure geometry, knowing neither loss nor data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from projfree.algebra.minorant import inner, size
from projfree.algebra.structured import zeros
from projfree.checks import Array
from projfree.numerics.sums import UNIT

if TYPE_CHECKING:
    from projfree.numerics.flat_ball import FlatBall
    from projfree.sets.lp import LpBall
    from projfree.sets.weighted import WeightedSchattenBall

#: How far outside, relative to its size, a point may lie and still count as contained. Convex combinations and
#: singular values round by a few units in the last place; this is far above that and far below any use.
FEASIBILITY = 1e-11

#: The smallest exponent of a norm whose ball is round enough for averages of vertices to beat projections.
ROUND = 1.3

Shape = tuple[int, ...]
SupportCost = Literal["entries", "call", "singular values"]


class OracleResult(NamedTuple):
    """What `ConstraintSet.oracle` returns for a gradient g.

    Attributes
    ----------
    vertex : array
        A minimiser of the linear function g over the set.
    support : float
        The support of -g, or an upper bound on it; NaN where it was not computed.
    warm : object
        A warm start for the next call, None for sets that need none.
    """

    vertex: Any
    support: float
    warm: Any = None


def round_exponents(*exponents: float) -> bool:
    """Whether the ball of a norm with these exponents has no flat pieces, or nearly so."""
    return all(ROUND <= p < math.inf for p in exponents)


def slack(w: Array, rtol: float) -> float:
    """``rtol``, but never less than what rounding ``w`` to its own precision (float32) costs."""
    dtype = w.dtype if hasattr(w, "dtype") else np.asarray(w).dtype
    return max(rtol, 16.0 * float(np.finfo(dtype).eps)) if dtype.kind == "f" else rtol


class ConstraintSet(ABC):
    r"""A compact convex set :math:`C`, seen through its linear minimisation oracle.

    A set does not hold the shape of the points it is applied to: ``LpBall(2, radius=1)`` is the unit ball of
    every dimension. What depends on the dimension takes a ``shape``. No method changes its input, and ties and
    zeros are resolved the same way each time.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstraintSet, LpBall
    >>> C = LpBall(1, radius=2.0)
    >>> isinstance(C, ConstraintSet), C.lmo(np.array([1.0, -3.0])), C.support(np.array([1.0, -3.0]))
    (True, array([0., 2.]), 6.0)
    """

    def __eq__(self, other: object) -> bool:
        """Whether the other set is of the same class with equal fields; arrays are compared entry by entry."""
        own = _field_values(self)
        return own == _field_values(other) if type(other) is type(self) and own is not None else NotImplemented

    def __hash__(self) -> int:
        own = _field_values(self)
        return object.__hash__(self) if own is None else hash((type(self), *own))

    @classmethod
    def examples(cls) -> tuple[ConstraintSet, ...]:
        """A few instances, of every kind that the class has; tests run their laws on them, docs list them."""
        return ()

    #: What one `support` costs: a few operations an entry, singular values, or a call of a user's functions, of which
    #: nothing is known. Runs ask for the first kind in every iteration, for the others seldom.
    support_cost: SupportCost = "call"

    #: Whether the boundary has no flat pieces, so that averages of vertices converge quickly.
    is_round: bool = False
    #: Whether the set is the hull of finitely many vertices, one of which the oracle answers with.
    is_polytope: bool = False
    #: Whether some coordinates are bounded only far beyond what any data asks for. Models over such a set would need
    #: many more digits than the answer does.
    has_free: bool = False

    @property
    def spectral(self) -> bool:
        """Whether `lmo` and `support` need singular values of a matrix."""
        return self.support_cost == "singular values"

    @abstractmethod
    def lmo(self, g: Array) -> Array:
        r"""A minimiser of :math:`\langle g, v\rangle` over the set, and the set's centre where ``g`` is zero."""

    @abstractmethod
    def support(self, g: Array) -> float:
        r"""An upper bound on :math:`\max_{w \in C}\langle g, w\rangle`, exact (to rounding) where the oracle is."""

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        """``(lmo(g), support(-g), warm)``, for sets where one computation gives the first two.

        The same arguments give the same result. ``warm`` is the third part of an earlier result for a similar gradient.
        """
        return OracleResult(self.lmo(g), self.support(-g))

    @property
    def support_with_vertex(self) -> bool:
        """Whether `oracle` gives the support for little more than the vertex alone; else solvers ask for the latter."""
        plain = type(self).oracle in (ConstraintSet.oracle, NormBall.oracle)
        return self.support_cost == "entries" or not plain

    def gap(self, gradient: Array, w: Array) -> float:
        r"""The Frank-Wolfe gap :math:`\max_{v \in C}\langle g, w - v\rangle`; with a gradient it bounds f(w) - f*."""
        return inner(gradient, w) + self.support(-gradient)

    def multiplier(self, gradient: Array, support: float | None = None) -> float | None:
        r"""The penalty :math:`\mu` for which a minimiser with this gradient also minimises :math:`f + \mu \|w\|`.

        It is `support` of the negative gradient, which may be given, over the radius; None where the set has no radius.
        """
        radius = getattr(self, "radius", None)
        if radius is None:
            return None
        return float((self.support(-gradient) if support is None else support) / radius)

    def support_rtol(self, shape: Shape) -> float:
        """The relative rounding error that `support` may have, proven or generous; certificates add it."""
        return 2.0 * UNIT * (16.0 + 2.0 * math.log2(max(2, math.prod(shape))))

    def support_error(self, g: Array, support: float) -> float:
        """A bound on the rounding error of ``support``, a value that `support` or `oracle` gave for ``g``."""
        return self.support_rtol(g.shape) * size(g) * self.reach(g.shape)

    @abstractmethod
    def reach(self, shape: Shape) -> float:
        r"""An upper bound on :math:`\max_{w \in C}\|w\|_2`, finite because the set is compact."""

    @abstractmethod
    def diameter(self, shape: Shape) -> float:
        r"""The Euclidean diameter :math:`\max_{u, w \in C}\|u - w\|_2`."""

    @abstractmethod
    def centre(self, shape: Shape) -> Array:
        """The point that `lmo` returns for a zero gradient; runs start here by default."""

    def random(self, shape: Shape, rng: np.random.Generator) -> Array:
        """A random point of the set, not uniform: a mixture of at most 65 vertices in random directions."""
        shares, centre = rng.dirichlet(np.ones(min(math.prod(shape), 64) + 1)), self.centre(shape)
        return np.asarray(centre + sum(share * (self.lmo(rng.standard_normal(shape)) - centre) for share in shares))

    @abstractmethod
    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        """Whether ``w`` lies in the set, up to the relative slack ``rtol``."""

    def shortened(self, w: Any) -> Any:
        """``w`` itself, or where it is a matrix whose factors have grown too large, a smaller one nearby in the set."""
        return w

    def project(self, w: Array) -> Array:
        """The Euclidean projection of ``w`` onto the set."""
        raise NotImplementedError(f"{self!r} has no projection; use PrimalAveraging or FrankWolfe, which need none.")

    @property
    def projectable(self) -> bool:
        """Whether `project` works for this set; projecting solvers ask before they start."""
        return type(self).project is not ConstraintSet.project

    @property
    def projects_quickly(self) -> bool:
        """Whether a projection costs about as much as the oracle, so that a thousand of them are no matter."""
        return self.projectable

    def as_lp(self, shape: Shape) -> LpBall | None:
        """The l_p ball of all entries that the set is for parameters of this shape, None where it is no such ball."""
        return None

    def as_scaled_lp(self, shape: Shape) -> tuple[LpBall, Array] | None:
        r"""An l_p ball B and positive scales d such that the set is :math:`\{w : d \circ w \in B\}`, else None.

        For sets that are an l_p ball in other units; one that is an l_p ball as it stands says so by `as_lp` alone.
        """
        return None

    def as_flat(self, shape: Shape) -> FlatBall | None:
        """The set as a bound on a sum of the sizes of entries or groups, so that minima have few; else None.

        Of the features that are not among the `free_features`.
        """
        return None

    def as_weighted_schatten(self) -> WeightedSchattenBall | None:
        """The set as a ball of singular values with weights of rows and columns, else None."""
        return None

    #: How far from zero the `free_features` may be.
    free_bound: float = math.inf

    def free_features(self) -> Array:
        """The places of the entries (rows) that have a range of their own, outside of what bounds the others."""
        return np.zeros(0, dtype=np.intp)

    def strong_convexity(self, shape: Shape) -> float:
        r"""A lower bound on the strong convexity modulus :math:`\alpha` of the set in the Euclidean norm, else 0."""
        return 0.0

    def resized(self, radius: float) -> Self:
        """The same kind of set with another radius, where it has one."""
        names: set[str] = {f.name for f in fields(self)} if is_dataclass(self) else set()
        if "radius" in names:
            return replace(self, radius=radius)  # type: ignore[type-var]  # a dataclass, as was just seen
        if "ball" in names:
            ball: ConstraintSet = self.ball  # type: ignore[attr-defined]  # one of its fields, as was just seen
            return replace(self, ball=ball.resized(radius))  # type: ignore[type-var]  # a dataclass as well
        raise TypeError(f"{self!r} has no radius to change; use a norm ball.")

    def fingerprint(self) -> str:
        """A string that tells this set from others, empty where its fields do."""
        return ""

    def check_shape(self, shape: Shape) -> None:  # noqa: B027 - most sets take every shape
        """Raise a sentence where points of this shape make no sense for the set."""


class Wrapper(ConstraintSet):
    """A set made of another one, its ``ball``, from which it inherits what the wrapper does not change."""

    ball: Any

    @property
    def support_cost(self) -> SupportCost:  # type: ignore[override]  # read-only: the ball decides
        cost: SupportCost = self.ball.support_cost
        return cost

    @property
    def support_with_vertex(self) -> bool:
        return bool(self.ball.support_with_vertex)

    @property
    def is_polytope(self) -> bool:  # type: ignore[override]  # as above
        return bool(self.ball.is_polytope)

    @property
    def projectable(self) -> bool:
        return bool(self.ball.projectable)

    @property
    def projects_quickly(self) -> bool:
        return self.projectable and bool(self.ball.projects_quickly)

    def check_shape(self, shape: Shape) -> None:
        self.ball.check_shape(shape)


class NormBall(ConstraintSet):
    r"""A set :math:`\{w : \|w\| \le r\}`.

    Leaves give `norm`, `dual_norm` and `lmo`; the rest follows. The norm is written without the radius.
    """

    radius: float

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        return OracleResult(self.lmo(g), self.support(g))  # a ball is symmetric

    @abstractmethod
    def norm(self, w: Array) -> float:
        """The norm whose ball this is."""

    @abstractmethod
    def dual_norm(self, g: Array) -> float:
        r""":math:`\max\{\langle g, w\rangle : \|w\| \le 1\}`."""

    def stretch(self, scale: Array) -> float:
        r"""An upper bound on :math:`\max \|s \circ w\|_2` over the ball, for entrywise scales :math:`s > 0`."""
        return float(np.max(scale)) * self.reach(scale.shape)

    def support(self, g: Array) -> float:
        return self.radius * self.dual_norm(g)

    def support_error(self, g: Array, support: float) -> float:
        # A norm is a sum of like-signed terms, so its error is relative to itself.
        return self.support_rtol(g.shape) * abs(support)

    def diameter(self, shape: Shape) -> float:
        return 2.0 * self.reach(shape)

    def centre(self, shape: Shape) -> Array:
        centre: Array = zeros(shape)  # in factors where the shape asks for them
        return centre

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        return bool(self.norm(w) <= self.radius * (1.0 + slack(w, rtol)))

    def random(self, shape: Shape, rng: np.random.Generator) -> Array:
        w = rng.standard_normal(shape)
        return w * (self.radius * rng.uniform() / max(self.norm(w), np.finfo(float).tiny))


def _field_values(ball: Any) -> tuple[Any, ...] | None:
    """The fields of a dataclass as a tuple with a hash, an array by its shape and its bytes; None of other classes."""
    if not is_dataclass(ball):
        return None
    values = (getattr(ball, f.name) for f in fields(ball))
    return tuple((v.shape, (v + 0.0).tobytes()) if isinstance(v, np.ndarray) else v for v in values)
