"""A fixed binary tree over the numbers of partitions, so that sums do not depend on who adds them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Level and place in it: node ``(l, i)`` stands for the partitions from ``i 2^l`` up to ``(i + 1) 2^l``.
Node = tuple[int, int]
Nodes = dict[Node, Any]
Add = Callable[[Any, Any], Any]


def put(nodes: Nodes, node: Node, value: Any, count: int, add: Add) -> None:
    """Add a node, and put it together with its neighbours as far as they are there: they become their sum.

    A node whose right neighbour would begin beyond the last of ``count`` partitions is its parent. Whoever puts which
    nodes together, and in whatever order, a node has the same bits.

    Examples
    --------
    >>> from projfree.data.dask.tree import put
    >>> nodes = {}
    >>> for place, name in [(3, "d"), (1, "b"), (0, "a")]:
    ...     put(nodes, (0, place), name, 4, lambda a, b: f"({a}{b})")
    >>> nodes
    {(0, 3): 'd', (1, 0): '(ab)'}
    """
    level, place = node
    while True:
        last, other = -(-count >> level), (level, place ^ 1)  # how many nodes this level has
        if other in nodes:
            value = add(nodes.pop(other), value) if place % 2 else add(value, nodes.pop(other))
        elif place % 2 or not place + 1 >= last > 1:
            break
        level, place = level + 1, place // 2
    nodes[level, place] = value


def total(nodes: Nodes) -> Any:
    """The root of a tree that is complete."""
    (value,) = nodes.values()
    return value


def added(a: Any, b: Any) -> Any:
    """The sum of two arrays, or of tuples of them entry by entry; None stands for nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(added(x, y) for x, y in zip(a, b, strict=True))
    return a + b
