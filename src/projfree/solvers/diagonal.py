"""Squares over observed entries: each entry has a curvature of its own, and the Frobenius ball one multiplier."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra import FactoredShape, OnPattern, zeros
from projfree.checks import Array
from projfree.data.entries import EntriesData
from projfree.data.factored_entries import FactoredEntriesData
from projfree.numerics.secular import secular_root
from projfree.objectives import Objective
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet
from projfree.solvers.model import lp_of


def is_diagonal(f: SmoothFunction, ball: ConstraintSet) -> bool:
    """Whether the problem is one of squares at observed entries, without intercept, over a Frobenius ball."""
    if not (
        isinstance(f, Objective)
        and f.loss.quadratic
        and not f.fit_intercept
        and isinstance(f.data, EntriesData | FactoredEntriesData)
    ):
        return False
    lp = lp_of(ball, f.shape)
    return lp is not None and lp.p == 2.0


def diagonal_terms(f: Objective) -> tuple[Array, Array]:
    """The curvature of each entry and b; one read."""
    h = f.loss.smoothness * entries(f.data.mean_row())
    return h, -entries(f.minorant(f.point(zeros(f.shape))).gradient)


def minimise_diagonal(f: Objective, h: Array, b: Array, radius: float) -> Any:
    r"""The matrix with entries :math:`b/(h + \lambda)`; entries that nobody observed stay zero."""
    sizes = np.abs(b)
    top = float(sizes.max())
    if top == 0.0:
        return whole(f, np.zeros_like(b))
    penalty = secular_root(h * (radius / top), sizes / top)[0] * (top / radius)
    w = np.divide(b, h + penalty, out=np.zeros_like(b), where=sizes > 0.0)
    norm = float(np.linalg.norm(w))
    return whole(f, w * min(1.0, radius / norm))


def entries(w: Any) -> Array:
    """The entries of a matrix as a vector, those on the pattern where there is one."""
    return w.values if isinstance(w, OnPattern) else np.ravel(w)


def whole(f: Objective, values: Array) -> Any:
    """The matrix with these entries."""
    if isinstance(f.shape, FactoredShape):
        assert f.pattern is not None
        return OnPattern(f.pattern, values)
    return values.reshape(f.shape)
