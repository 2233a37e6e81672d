"""The ball of a mixed norm; the groups are the rows of a matrix or given by labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from projfree.checks import Array, at_least, positive, shown
from projfree.numerics.flat_ball import GroupL1Ball
from projfree.numerics.lp_norm import conjugate, lp_norm, norming, row_norms
from projfree.numerics.projections import project_groups
from projfree.sets.base import NormBall, Shape, Structure
from projfree.sets.inputs import check_matrix, checked_point, scaled_gradient, scaled_norm
from projfree.sets.lp import LpBall, hoelder, spread

#: Largest size of the zero-padded table of groups. One large group among many small ones makes it large.
MOST_ENTRIES = 1 << 27

Labels = tuple[int, ...] | None


@dataclass(frozen=True)
class GroupBall(NormBall):
    r"""The ball of the mixed norm of matrices: the l_q norm of the l_p norms of the rows.

    .. math:: \|W\|_{p,q} = \Bigl(\sum_i \|W_i\|_p^q\Bigr)^{1/q} \le r

    With the conjugate exponents ``z`` of ``p`` and ``s`` of ``q``, the oracle is

    .. math:: \operatorname{lmo}(G)_{ij} = -r\, \|G\|_{z,s}^{1-s}\, \|G_i\|_z^{s-z}\, \operatorname{sgn}(G_{ij})\,
              |G_{ij}|^{z-1},

    the product of the norming vector of the row norms and those of the rows. ``p = 2, q = 1`` is the norm of the group
    lasso. Cost: one power per entry.

    The projection solves :math:`\|W_i - X_i\|_z = \lambda (\|X_i\|_p/r)^{q-1}` for all rows at once: a closed form or
    one l_p projection for ``p = q``, ``p = 2`` or ``q = inf``, about ten for ``q = 1``, and about a hundred otherwise.

    Parameters
    ----------
    p, q, radius : float
        The exponents within and across groups, from 1 to ``math.inf``, and the radius, positive and finite.
    groups : sequence of int, optional
        The group label of each entry of a vector, or of each row of a matrix; a group of rows contains all their
        entries. By default each row of a matrix is a group.

    Examples
    --------
    >>> import numpy as np
    >>> from projfree.sets import GroupBall
    >>> GroupBall(2, 1, radius=5.0).lmo(np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[-3., -4.],
           [ 0.,  0.]])
    >>> GroupBall(2, 1, radius=5.0, groups=[0, 1, 0]).lmo(np.array([3.0, 1.0, 4.0]))
    array([-3.,  0., -4.])
    """

    p: float
    q: float
    radius: float
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", at_least("GroupBall(p=...)", self.p, 1.0))
        object.__setattr__(self, "q", at_least("GroupBall(q=...)", self.q, 1.0))
        object.__setattr__(self, "radius", positive("GroupBall(radius=...)", self.radius))
        if self.groups is not None:
            object.__setattr__(self, "groups", checked_labels("GroupBall(groups=...)", self.groups))

    def __repr__(self) -> str:
        labels = "" if self.groups is None else f", groups={self.groups}"
        return f"GroupBall(p={self.p}, q={self.q}, radius={self.radius}{labels})"

    def structure(self, shape: Shape) -> Structure:
        if self.p == self.q:
            return LpBall(self.p, self.radius).structure(shape)
        group_l1 = None
        if (self.p, self.q) == (2.0, 1.0):
            groups = np.arange(shape[0]) if self.groups is None else _padding(self.groups)[0]
            group_l1 = GroupL1Ball(self.radius, np.ones(int(groups.max()) + 1), groups)
        return Structure(
            group_l1=group_l1,
            polytope=self.p in (1.0, math.inf) and self.q in (1.0, math.inf),
            absolute=True,
            projection="fast" if self.p == 2.0 or self.q == math.inf else "slow",
        )

    def check_shape(self, shape: Shape) -> None:
        if self.groups is None:
            check_matrix("GroupBall", shape, "groups x entries")
        elif len(shape) not in (1, 2) or shape[0] != len(self.groups):
            raise ValueError(
                f"`GroupBall(groups=...)` has {len(self.groups)} labels, which do not fit points of shape {shape}; "
                "give one label for each entry, or for each row of a matrix."
            )

    @scaled_gradient
    def lmo(self, g: Array) -> Array:
        rows = to_padded(g, self.groups)
        sizes = norming(row_norms(rows, conjugate(self.p))[None, :], self.q)[0]
        return from_padded(-self.radius * sizes[:, None] * norming(rows, self.p), self.groups, g.shape)

    @scaled_norm
    def norm(self, w: Array) -> float:
        return lp_norm(row_norms(to_padded(w, self.groups), self.p), self.q)

    @scaled_norm
    def dual_norm(self, g: Array) -> float:
        return lp_norm(row_norms(to_padded(g, self.groups), conjugate(self.p)), conjugate(self.q))

    @checked_point
    def project(self, w: Array) -> Array:
        return from_padded(project_groups(to_padded(w, self.groups), self.p, self.q, self.radius), self.groups, w.shape)

    def reach(self, shape: Shape) -> float:
        r"""Return :math:`r \|s\|_t` with :math:`s_i = \max(1, k_i^{1/2-1/p})` for groups of :math:`k_i` entries.

        This is Hoelder's inequality with :math:`1/t = \max(0, 1/2 - 1/q)`, which is attained.
        """
        self.check_shape(shape)
        widths = np.array([spread(self.p, int(k)) for k in group_sizes(self.groups, shape)])
        return self.radius * lp_norm(widths, hoelder(self.q))

    def strong_convexity(self, shape: Shape) -> float:
        r"""Return :math:`(\min(p,q)-1)\, k^{1/2-1/p}\, n^{1/2-1/q}/r` for :math:`1 < p, q \le 2`, else 0.

        By the inequalities of Bonami and Beckner for random signs and of Minkowski, half the square of the norm is
        :math:`(\min(p,q)-1)`-strongly convex in the norm; the other factors convert it to the Euclidean norm.
        """
        self.check_shape(shape)
        if max(self.p, self.q) > 2.0:
            return 0.0
        sizes = group_sizes(self.groups, shape)
        widths = spread(conjugate(self.p), int(sizes.max())) * spread(conjugate(self.q), len(sizes))
        return (min(self.p, self.q) - 1.0) / (self.radius * widths)


def checked_labels(name: str, groups: Sequence[int] | Array) -> tuple[int, ...]:
    """Return the labels as a tuple of int; raise ValueError if they are invalid."""
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


def to_padded(x: Array, groups: Labels) -> Array:
    """Return a zero-padded matrix whose rows are the groups of ``x``."""
    if groups is None:
        return x
    group, place, count, width = _padding(groups)
    table = np.zeros((count, width, *x.shape[1:]))
    table[group, place] = x
    return table.reshape(count, -1)


def from_padded(table: Array, groups: Labels, shape: Shape) -> Array:
    """Return the point of shape ``shape`` from its padded matrix; the inverse of `to_padded`."""
    if groups is None:
        return table
    group, place, count, width = _padding(groups)
    out: Array = table.reshape(count, width, *shape[1:])[group, place]
    return out


def group_sizes(groups: Labels, shape: Shape) -> Array:
    """Return the number of entries of each group for points of this shape."""
    if groups is None:
        return np.full(shape[0], shape[1])
    counts: Array = np.bincount(_padding(groups)[0]) * int(np.prod(shape[1:]))
    return counts


@lru_cache(maxsize=64)
def _padding(groups: tuple[int, ...]) -> tuple[Any, Any, int, int]:
    """Return the group of each entry, its position in the group, the number of groups and the largest group size."""
    group = np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(group)
    order = np.argsort(group, kind="stable")
    place = np.empty(len(group), dtype=np.intp)
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return group, place, len(counts), int(counts.max())
