r"""A quadratic over a `FlatBall` and a range for each of a few more entries, by an active set over these.

The entries that stand outside the ball are free or at an end of their range. Free ones are minimised out, those at an
end are constants; what is left is a quadratic over the ball. Steps end at the first end that they meet, and an entry is
let go from its end where the slope points inwards, one at a time, so that the function falls at every turn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.flat_descent import NOISE, FlatMinimum
from projfree.numerics.flat_quadratic import minimise_flat
from projfree.numerics.symmetric import TINY, Formed

#: A curvature of this part of what it was is rounding of what was subtracted.
EXPLAINED = 1e-13
#: Turns at most: so many for each entry that has a range, and some more.
TURNS, MORE = 3, 10
#: Columns that share a matrix have ends of their own up to so many entries, for which their joint matrix is formed.
MOST_JOINT = 2_000


def minimise_with_free(
    H: Array, b: Array, ball: FlatBall, start: Array, level: float, share: float, *, free: int, bound: float
) -> FlatMinimum:
    r"""The minimiser of :math:`\tfrac12\langle w, Hw\rangle - \langle b, w\rangle`, the last entries in a range.

    The last ``free`` features lie between ``-bound`` and ``bound``, the others in the set; the rest is as in
    `minimise_flat`. The gap is that of the set alone.
    """
    if b.ndim == 1:
        return _Ranges(H, b, ball, free, bound).solve(start, level, share)
    k, m = b.shape[1], len(b) - free
    found = _minimised_out(H, b, ball, start, level, share, m)
    if np.abs(found.w[m:]).max() <= bound:
        return found
    if b.size > MOST_JOINT:  # the way there is cut short where an end is met
        return replace(found, w=np.concatenate([found.w[:m], np.clip(found.w[m:], -bound, bound)]))
    joint = _Ranges(np.kron(H, np.eye(k)), b.ravel(), ball.flattened(k), free * k, bound)
    found = joint.solve(start.ravel(), level, share)
    return replace(found, w=found.w.reshape(b.shape))


class _Ranges:
    """One problem, for a single column."""

    def __init__(self, H: Array, b: Array, ball: FlatBall, free: int, bound: float) -> None:
        self.H, self.b, self.ball, self.free, self.bound = H, b, ball, free, bound
        self.m = len(b) - free

    def solve(self, start: Array, level: float, share: float) -> FlatMinimum:
        m, w = self.m, start.copy()
        fixed = (np.abs(w[m:]) >= self.bound) & (self._inward(w) <= 0.0)
        for _ in range(TURNS * self.free + MORE):
            found = self._over(w, fixed, level, share)
            level, over = found.level, np.abs(found.w[m:]) > self.bound
            if over.any():
                w = self._cut(w, found.w, over, fixed)
                continue
            w, inward = found.w, np.where(fixed, self._inward(found.w), -np.inf)
            worst = int(np.argmax(inward))
            if expired() or not inward[worst] > NOISE * float(np.abs(self.b).max(initial=0.0)):
                break
            fixed[worst] = False
        return replace(found, w=w)

    def _inward(self, w: Array) -> Array:
        """How fast the function falls as each entry moves towards zero from where it is."""
        m = self.m
        return np.asarray((self.H[m:] @ w - self.b[m:]) * np.sign(w[m:]))

    def _cut(self, w: Array, new: Array, over: Array, fixed: Array) -> Array:
        """The point on the way where the first end is met; the entries there are fixed from now on."""
        m = self.m
        ends = np.sign(new[m:]) * self.bound
        lengths, way = np.full(self.free, np.inf), new[m:] - w[m:]
        lengths[over] = 0.0  # where there is no way to go: at an end, up to rounding
        np.divide(ends - w[m:], way, out=lengths, where=over & (way != 0.0))
        length = max(float(lengths.min()), 0.0)
        first = lengths <= length
        w = w + length * (new - w)
        w[m:][first] = ends[first]
        fixed |= first
        return np.asarray(w)

    def _over(self, w: Array, fixed: Array, level: float, share: float) -> FlatMinimum:
        """The minimiser where some entries stay as they are."""
        rest = self.m + np.flatnonzero(fixed)
        kept = np.delete(np.arange(len(w)), rest)
        H, b = self.H[np.ix_(kept, kept)], self.b[kept] - self.H[np.ix_(kept, rest)] @ w[rest]
        found, answer = _minimised_out(H, b, self.ball, w[kept], level, share, self.m), w.copy()
        answer[kept] = found.w
        return replace(found, w=answer)


def _minimised_out(H: Array, b: Array, ball: FlatBall, start: Array, level: float, share: float, m: int) -> FlatMinimum:
    """The minimiser where entries from ``m`` on have no bounds."""
    A, B, C = H[:m, :m], H[:m, m:], H[m:, m:]
    inverse = _scaled_inverse(C)
    rest = A - B @ inverse @ B.T
    # What free entries explain of an entry, all of it up to rounding: its curvature is none, and may not be negative.
    gone = rest.diagonal() <= EXPLAINED * A.diagonal()
    rest[gone] = 0.0
    rest[:, gone] = 0.0
    found = minimise_flat(Formed(rest), b[:m] - B @ (inverse @ b[m:]), ball, start[:m], level, share)
    return replace(found, w=np.concatenate([found.w, inverse @ (b[m:] - B.T @ found.w)]))


def _scaled_inverse(C: Array) -> Array:
    """The pseudo-inverse of a positive semidefinite matrix scaled to unit diagonal, times the scales."""
    diagonal = C.diagonal()
    there = diagonal > TINY
    scale = np.where(there, 1.0 / np.sqrt(np.where(there, diagonal, 1.0)), 0.0)
    return np.asarray(scale[:, None] * np.linalg.pinv(scale[:, None] * C * scale, rcond=1e-13, hermitian=True) * scale)
