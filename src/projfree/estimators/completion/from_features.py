"""What features say of users or items: a ridge regression of their offsets and factors.

A feature that is missing is taken to be at its mean, of which the regression says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from projfree.algebra import OnPattern
from projfree.checks import Array
from projfree.completion.side_information import Missing

#: The penalty of a slope, in lines for each feature: features are taken to explain about a tenth of the differences.
DOUBT = 10.0
#: Conjugate gradients stop here, or where no residual is larger than this part of the first.
STEPS, SMALL = 200, 1e-9


@dataclass(frozen=True, eq=False)
class Slopes:
    """A linear function of features, zero at their mean."""

    centre: Array
    values: Array

    @classmethod
    def of(cls, table: OnPattern, trust: Array, targets: Array) -> Slopes:
        """The regression of the targets of lines on their features, with a weight for each line."""
        total, missing = max(float(trust.sum()), 1e-300), Missing.of(table)
        known = total - np.bincount(missing.columns, trust[missing.lines], table.shape[1])
        centre = missing.filled(table, 0.0).transposed_times(trust[:, None])[:, 0] / np.maximum(known, 1e-12 * total)
        table = missing.filled(table, centre[missing.columns])
        penalty = DOUBT * len(centre) * total / max(int(np.count_nonzero(trust)), 1)

        def pulled(lines: Array) -> Array:
            weighted = trust[:, None] * lines
            found: Array = table.transposed_times(weighted) - np.outer(centre, weighted.sum(axis=0))
            return found

        def normal(slopes: Array) -> Array:
            found: Array = pulled(table.times(slopes) - centre @ slopes) + penalty * slopes
            return found

        return cls(centre, _solved(normal, pulled(targets - trust @ targets / total)))

    def times(self, table: OnPattern) -> Array:
        """The function of the features of some lines."""
        missing = Missing.of(table)
        table = missing.filled(table, self.centre[missing.columns])
        found: Array = table.times(self.values) - self.centre @ self.values
        return found


def _solved(normal: Callable[[Array], Array], right: Array) -> Array:
    """Conjugate gradients for many right-hand sides at once."""
    x, rest = np.zeros_like(right), right.copy()
    along, size = rest.copy(), np.sum(rest**2, axis=0)
    least = SMALL**2 * size
    for _ in range(STEPS):
        if (size <= least).all():
            break
        image = normal(along)
        curved = np.sum(along * image, axis=0)
        step = np.divide(size, curved, out=np.zeros_like(size), where=curved > 0.0)
        x, rest = x + step * along, rest - step * image
        new = np.sum(rest**2, axis=0)
        along = rest + np.divide(new, size, out=np.zeros_like(size), where=size > 0.0) * along
        size = new
    return x
