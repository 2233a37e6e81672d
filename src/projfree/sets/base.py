"""What a constraint set is: pure geometry, knowing neither loss nor data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from projfree.algebra.minorant import inner, size
from projfree.algebra.structured import Structured, zeros
from projfree.checks import Array
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.sums import UNIT
from projfree.sets.inputs import Shape as Shape
from projfree.sets.inputs import finite, like, point, unit_scale

if TYPE_CHECKING:
    from projfree.sets.lp import LpBall

#: How far outside, relative to its size, a point may lie and still count as contained. Convex combinations and
#: singular values round by a few units in the last place; this is far above that and far below any use.
FEASIBILITY = 1e-11
#: Roundings of the products, quotients, powers and roots beside a sum.
OPERATIONS = 16.0


class OracleResult(NamedTuple):
    """A minimiser of the linear function g over a set, the support of -g, and a warm start for the next call if any.

    The support may be an upper bound, and is NaN where it would cost about as much as the vertex.
    """

    vertex: Any
    support: float
    warm: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Structure:
    """What solvers can exploit about a set of points of one shape. By default nothing is known.

    Attributes
    ----------
    lp, weights : LpBall, ndarray, optional
        The l_p ball in which all entries that are not free lie, once they are multiplied by positive weights, if any.
    group_l1 : GroupL1Ball, optional
        The set, without free features, as a bound on a weighted sum of absolute values or of norms of groups.
    polytope : bool
        Whether `ConstraintSet.lmo` returns one of finitely many vertices.
    absolute : bool
        Whether the set is a ball of a norm of absolute values.
    projection : {"none", "slow", "fast"}
        Whether there is a Euclidean projection, and whether it costs about as much as the oracle.
    free, free_bound : ndarray of int, float
        Features (entries of a vector, rows of a matrix) that only this bound on the size of their entries holds.
    """

    lp: LpBall | None = None
    weights: Array | None = None
    group_l1: GroupL1Ball | None = None
    polytope: bool = False
    absolute: bool = False
    projection: Literal["none", "slow", "fast"] = "none"
    free: Array = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    free_bound: float = math.inf

    @property
    def plain_lp(self) -> LpBall | None:
        """The l_p ball that the whole set is, else None."""
        return self.lp if self.weights is None and not len(self.free) else None


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

    @abstractmethod
    def lmo(self, g: Array) -> Array:
        r"""A minimiser of :math:`\langle g, v\rangle` over the set, and the set's centre where ``g`` is zero."""

    @abstractmethod
    def support(self, g: Array) -> float:
        r"""An upper bound on :math:`\max_{w \in C}\langle g, w\rangle`, exact (to rounding) where the oracle is."""

    def support_error(self, g: Array, support: float) -> float:
        """A bound on the rounding error of ``support``, a value that `support` or `oracle` gave for ``g``."""
        return sum_error(math.prod(g.shape)) * size(g) * self.reach(g.shape)

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        """``(lmo(g), support(-g), warm)``, the second NaN where it costs another call of about the same length.

        The same arguments give the same result. ``warm`` is the third part of an earlier result for a similar gradient.
        """
        return OracleResult(self.lmo(g), math.nan)

    def project(self, w: Array) -> Array:
        """The Euclidean projection of ``w`` onto the set."""
        raise NotImplementedError(f"{self!r} has no projection; use PrimalAveraging or FrankWolfe, which need none.")

    @abstractmethod
    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        """Whether ``w`` lies in the set, up to the relative slack ``rtol``."""

    @abstractmethod
    def centre(self, shape: Shape) -> Array:
        """The point that `lmo` returns for a zero gradient; runs start here by default."""

    @abstractmethod
    def reach(self, shape: Shape) -> float:
        r"""An upper bound on :math:`\max_{w \in C}\|w\|_2`, finite because the set is compact."""

    def diameter(self, shape: Shape) -> float:
        r"""An upper bound on the Euclidean diameter :math:`\max_{u, w \in C}\|u - w\|_2`."""
        return 2.0 * self.reach(shape)

    def strong_convexity(self, shape: Shape) -> float:
        r"""A lower bound on the strong convexity modulus :math:`\alpha` of the set in the Euclidean norm, else 0."""
        return 0.0

    def check_shape(self, shape: Shape) -> None:  # noqa: B027 - most sets take every shape
        """Raise ValueError if points of this shape make no sense for the set."""

    def structure(self, shape: Shape) -> Structure:
        """What solvers can exploit about the set for points of this shape: by default whether there is a projection."""
        return Structure(projection="none" if type(self).project is ConstraintSet.project else "fast")

    def fingerprint(self) -> str:
        """A string that tells this set from others, empty where its fields do."""
        return ""


