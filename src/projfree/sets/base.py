"""What a constraint set is: pure geometry, knowing neither loss nor data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from projfree.algebra.minorant import inner, size
from projfree.algebra.structured import zeros
from projfree.checks import Array
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.sums import UNIT

#: How far outside, relative to its size, a point may lie and still count as contained. Convex combinations and
#: singular values round by a few units in the last place; this is far above that and far below any use.
FEASIBILITY = 1e-11

#: The smallest exponent of a norm whose ball is round enough for averages of vertices to beat projections.
ROUND = 1.3

if TYPE_CHECKING:
    from projfree.sets.lp import LpBall

Shape = tuple[int, ...]


class OracleResult(NamedTuple):
    """What `ConstraintSet.oracle` returns for a gradient g.

    Attributes
    ----------
    vertex : array
        A minimiser of the linear function g over the set.
    support : float
        The support of -g, or an upper bound on it; NaN where it would cost about as much as the vertex.
    warm : object
        A warm start for the next call, None for sets that need none.
    """

    vertex: Any
    support: float
    warm: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Structure:
    """What solvers can exploit about a set of points of one shape. By default nothing is known.

    Attributes
    ----------
    lp : LpBall, optional
        The l_p ball in which all entries that are not free must lie, once they are multiplied by ``weights``.
    weights : ndarray, optional
        Positive, one for each entry that is not free; None where all of them are 1.
    group_l1 : FlatBall, optional
        The set, without free features, as a bound on a weighted sum of the sizes of entries or of the Euclidean norms
        of groups. Minimisers over it have few nonzero features.
    polytope : bool
        Whether the set is the convex hull of finitely many vertices, and `ConstraintSet.lmo` returns one of them.
    round : bool
        Whether the boundary has no flat pieces, so that averages of vertices converge quickly.
    absolute : bool
        Whether the set is the ball of a norm that depends on the absolute values of the entries alone.
    spectral : bool
        Whether the oracle needs singular values.
    projection : {"none", "slow", "fast"}
        Whether there is a Euclidean projection, and whether it costs about as much as the oracle.
    free : ndarray of int
        Features (entries of a vector, rows of a matrix) that the norm does not bound. Each of their entries lies
        between ``-free_bound`` and ``free_bound``, far beyond what any data asks for.
    free_bound : float
        The bound on the free features.
    """

    lp: LpBall | None = None
    weights: Array | None = None
    group_l1: FlatBall | None = None
    polytope: bool = False
    round: bool = False
    absolute: bool = False
    spectral: bool = False
    projection: Literal["none", "slow", "fast"] = "none"
    free: Array = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    free_bound: float = math.inf

    @property
    def plain_lp(self) -> LpBall | None:
        """The l_p ball that the whole set is, else None."""
        return self.lp if self.weights is None and not len(self.free) else None


def is_round(*exponents: float) -> bool:
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

    @abstractmethod
    def lmo(self, g: Array) -> Array:
        r"""A minimiser of :math:`\langle g, v\rangle` over the set, and the set's centre where ``g`` is zero."""

    @abstractmethod
    def support(self, g: Array) -> float:
        r"""An upper bound on :math:`\max_{w \in C}\langle g, w\rangle`, exact (to rounding) where the oracle is."""

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        """``(lmo(g), support(-g), warm)``, the second NaN where it costs another call of about the same length.

        The same arguments give the same result. ``warm`` is the third part of an earlier result for a similar gradient.
        """
        return OracleResult(self.lmo(g), math.nan)

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

    def structure(self, shape: Shape) -> Structure:
        """What solvers can exploit about the set for points of this shape: by default whether there is a projection."""
        return Structure(projection="none" if type(self).project is ConstraintSet.project else "fast")

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

    def check_shape(self, shape: Shape) -> None:
        self.ball.check_shape(shape)


class NormBall(ConstraintSet):
    r"""A set :math:`\{w : \|w\| \le r\}`.

    Leaves give `norm`, `dual_norm` and `lmo`; the rest follows. The norm is written without the radius.
    """

    radius: float

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
