"""The unit of rounding, and sums that do not depend on the number of threads."""

from __future__ import annotations

from projfree.checks import Array

#: Half a unit in the last place of a float64: every rounded operation errs by at most this, relatively.
UNIT = 2.0**-53


def tree_sum(parts: Array) -> Array:
    """The sum over the first axis as a binary tree, the same for any number of threads; ``parts`` is overwritten."""
    count = len(parts)
    while count > 1:
        half = (count + 1) // 2
        parts[: count - half] += parts[half:count]
        count = half
    total: Array = parts[0].copy()
    return total