class NormBall(ConstraintSet):
    r"""A set :math:`\{w : \|w\| \le r\}`.

    Subclasses define `norm`, `dual_norm`, `lmo` and `reach`; the rest follows. The norm is written without the radius.
    """

    radius: float

    @abstractmethod
    def norm(self, w: Array) -> float:
        """The norm whose ball this is."""

    @abstractmethod
    def dual_norm(self, g: Array) -> float:
        r""":math:`\max\{\langle g, w\rangle : \|w\| \le 1\}`."""

    def resized(self, radius: float) -> Self:
        """The ball of the same norm with another radius."""
        ball: Self = resized(self, radius)
        return ball

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        return OracleResult(self.lmo(g), self.support(-g))

    def support(self, g: Array) -> float:
        return self.radius * self.dual_norm(g)

    def support_error(self, g: Array, support: float) -> float:
        # A norm is a sum of like-signed terms, so its error is relative to itself.
        return sum_error(math.prod(g.shape)) * abs(support)

    def centre(self, shape: Shape) -> Array:
        centre: Array = zeros(shape)  # in factors where the shape asks for them
        return centre

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        return bool(self.norm(w) <= self.radius * (1.0 + slack(w, rtol)))


class Wrapper(ConstraintSet):
    r"""A set made of another one, its ``ball``, whose oracle it uses.

    The gradient that the ball sees is `_inner(g)`, a function with `_inner(c g) = c _inner(g)` for c > 0, and its
    vertex v becomes the vertex `_outer(v, g)` of the set. The support of g is that of the ball plus `_extra(g)`.
    """

    ball: Any

    @abstractmethod
    def _inner(self, g: Any) -> Any:
        """The gradient for the oracle of the ball."""

    def _outer(self, vertex: Any, g: Any) -> Any:
        """The vertex of the set for the gradient ``g``, from that of the ball."""
        return vertex

    def _extra(self, g: Any) -> float:
        """What lies outside of the ball adds to the support of ``g``."""
        return 0.0

    def check_shape(self, shape: Shape) -> None:
        self.ball.check_shape(shape)

    def lmo(self, g: Array) -> Array:
        vertex: Array = self.oracle(g).vertex
        return vertex

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        c, scale = self._scaled(g, "lmo(g)")
        vertex, support, *rest = self.ball.oracle(self._inner(c), warm)
        return OracleResult(like(g, self._outer(vertex, c)), scale * (support + self._extra(-c)), *rest)

    def support(self, g: Array) -> float:
        c, scale = self._scaled(g)
        return scale * (float(self.ball.support(-self._inner(-c))) + self._extra(c))

    def support_error(self, g: Array, support: float) -> float:
        c, scale = self._scaled(g)
        extra = scale * self._extra(c)
        # The sum beside the ball, changes of the gradient, and the last addition.
        own = sum_error(math.prod(g.shape)) * extra + OPERATIONS * UNIT * (abs(support) + extra)
        return scale * float(self.ball.support_error(-self._inner(-c), (abs(support - extra) + own) / scale)) + own

    def _scaled(self, g: Any, call: str = "") -> tuple[Any, float]:
        """The gradient over a power of two near its largest entry, which is exact, and that power."""
        if isinstance(g, Structured):
            self.check_shape(g.shape)
            return g, 1.0
        c = finite(call, g) if call else point(g)
        self.check_shape(c.shape)
        scale = unit_scale(c)
        return c / scale, scale


def resized(ball: Any, radius: float) -> Any:
    """The same kind of set with another radius."""
    names = {f.name for f in fields(ball)} if is_dataclass(ball) else set()
    if "radius" in names:
        return replace(ball, radius=radius)
    if "ball" in names:
        return replace(ball, ball=resized(ball.ball, radius))
    raise TypeError(f"{ball!r} has no radius to change; use a norm ball.")


def frank_wolfe_gap(ball: ConstraintSet, gradient: Array, w: Array) -> float:
    r"""The gap :math:`\max_{v \in C}\langle g, w - v\rangle`; with the gradient of a convex f it bounds f(w) - f*."""
    return inner(gradient, w) + ball.support(-gradient)


def random_point(ball: ConstraintSet, shape: Shape, rng: np.random.Generator) -> Array:
    """A random point of the set, not uniform: in a random direction, or for other sets a mean of random vertices."""
    if isinstance(ball, NormBall):
        w = rng.standard_normal(shape)
        return w * (ball.radius * rng.uniform() / max(ball.norm(w), np.finfo(float).tiny))
    shares, centre = rng.dirichlet(np.ones(min(math.prod(shape), 64) + 1)), ball.centre(shape)
    return np.asarray(centre + sum(share * (ball.lmo(rng.standard_normal(shape)) - centre) for share in shares))


def sum_error(terms: int) -> float:
    """A bound on the relative error of a sum of like-signed terms in pairs or in blocks, and of what is done to it."""
    return UNIT * (2.0 * OPERATIONS + 4 * math.log2(max(2, terms)))


def slack(w: Array, rtol: float) -> float:
    """``rtol``, but never less than what rounding ``w`` to its own precision (float32) costs."""
    dtype = w.dtype if hasattr(w, "dtype") else np.asarray(w).dtype
    return max(rtol, OPERATIONS * float(np.finfo(dtype).eps)) if dtype.kind == "f" else rtol


def _field_values(ball: Any) -> tuple[Any, ...] | None:
    """The fields of a dataclass as a tuple with a hash, an array by its shape and its bytes; None of other classes."""
    if not is_dataclass(ball):
        return None
    values = (getattr(ball, f.name) for f in fields(ball))
    return tuple((v.shape, (v + 0.0).tobytes()) if isinstance(v, np.ndarray) else v for v in values)
