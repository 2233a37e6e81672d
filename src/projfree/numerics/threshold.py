"""Euclidean projection onto the simplex and the l_1 ball: short rows are sorted, long ones filtered."""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array

_SAMPLE = 1024  # about so many entries guess the threshold of a longer row
_MARGIN = 1.0625  # widens the guess, so that it seldom has to be corrected
_ROUNDS = 24  # of the filter, after which what is left is sorted; 2-8 are usual
_BLOCK = 16384  # entries of short rows that are sorted together; more would leave the processor's cache
_SMALL, _LARGE = 1e-270, 1e290  # beyond them products lose digits to denormal numbers, or sums overflow

#: What is sorted and filtered together: the ratios z/d and, with weights, also d^2 and d z.
_Parts = tuple[Array, ...]


def simplex_rows(z: Array, radius: float | Array, weights: Array | None = None) -> Array:
    r"""Project the rows of ``z`` onto :math:`\{x \ge 0 : \sum_j d_j x_j = r\}` (:math:`d = 1` by default).

    .. math:: x_j = (z_j - \mu d_j)_+, \qquad \mu = \Bigl(\sum_{j \in A} d_j z_j - r\Bigr) \Big/ \sum_{j \in A} d_j^2,

    with :math:`A` the entries that stay positive, those with the largest :math:`z_j/d_j`. Where the radius is small
    against ``z`` this difference would cancel, and the threshold is measured from the largest ratio instead:
    :math:`x_j = d_j (\eta - \delta_j)_+`, :math:`\delta_j = \max_i (z_i/d_i) - z_j/d_j`,
    :math:`\eta = (r + \sum_A d_j^2 \delta_j)/\sum_A d_j^2`.

    For every other set of entries this quotient is at least :math:`\eta`. A filter therefore removes the entries whose
    :math:`\delta_j` is not below it until there are none (Michelot), from the set on that a sample of the row suggests.
    Cost: one sort of each short row, a few reads of a long one; where the filter removes too little at a time, a sort
    of what it has left.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l_1-ball", 2008.
    Michelot, "A finite algorithm for finding the projection of a point onto the canonical simplex of R^n", 1986.
    """
    d = None if weights is None else np.broadcast_to(weights, z.shape)
    r = np.broadcast_to(np.asarray(radius, dtype=np.float64).reshape(-1, 1), (len(z), 1))
    largest = max(float(z.max(initial=0.0)), -float(z.min(initial=0.0)), float(r.max(initial=0.0)))
    if _LARGE < largest < math.inf or 0.0 < largest < _SMALL:
        sizes = np.maximum(np.abs(z).max(axis=-1, keepdims=True, initial=0.0), r)
        unit = np.where(sizes > _LARGE, 2.0**100, np.where(sizes < _SMALL, 2.0**-100, 1.0))
        return np.asarray(simplex_rows(z / unit, r / unit, weights) * unit)
    eta, mu = np.empty_like(r), np.empty_like(r)
    step = max(1, _BLOCK // max(1, z.shape[1]))
    for rows in (slice(i, i + step) for i in range(0, len(z), step)):
        eta[rows], mu[rows] = _thresholds(z[rows], None if d is None else d[rows], r[rows])
    return _shrunk(z, d, eta, mu)


def _thresholds(z: Array, d: Array | None, r: Array) -> tuple[Array, Array]:
    r""":math:`\eta` and :math:`\mu` of every row, as columns like ``r``."""
    if z.shape[1] <= 2 * _SAMPLE:
        return _by_sorting((z,) if d is None else (z / d, d * d, d * z), r)
    found = [_by_filter(z[i], None if d is None else d[i], float(r[i, 0])) for i in range(len(z))]
    eta, mu = np.array(found).T[:, :, None]
    return eta, mu


def _shrunk(z: Array, d: Array | None, eta: Array, mu: Array) -> Array:
    """The projection for given thresholds, for each row in the form that loses fewer digits."""
    near = (eta < np.abs(mu))[:, 0]
    if near.all():
        out = z.copy() if d is None else z / d
        out -= out.max(axis=-1, keepdims=True)
        out += eta
        if d is not None:
            out *= d
    else:
        out = z - mu if d is None else mu * d
        if d is not None:
            np.subtract(z, out, out=out)
        if near.any():
            out[near] = _shrunk(z[near], None if d is None else d[near], eta[near], mu[near])
    return np.maximum(out, 0.0, out=out)


def _by_sorting(parts: _Parts, r: Array) -> tuple[Array, Array]:
    if len(parts) == 1:
        ratio = np.sort(parts[0], axis=-1)[:, ::-1]
        delta = ratio[:, :1] - ratio
        mass = np.broadcast_to(np.arange(1.0, ratio.shape[1] + 1.0), ratio.shape)
        etas, moment = np.cumsum(delta, axis=-1), np.cumsum(ratio, axis=-1)
    else:
        order = np.argsort(-parts[0], axis=-1, kind="stable")
        order += (np.arange(len(order)) * order.shape[1])[:, None]
        ratio, square, product = (part.take(order) for part in parts)
        delta = ratio[:, :1] - ratio
        mass = np.cumsum(square, axis=-1)
        etas, moment = np.cumsum(square * delta, axis=-1), np.cumsum(product, axis=-1)
    etas += r
    etas /= mass
    # The positive entries are a prefix of the sorted row, and the first entry (delta = 0) is always one of them.
    last = np.maximum(np.count_nonzero(delta < etas, axis=-1) - 1, 0)
    at = np.arange(len(r)), last
    return etas[at][:, None], (moment[at][:, None] - r) / mass[at][:, None]


def _by_filter(z: Array, d: Array | None, r: float) -> tuple[float, float]:
    ratio = z if d is None else z / d
    top = float(ratio.max())
    if not math.isfinite(top):
        return math.nan, math.nan
    guess = _guess(z, d, top, r)
    parts = _within(top - guess, ratio, z, d)
    for _ in range(_ROUNDS):
        delta = top - parts[0]
        mass = float(len(delta) if d is None else np.add.reduce(parts[1]))
        eta = (r + float(np.add.reduce(delta if d is None else parts[1] * delta))) / mass
        if eta > guess:  # entries beyond the guess may be positive, but none beyond this bound
            guess, parts = math.inf, _within(top - eta, ratio, z, d)
            continue
        keep = delta <= eta  # not <, as an eta of denormal numbers may round to 0
        if np.count_nonzero(keep) == len(keep):
            return eta, (float(np.add.reduce(parts[-1])) - r) / mass
        parts = tuple(part.compress(keep) for part in parts)
    etas, mus = _by_sorting(tuple(part[None] for part in parts), np.full((1, 1), r))
    return float(etas[0, 0]), float(mus[0, 0])


def _guess(z: Array, d: Array | None, top: float, r: float) -> float:
    r""":math:`\eta` as a sample of the row suggests it, a little more."""
    step = (len(z) // _SAMPLE) | 1  # odd, as the columns of a matrix are often a power of 2
    share = len(z[::step]) / len(z)
    z, d = z[None, ::step], None if d is None else d[None, ::step]
    parts: _Parts = (z,) if d is None else (z / d, d * d, d * z)
    etas, _ = _by_sorting(parts, np.full((1, 1), _MARGIN * r * share))
    return top - float(parts[0].max()) + float(etas[0, 0])


def _within(least: float, ratio: Array, z: Array, d: Array | None) -> _Parts:
    """What is filtered of the entries whose ratios are not below ``least``."""
    keep = ratio >= least
    if d is None:
        return (ratio if np.logical_and.reduce(keep) else ratio.compress(keep),)
    d, z = d.compress(keep), z.compress(keep)
    return ratio.compress(keep), d * d, d * z
