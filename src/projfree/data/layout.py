"""The layout of the sums of a tangent, which NumPy and compiled passes share.

With k outputs (one for vectors) a block's sums are a vector of ``SCALARS + PER_OUTPUT * k + p - 1`` numbers for p
points: `SCALARS` numbers, then `PER_OUTPUT` groups of k numbers, then the mean loss of each further point.
"""

from __future__ import annotations

#: Of the weighted losses, of their absolute values, of r u, of |r u|, of |r (u + b)| (zero without an intercept), and
#: the weighted square of the derivative.
VALUE, SIZE, ALONG, ALONG_SIZE, SHIFTED, SQUARE = range(6)
SCALARS = 6
#: Of r, of |r|, and of the weighted image.
SLOPE, SLOPE_SIZE, MEAN_IMAGE = range(3)
PER_OUTPUT = 3


def count(outputs: int, points: int = 1) -> int:
    """How many sums a tangent has."""
    return SCALARS + PER_OUTPUT * outputs + points - 1
