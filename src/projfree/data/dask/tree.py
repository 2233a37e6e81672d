"""A fixed binary tree over the numbers of partitions, so that sums do not depend on who adds them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Level and place in it: node ``(l, i)`` stands for the partitions from ``i 2^l`` up to ``(i + 1) 2^l``.
Node = tuple[int, int]
Nodes = dict[Node, Any]
Add = Callable[[Any, Any], Any]


def joined(nodes: Nodes, count: int, add: Add) -> Nodes:
    """The roots of all complete subtrees: two neighbours become their sum, the left one first.

    A node whose right neighbour would begin beyond the last of ``count`` partitions is its parent. Whoever joins which
    nodes, and in whatever order, a node has the same bits.

    Examples
    --------
    >>> from projfree.data.dask.tree import joined
    >>> joined({(0, 0): "a", (0, 1): "b", (0, 3): "d"}, 4, lambda a, b: f"({a}{b})")
    {(0, 3): 'd', (1, 0): '(ab)'}
    """
    out: Nodes = {}
    level, here = 0, dict(nodes)
    while any(node[0] >= level for node in here):
        last = -(-count >> level)  # how many nodes this level has
        for place in sorted(i for at, i in here if at == level):
            if (level, place) not in here:  # taken by its left neighbour
                continue
            value, other = here.pop((level, place)), (level, place ^ 1)
            if place % 2 == 0 and place + 1 >= last > 1:
                here[level + 1, place // 2] = value
            elif place % 2 == 0 and other in here:
                here[level + 1, place // 2] = add(value, here.pop(other))
            else:
                out[level, place] = value
        level += 1
    return out


def total(nodes: Nodes, count: int, add: Add) -> Any:
    """The root of the whole tree."""
    (value,) = joined(nodes, count, add).values()
    return value


def added(a: Any, b: Any) -> Any:
    """The sum of two arrays, or of tuples of them entry by entry; None stands for nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(added(x, y) for x, y in zip(a, b, strict=True))
    return a + b
