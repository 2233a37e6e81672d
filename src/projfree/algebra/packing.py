"""Matrices that are never formed, as trees of arrays for the disk, and back."""

from __future__ import annotations

from typing import Any

from projfree.algebra.lowrank import LowRank
from projfree.algebra.on_pattern import OnPattern
from projfree.algebra.pattern import Pattern
from projfree.algebra.structured import Structured, combined


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
    parts: list[Any] = [LowRank.of(tree["left"], tree["right"], tree["cut"])] if "left" in tree else []
    if "values" in tree:
        indptr, indices = tree["indptr"], tree["indices"]
        if pattern is None or pattern.shape != (m, n) or not _equal(pattern, indptr, indices):
            pattern = Pattern(indptr, indices, (m, n))
        parts.append(OnPattern(pattern, tree["values"]))
    return combined(LowRank((m, n), ()).shape, *parts)


def _equal(pattern: Pattern, indptr: Any, indices: Any) -> bool:
    same = len(pattern.indices) == len(indices) and bool((pattern.indptr == indptr).all())
    return same and bool((pattern.indices == indices).all())
