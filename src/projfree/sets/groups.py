"""Groups of entries as the rows of a table: zeros fill the rows of small groups, and change no norm and no oracle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from projfree.checks import Array, shown
from projfree.sets.base import Shape

#: A table of more entries than this is refused: one large group among many small ones fills it with zeros.
MOST_ENTRIES = 1 << 27

Labels = tuple[int, ...] | None


def checked_labels(name: str, groups: Sequence[int] | Array) -> tuple[int, ...]:
    """The labels as plain whole numbers, or a sentence on what is wrong with them."""
    labels: Array = np.asarray(groups)
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iu":
        raise ValueError(
            f"`{name}` must be a whole number for each entry, got {shown(groups)}; "
            "number the groups first, e.g. with `np.unique(names, return_inverse=True)[1]`."
        )
    sizes = np.unique(labels, return_counts=True)[1]
    if len(sizes) * int(sizes.max()) > MOST_ENTRIES:
        raise ValueError(
            f"`{name}` has {len(sizes)} groups, the largest of {sizes.max()} entries; their product must be at most "
            f"{MOST_ENTRIES}, so split the largest group."
        )
    return tuple(labels.tolist())


def laid_out(x: Array, groups: Labels) -> Array:
    """The table whose rows are the groups of ``x``."""
    if groups is None:
        return x
    group, place, count, width = _layout(groups)
    table = np.zeros((count, width, *x.shape[1:]))
    table[group, place] = x
    return table.reshape(count, -1)


def taken_back(table: Array, groups: Labels, shape: Shape) -> Array:
    """The point of shape ``shape`` whose table this is."""
    if groups is None:
        return table
    group, place, count, width = _layout(groups)
    out: Array = table.reshape(count, width, *shape[1:])[group, place]
    return out


def group_sizes(groups: Labels, shape: Shape) -> Array:
    """How many entries each group of a point of this shape has."""
    if groups is None:
        return np.full(shape[0], shape[1])
    counts: Array = np.bincount(_layout(groups)[0]) * int(np.prod(shape[1:]))
    return counts


@lru_cache(maxsize=64)
def _layout(groups: tuple[int, ...]) -> tuple[Any, Any, int, int]:
    """For each entry its group and its place in it; the number of groups and the size of the largest."""
    group = np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(group)
    order = np.argsort(group, kind="stable")
    place = np.empty(len(group), dtype=np.intp)
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return group, place, len(counts), int(counts.max())
