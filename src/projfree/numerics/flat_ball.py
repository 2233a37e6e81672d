"""`GroupL1Ball`: sets that are hulls of few coordinates, and what a working set must know about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from projfree.checks import Array


@dataclass(frozen=True, eq=False)
class GroupL1Ball:
    r"""All parameters with :math:`\sum_b c_b \|w_b\|_2 \le r`, the sum over single entries or over groups of features.

    The first axis of a parameter is that of features. A minimum over such a set has few groups that are not zero, so
    that most features can be left out while it is looked for.

    Attributes
    ----------
    radius : float
        r.
    costs : ndarray
        The numbers c, positive, one for each entry of a parameter or one for each group.
    groups : ndarray of int, or None
        For each feature the number of its group, from 0; None where every entry is a group of its own.
    signed : bool
        Whether entries may be negative; where they may not, groups are single entries.
    tight : bool
        Whether the sum must be equal to the radius, as on a simplex; entries are then not negative.
    """

    radius: float
    costs: Array
    groups: Array | None = None
    signed: bool = True
    tight: bool = False

    def sizes(self, w: Array) -> Array:
        """The Euclidean norm of each group, or the size of each entry."""
        return np.abs(w) if self.groups is None else np.sqrt(self.sums(w * w))

    def sums(self, x: Array) -> Array:
        """The sum of the entries of each group."""
        if self.groups is None:
            return x
        rows = x if x.ndim == 1 else x.sum(axis=1)
        return np.bincount(self.groups, rows, minlength=len(self.costs))

    def norm(self, w: Array) -> float:
        """The sum that the radius bounds."""
        return float(np.sum(self.costs * self.sizes(w)))

    def slopes(self, g: Array) -> Array:
        """Return, for each group, the decrease of the linear function per unit of its norm; 0 for weight zero."""
        pull = self.sizes(g) if self.signed else -g
        return np.asarray(np.divide(pull, self.costs, out=np.zeros_like(pull), where=self.costs > 0.0))

    def scores(self, g: Array) -> Array:
        """For each feature the largest of the `slopes` that it has a part in."""
        slopes = self.slopes(g)
        if self.groups is not None:
            return slopes[self.groups]
        return slopes if slopes.ndim == 1 else slopes.max(axis=1)

    def level(self, g: Array) -> float:
        """The largest slope: the multiplier of the radius where ``g`` is the gradient at a minimum."""
        highest = float(np.max(self.slopes(g)))
        return highest if self.tight else max(highest, 0.0)

    def among(self, features: Array) -> GroupL1Ball:
        """The part of the set where all other features are zero; whole groups must be among ``features``."""
        if self.groups is None:
            return replace(self, costs=self.costs[features])
        kept, groups = np.unique(self.groups[features], return_inverse=True)
        return replace(self, costs=self.costs[kept], groups=groups)

    def beside(self, free: int, shape: tuple[int, int]) -> GroupL1Ball:
        """The same set for parameters of ``shape`` above so many features that are at no cost."""
        if self.groups is None:
            costs = self.costs.reshape(shape[0], -1) * np.ones(shape)
            return replace(self, costs=np.vstack([costs, np.zeros((free, shape[1]))]))
        more = np.arange(len(self.costs), len(self.costs) + free)
        return replace(self, costs=np.append(self.costs, np.zeros(free)), groups=np.append(self.groups, more))

    def flattened(self, outputs: int) -> GroupL1Ball:
        """The same set for parameters whose outputs are laid out one behind the other, feature by feature."""
        if self.groups is None:
            return replace(self, costs=self.costs.ravel())
        return replace(self, groups=np.repeat(self.groups, outputs))
