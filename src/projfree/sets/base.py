"""Base classes of constraint sets, which are independent of losses and data."""

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

#: Default relative tolerance of `ConstraintSet.contains`, far above the rounding errors of convex combinations and of
#: singular values.
FEASIBILITY = 1e-11
#: Rounding error of the elementwise operations before and after a sum, in units of roundoff.
OPERATIONS = 16.0


class OracleResult(NamedTuple):
    """Result of the oracle: a minimiser of <g, v> over the set, the support of -g, and a warm start for the next call.

    The support may be an upper bound. It is NaN if it would cost about as much as the vertex.
    """

    vertex: Any
    support: float
    warm: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Structure:
    """Structure of a set, for points of one shape, that solvers can exploit. The defaults describe a general set.

    Attributes
    ----------
    lp, weights : LpBall, ndarray, optional
        The l_p ball that contains the constrained entries after multiplication by positive weights, if any.
    group_l1 : GroupL1Ball, optional
        The set, without free features, as a bound on a weighted l_1 norm or on a weighted sum of group norms.
    polytope : bool
        Whether `ConstraintSet.lmo` returns one of finitely many vertices.
    absolute : bool
        Whether the set is a ball of a norm of absolute values.
    projection : {"none", "slow", "fast"}
        Whether the set has a Euclidean projection; a fast one costs about as much as the oracle.
    free, free_bound : ndarray of int, float
        Indices of the features (entries of a vector, rows of a matrix) that are subject only to the bound
        ``|w_j| <= free_bound``.
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
        """The set as an l_p ball, or None if it is not one."""
        return self.lp if self.weights is None and not len(self.free) else None


class ConstraintSet(ABC):
    r"""A compact convex set :math:`C`, accessed through its linear minimisation oracle.

    A set does not store the shape of its points: ``LpBall(2, radius=1)`` is the unit ball of every dimension. Methods
    that depend on the dimension have an argument ``shape``. Methods do not modify their input, and they are
    deterministic.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree import ConstraintSet, LpBall
    >>> C = LpBall(1, radius=2.0)
    >>> isinstance(C, ConstraintSet), C.lmo(np.array([1.0, -3.0])), C.support(np.array([1.0, -3.0]))
    (True, array([0., 2.]), 6.0)
    """

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is of the same class and has equal fields; arrays are compared elementwise."""
        own = _field_values(self)
        return own == _field_values(other) if type(other) is type(self) and own is not None else NotImplemented

    def __hash__(self) -> int:
        own = _field_values(self)
        return object.__hash__(self) if own is None else hash((type(self), *own))

    @abstractmethod
    def lmo(self, g: Array) -> Array:
        r"""Return a minimiser of :math:`\langle g, v\rangle` over the set; the centre of the set if ``g`` is zero."""

    @abstractmethod
    def support(self, g: Array) -> float:
        r"""Return an upper bound on :math:`\max_{w \in C}\langle g, w\rangle`, exact to rounding if the oracle is."""

    def support_error(self, g: Array, support: float) -> float:
        """Return a bound on the rounding error of ``support``, the value that `support` or `oracle` computed for g."""
        return sum_error(math.prod(g.shape)) * size(g) * self.reach(g.shape)

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        """Return ``(lmo(g), support(-g), warm)``; the support is NaN if it would cost as much as the vertex.

        The result is deterministic. ``warm`` is that of an earlier result for a similar gradient.
        """
        return OracleResult(self.lmo(g), math.nan)

    def project(self, w: Array) -> Array:
        """Return the Euclidean projection of ``w`` onto the set."""
        raise NotImplementedError(f"{self!r} has no projection; use PrimalAveraging or FrankWolfe, which need none.")

    @abstractmethod
    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        """Return whether ``w`` lies in the set, up to the relative tolerance ``rtol``."""

    @abstractmethod
    def centre(self, shape: Shape) -> Array:
        """Return the point that `lmo` returns for a zero gradient, the default start of a run."""

    @abstractmethod
    def reach(self, shape: Shape) -> float:
        r"""Return an upper bound on :math:`\max_{w \in C}\|w\|_2`, finite because the set is compact."""

    def diameter(self, shape: Shape) -> float:
        r"""Return an upper bound on the Euclidean diameter :math:`\max_{u, w \in C}\|u - w\|_2`."""
        return 2.0 * self.reach(shape)

    def strong_convexity(self, shape: Shape) -> float:
        r"""Return a lower bound on the modulus :math:`\alpha` of strong convexity of the set in the Euclidean norm."""
        return 0.0

    def check_shape(self, shape: Shape) -> None:  # noqa: B027 - most sets have points of every shape
        """Raise ValueError if the set has no points of this shape."""

    def structure(self, shape: Shape) -> Structure:
        """Return the structure of the set for points of this shape; by default only whether it has a projection."""
        return Structure(projection="none" if type(self).project is ConstraintSet.project else "fast")

    def fingerprint(self) -> str:
        """Return a string that identifies the set, empty if its fields do."""
        return ""


