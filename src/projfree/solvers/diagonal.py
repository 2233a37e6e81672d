"""Squares over observed entries: each entry has a curvature of its own, and the Frobenius ball one multiplier."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree import algebra
from projfree.algebra import FactoredShape
from projfree.checks import Array
from projfree.numerics.secular import secular_root
from projfree.objectives.base import SmoothFunction
from projfree.sets.base import ConstraintSet


def is_diagonal(f: SmoothFunction, ball: ConstraintSet) -> bool:
    """Whether the problem is a diagonal quadratic, such as squares at observed entries, over a Frobenius ball."""
    lp = ball.as_lp(f.shape) if f.has_diagonal_form else None
    return lp is not None and lp.p == 2.0


def minimise_diagonal(f: SmoothFunction, h: Array, b: Array, radius: float) -> Any:
    r"""The matrix with entries :math:`b/(h + \lambda)`; entries that nobody observed stay zero."""
    sizes = np.abs(b)
    top = float(sizes.max())
    if top == 0.0:
        return as_matrix(f, np.zeros_like(b))
    penalty = secular_root(h * (radius / top), sizes / top)[0] * (top / radius)
    w = np.divide(b, h + penalty, out=np.zeros_like(b), where=sizes > 0.0)
    norm = float(np.linalg.norm(w))
    return as_matrix(f, w * min(1.0, radius / norm))


def as_matrix(f: SmoothFunction, values: Array) -> Any:
    """The matrix with these entries."""
    if isinstance(f.shape, FactoredShape):
        assert f.pattern is not None
        return algebra.OnPattern(f.pattern, values)
    return values.reshape(f.shape)
