"""The unit roundoff, and sums that do not depend on the number of threads."""

from __future__ import annotations

from projfree.checks import Array

#: Unit roundoff of float64: the largest relative error of a rounded operation.
UNIT = 2.0**-53


def tree_sum(parts: Array) -> Array:
    """Return the sum over the first axis by a binary tree, independent of the threads; ``parts`` is overwritten."""
    count = len(parts)
    while count > 1:
        half = (count + 1) // 2
        parts[: count - half] += parts[half:count]
        count = half
    total: Array = parts[0].copy()
    return total
