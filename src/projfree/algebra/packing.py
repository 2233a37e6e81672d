"""Matrices that are never formed, as trees of arrays for the disk, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from projfree.algebra.lowrank import LowRank
from projfree.algebra.on_pattern import OnPattern
from projfree.algebra.pattern import Pattern
from projfree.algebra.structured import Structured, combined
from projfree.checks import real_array


def pack(w: Structured) -> dict[str, Any]:
    """The parts of ``w`` as arrays; places on the pattern by their row pointers and columns."""
    tree: dict[str, Any] = {"shape": list(w.shape), "cut": 0.0}
    if w.low is not None:
        tree["left"], tree["right"] = w.low.factors()
        tree["cut"] = w.low.cut
    if w.on is not None:
        tree.update(values=w.on.values, indptr=w.on.pattern.indptr, indices=w.on.pattern.indices)
    return tree


def unpack(tree: dict[str, Any], pattern: Pattern | None = None) -> Structured:
    """Undo `pack`; places that are those of ``pattern`` become that pattern, since mixing asks for the same one."""
    m, n = tree["shape"]
    _check(tree, m, n)
    parts: list[Any] = [LowRank.of(tree["left"], tree["right"], tree["cut"])] if "left" in tree else []
    if "values" in tree:
        indptr, indices = tree["indptr"], tree["indices"]
        if pattern is None or pattern.shape != (m, n) or not _equal(pattern, indptr, indices):
            pattern = Pattern(indptr, indices, (m, n))
        parts.append(OnPattern(pattern, tree["values"]))
    return combined(LowRank((m, n), ()).shape, *parts)


def _check(tree: dict[str, Any], m: int, n: int) -> None:
    """Raise where the arrays are not those of a matrix of this shape: a file may hold anything."""
    arrays = {name: real_array(name, tree[name]) for name in ("left", "right", "values") if name in tree}
    fits = all(np.isfinite(array).all() for array in arrays.values()) and float(tree["cut"]) >= 0.0
    if "left" in tree:
        left, right = arrays["left"], arrays["right"]
        fits = fits and left.ndim == right.ndim == 2 and left.shape == (m, right.shape[1]) and len(right) == n
    if "values" in tree:
        at, columns = tree["indptr"], tree["indices"]
        fits = fits and at.shape == (m + 1,) and at[0] == 0 and at[-1] == len(columns) and (np.diff(at) >= 0).all()
        fits = fits and arrays["values"].shape == columns.shape == (len(columns),) and columns.dtype.kind in "iu"
        fits = fits and bool(((columns >= 0) & (columns < n)).all())
    if not fits:
        raise ValueError(f"the parts of a matrix of shape {(m, n)} do not belong together")


def _equal(pattern: Pattern, indptr: Any, indices: Any) -> bool:
    same = len(pattern.indices) == len(indices) and bool((pattern.indptr == indptr).all())
    return same and bool((pattern.indices == indices).all())