class NormBall(ConstraintSet):
    r"""A set :math:`\{w : \|w\| \le r\}`.

    Subclasses define `norm`, `dual_norm`, `lmo` and `reach`. The norm does not include the radius.
    """

    radius: float

    @abstractmethod
    def norm(self, w: Array) -> float:
        """Return the norm of ``w``."""

    @abstractmethod
    def dual_norm(self, g: Array) -> float:
        r"""Return the dual norm :math:`\max\{\langle g, w\rangle : \|w\| \le 1\}`."""

    def resized(self, radius: float) -> Self:
        """Return the ball of the same norm with another radius."""
        ball: Self = resized(self, radius)
        return ball

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        return OracleResult(self.lmo(g), self.support(-g))

    def support(self, g: Array) -> float:
        return self.radius * self.dual_norm(g)

    def support_error(self, g: Array, support: float) -> float:
        # The terms of a norm have the same sign, so its error is relative to the norm.
        return sum_error(math.prod(g.shape)) * abs(support)

    def centre(self, shape: Shape) -> Array:
        centre: Array = zeros(shape)  # a LowRank matrix for a FactoredShape
        return centre

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        return bool(self.norm(w) <= self.radius * (1.0 + slack(w, rtol)))


class Wrapper(ConstraintSet):
    r"""A set defined by another set, its ``ball``, whose oracle it calls.

    The oracle of the ball is called with the gradient `_inner(g)`, where `_inner(c g) = c _inner(g)` for c > 0. Its
    vertex v is mapped to the vertex `_outer(v, g)`, and the support of g is that of the ball plus `_extra(g)`.
    """

    ball: Any

    @abstractmethod
    def _inner(self, g: Any) -> Any:
        """Return the gradient for the oracle of the ball."""

    def _outer(self, vertex: Any, g: Any) -> Any:
        """Return the vertex of the set for the gradient ``g``, given that of the ball."""
        return vertex

    def _extra(self, g: Any) -> float:
        """Return the difference between the support of ``g`` and that of the ball."""
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
        # Errors of the extra term, of the transformed gradient and of the final addition.
        own = sum_error(math.prod(g.shape)) * extra + OPERATIONS * UNIT * (abs(support) + extra)
        return scale * float(self.ball.support_error(-self._inner(-c), (abs(support - extra) + own) / scale)) + own

    def _scaled(self, g: Any, call: str = "") -> tuple[Any, float]:
        """Return the gradient divided by a power of two near its largest entry, which is exact, and that power."""
        if isinstance(g, Structured):
            self.check_shape(g.shape)
            return g, 1.0
        c = finite(call, g) if call else point(g)
        self.check_shape(c.shape)
        scale = unit_scale(c)
        return c / scale, scale


def resized(ball: Any, radius: float) -> Any:
    """Return a copy of the set with another radius."""
    names = {f.name for f in fields(ball)} if is_dataclass(ball) else set()
    if "radius" in names:
        return replace(ball, radius=radius)
    if "ball" in names:
        return replace(ball, ball=resized(ball.ball, radius))
    raise TypeError(f"{ball!r} has no radius to change; use a norm ball.")


def frank_wolfe_gap(ball: ConstraintSet, gradient: Array, w: Array) -> float:
    r"""Return :math:`\max_{v \in C}\langle g, w - v\rangle`; for the gradient of a convex f it bounds f(w) - f*."""
    return inner(gradient, w) + ball.support(-gradient)


def random_point(ball: ConstraintSet, shape: Shape, rng: np.random.Generator) -> Array:
    """Draw a random point of the set, not uniformly: a scaled Gaussian vector for norm balls, else a vertex average."""
    if isinstance(ball, NormBall):
        w = rng.standard_normal(shape)
        return w * (ball.radius * rng.uniform() / max(ball.norm(w), np.finfo(float).tiny))
    shares, centre = rng.dirichlet(np.ones(min(math.prod(shape), 64) + 1)), ball.centre(shape)
    return np.asarray(centre + sum(share * (ball.lmo(rng.standard_normal(shape)) - centre) for share in shares))


def sum_error(terms: int) -> float:
    """Return a bound on the relative error of a pairwise or blocked sum of terms of one sign, with its operations."""
    return UNIT * (2.0 * OPERATIONS + 4 * math.log2(max(2, terms)))


def slack(w: Array, rtol: float) -> float:
    """Return ``rtol``, or the rounding error of the dtype of ``w`` if that is larger."""
    dtype = w.dtype if hasattr(w, "dtype") else np.asarray(w).dtype
    return max(rtol, OPERATIONS * float(np.finfo(dtype).eps)) if dtype.kind == "f" else rtol


def _field_values(ball: Any) -> tuple[Any, ...] | None:
    """Return the fields of a dataclass as a hashable tuple, arrays as shape and bytes; None for other classes."""
    if not is_dataclass(ball):
        return None
    values = (getattr(ball, f.name) for f in fields(ball))
    return tuple((v.shape, (v + 0.0).tobytes()) if isinstance(v, np.ndarray) else v for v in values)
