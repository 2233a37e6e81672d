"""Euclidean projection onto the simplex and the l_1 ball by sorting."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array


def simplex_rows(z: Array, radius: float | Array, weights: Array | None = None) -> Array:
    r"""Project the rows of ``z`` onto :math:`\{x \ge 0 : \sum_j d_j x_j = r\}` (:math:`d = 1` by default).

    .. math:: x_j = (z_j - \mu d_j)_+, \qquad \mu = \Bigl(\sum_{j \in A} d_j z_j - r\Bigr) \Big/ \sum_{j \in A} d_j^2,

    with :math:`A` the entries that stay positive: the largest :math:`z_j/d_j`, found by sorting. Where the radius is
    small against ``z`` this difference would cancel, and the threshold is measured from the largest ratio instead:
    :math:`x_j = d_j (\eta - \delta_j)_+`, :math:`\delta_j = \max_i (z_i/d_i) - z_j/d_j`,
    :math:`\eta = (r + \sum_A d_j^2 \delta_j)/\sum_A d_j^2`. Cost: one sort of each row.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l_1-ball", 2008.
    """
    d = np.ones_like(z) if weights is None else np.broadcast_to(weights, z.shape)
    r = np.asarray(radius, dtype=np.float64).reshape(-1, 1)
    ratio = z / d
    top = ratio.max(axis=-1, keepdims=True)
    delta = top - ratio
    order = np.argsort(delta, axis=-1, kind="stable")
    near = np.take_along_axis(delta, order, axis=-1)
    mass = np.cumsum(np.take_along_axis(d * d, order, axis=-1), axis=-1)
    etas = (r + np.cumsum(np.take_along_axis(d * d * delta, order, axis=-1), axis=-1)) / mass
    # The positive entries are a prefix of the sorted row, and the first entry (delta = 0) is always one of them.
    last = np.maximum((near < etas).sum(axis=-1, keepdims=True) - 1, 0)
    eta = np.take_along_axis(etas, last, axis=-1)
    moment = np.cumsum(np.take_along_axis(d * z, order, axis=-1), axis=-1)
    mu = (np.take_along_axis(moment, last, axis=-1) - r) / np.take_along_axis(mass, last, axis=-1)
    return np.asarray(np.maximum(np.where(eta < np.abs(mu), d * (eta - delta), z - mu * d), 0.0))
