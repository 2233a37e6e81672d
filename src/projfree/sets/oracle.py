"""A set defined by functions of the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np

from projfree.algebra.minorant import size
from projfree.checks import Array, positive, real_array, shown
from projfree.numerics.sums import UNIT
from projfree.sets.base import FEASIBILITY, OPERATIONS, ConstraintSet, OracleResult, Shape, Structure, slack
from projfree.sets.inputs import checked_point, finite, like, point


class OracleSet(ConstraintSet):
    r"""A compact convex set defined by a function that minimises linear functions over it.

    Parameters
    ----------
    lmo : callable
        ``lmo(g)`` returns a point of the set, of the shape of ``g``, that minimises :math:`\langle g, v\rangle`.
    support : callable, optional
        ``support(g)`` returns the maximum of :math:`\langle g, w\rangle` over the set or an upper bound on it. By
        default :math:`\langle g, \operatorname{lmo}(-g)\rangle`, which is an upper bound only if ``lmo`` is exact.
    contains, project : callable, optional
        ``contains(w, rtol)`` returns whether w is in the set; ``project(w)`` returns the Euclidean projection.
    diameter : float, optional
        An upper bound on the Euclidean diameter. By default it is computed from a box that contains the set, by
        ``2 d`` calls of ``support``.
    start : array, optional
        A point of the set, the default start of a run. By default the midpoint of two opposite vertices.
    polytope : bool, default False
        Whether the set is the convex hull of finitely many vertices and ``lmo`` returns one of them. If so, `plan`
        prefers `PairwiseFrankWolfe`.
    support_rtol : float, default 1e-12
        Bound on the relative error of ``support``.
    name : str, default "OracleSet"
        Name of the set, used by `repr` and to identify the set in a checkpoint.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import OracleSet
    >>> def lmo(g):  # the Euclidean unit ball
    ...     return -g / max(np.linalg.norm(g), 1e-300)
    >>> disc = OracleSet(lmo, support=np.linalg.norm)
    >>> disc.support(np.array([3.0, 4.0]))
    5.0
    >>> round(disc.reach((2,)), 3)  # the corner of the box around it
    1.414
    """

    def __init__(
        self,
        lmo: Callable[[Array], Array],
        support: Callable[[Array], float] | None = None,
        *,
        contains: Callable[[Array, float], bool] | None = None,
        project: Callable[[Array], Array] | None = None,
        diameter: float | None = None,
        start: Array | None = None,
        polytope: bool = False,
        support_rtol: float = 1e-12,
        name: str = "OracleSet",
    ) -> None:
        for word, function in (("lmo", lmo), ("support", support), ("contains", contains), ("project", project)):
            if not callable(function) and (function is not None or word == "lmo"):
                raise TypeError(f"`OracleSet({word}=...)` must be a function, got {type(function).__name__}.")
        self._lmo, self._support, self._contains, self._project = lmo, support, contains, project
        self._diameter = None if diameter is None else positive("OracleSet(diameter=...)", diameter)
        self._start = None if start is None else real_array("OracleSet(start=...)", start).copy()
        self._rtol, self._name = positive("OracleSet(support_rtol=...)", support_rtol), name
        self._polytope = bool(polytope)
        # Caches of results of the user's functions, by shape.
        self._reaches: dict[Shape, float] = {}
        self._centres: dict[Shape, Array] = {}
        self._coarse = 0.0  # relative error of a user function that returns float32
        self._token = f"OracleSet without a name, {uuid4().hex[:8]}"

    def fingerprint(self) -> str:
        # Different sets may have functions of the same name, so only a name given by the user identifies a set.
        return self._token if self._name == "OracleSet" else f"OracleSet {self._name}"

    def __repr__(self) -> str:
        lmo = getattr(self._lmo, "__name__", type(self._lmo).__name__)
        return f"OracleSet(lmo={lmo})" if self._name == "OracleSet" else self._name

    def lmo(self, g: Array) -> Array:
        c = finite("lmo(g)", g)
        if not c.any():
            return like(g, self.centre(c.shape))
        return like(g, self._answer(c))

    def support(self, g: Array) -> float:
        c = point(g)
        if self._support is None or not c.any():
            return float(np.vdot(c, self._answer(-c))) if c.any() else 0.0
        answer = self._support(c.copy())
        if np.asarray(answer).dtype == np.float32:
            self._coarse = OPERATIONS * float(np.finfo(np.float32).eps)
        return float(answer)

    def oracle(self, g: Array, warm: Any = None) -> OracleResult:
        c = finite("lmo(g)", g)
        if not c.any():
            return OracleResult(like(g, self.centre(c.shape)), 0.0)
        vertex = self._answer(c)
        return OracleResult(like(g, vertex), -float(np.vdot(c, vertex)) if self._support is None else math.nan)

    def structure(self, shape: Shape) -> Structure:
        return Structure(polytope=self._polytope, projection="none" if self._project is None else "fast")

    def support_error(self, g: Array, support: float) -> float:
        # The default support is a dot product, with any order of summation.
        own = g.size * UNIT if self._support is None else 0.0
        return (max(self._rtol, self._coarse) + own) * size(g) * self.reach(g.shape)

    def reach(self, shape: Shape) -> float:
        if self._diameter is not None:
            return float(np.linalg.norm(self.centre(shape))) + self._diameter
        if shape not in self._reaches:
            d = math.prod(shape)
            units = (np.eye(1, d, j).reshape(shape) for j in range(d))
            self._reaches[shape] = math.hypot(*(max(self.support(unit), self.support(-unit)) for unit in units))
        return self._reaches[shape]

    def diameter(self, shape: Shape) -> float:
        return self._diameter if self._diameter is not None else super().diameter(shape)

    def centre(self, shape: Shape) -> Array:
        if self._start is not None:
            return np.array(np.broadcast_to(self._start, shape), dtype=np.float64)
        if shape not in self._centres:
            ones = np.ones(shape)
            self._centres[shape] = np.asarray(0.5 * self._answer(ones) + 0.5 * self._answer(-ones))
        return self._centres[shape].copy()

    def contains(self, w: Array, rtol: float = FEASIBILITY) -> bool:
        if self._contains is None:
            raise NotImplementedError(
                f"{self!r} cannot tell whether it contains a point; give `contains=` a function (w, rtol) -> bool."
            )
        x = point(w)
        return bool(np.isfinite(x).all()) and bool(self._contains(x, slack(w, rtol)))

    @checked_point
    def project(self, w: Array) -> Array:
        if self._project is None:
            raise NotImplementedError(
                f"{self!r} has no projection; give `project=` a function, or use PrimalAveraging or FrankWolfe."
            )
        return np.asarray(self._project(w.copy()))

    def _answer(self, g: Array) -> Array:
        v = real_array("lmo(g)", self._lmo(g.copy()))  # the user's function may modify its argument
        if v.shape != g.shape:
            raise ValueError(f"`lmo(g)` of {self!r} must have the shape {g.shape} of `g`, got {v.shape}.")
        if not np.isfinite(v).all():
            told = shown(v.ravel().tolist())
            raise ValueError(f"`lmo(g)` of {self!r} must be finite, got {told}; check the function.")
        return v
