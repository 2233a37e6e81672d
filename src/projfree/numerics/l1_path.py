r"""A quadratic over l_1 balls of many radii: its minimiser is piecewise linear in the multiplier.

With the multiplier :math:`\lambda` of the radius, active entries A and their signs s,

.. math:: w_A = H_{AA}^{-1} (b_A - \lambda s), \qquad |b - H w|_i \le \lambda \text{ elsewhere},

until an entry of w falls to zero or one of the slope reaches :math:`\lambda` (Osborne, Presnell and Turlach, 2000, A
new approach to variable selection in least squares problems). One principal pivot of the matrix takes an entry in or
out. Pivots are symmetric and of rank one, and applied many at a time: a pivot needs no more of the matrix than its own
column.
"""

from __future__ import annotations

import math

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired

#: A pivot below this part of its diagonal entry is rounding; the path ends there.
LEAST_PIVOT = 1e-10
#: A slope outside A that follows those within moves no faster than this relative to the multiplier, but for rounding.
STILL = 1e-8
#: Pivots for each entry before the path counts as cycling.
PIVOTS = 8
#: Pivots that are applied at a time.
BATCH = 32


def l1_path(H: Array, b: Array, radii: Array) -> Array:
    """Minimisers for increasing radii, one a row, as exact as the pivots were; whoever asks checks them.

    Parameters
    ----------
    H : array of shape (d, d)
        Symmetric and positive semidefinite.
    b : array of shape (d,)
    radii : array of shape (m,)
        In increasing order, positive. Those beyond the least norm of a minimiser get that minimiser.

    Notes
    -----
    A pivot costs O(d^2) in products of matrices, and there are about as many as entries of the last minimiser,
    whatever the number of radii.
    """
    walk = _Walk(H, b)
    found, k = np.zeros((len(radii), len(b))), 0
    while True:
        step = walk.length()
        # The norm grows at this rate until the next pivot: all radii up to there lie on this segment.
        norm, rate = float(walk.far[0] @ walk.active), -float(walk.fast[0] @ walk.active)
        last = len(radii) if walk.ended else int(np.searchsorted(radii, norm + step * rate))
        if last > k:
            shares = np.minimum((radii[k:last] - norm) / rate, step) if rate > 0.0 else np.zeros(last - k)
            sizes = walk.far[0] - np.multiply.outer(np.maximum(shares, 0.0), walk.fast[0])
            found[k:last] = walk.signs * sizes
            k = last
        if k == len(radii):
            return found
        walk.advance(step)


class _Walk:
    """A point of the path: the multiplier ``level``, and where it goes as that falls.

    ``far`` holds how far each coefficient within A is from zero, and each slope outside from the multiplier, above
    and below; ``fast`` how fast that shrinks. Within A the second row stands still.
    ``swept`` holds, in its lower triangle, minus the inverse of H within A, what is left of H outside, and between
    them how slopes outside follow those within, once ``columns`` of the last ``waiting`` pivots are taken away, or
    added where ``ways`` is negative; ``moves`` is its product with the signs. Slopes that follow those within A, as of
    a feature that stands twice, stay where they are relative to the multiplier, and are ``skipped`` until A shrinks.
    """

    def __init__(self, H: Array, b: Array) -> None:
        self.H, self.b = H, b
        self.swept, self.diagonal, d = np.array(H, order="F"), np.diag(H), len(b)
        self.columns, self.ways = np.zeros((BATCH, d)), np.zeros(BATCH)
        self.waiting, self.moves = 0, np.zeros(d)
        self.skipped: list[int] = []
        self.level, self.pivots, self.ended = float(np.abs(b).max()), 0, False
        # The signs within A, and minus one outside.
        self.signs, self.active, self.others, self.turns = np.zeros(d), np.zeros(d), np.ones(d), -np.ones(d)
        self.far, self.fast, self.steps = np.stack((self.level - b, self.level + b)), *np.zeros((2, 2, d))
        self.row, self.next = divmod(int(self.far.argmin()), d)
        self._take()

    def _take(self) -> None:
        """Turn the next entry from a slope into a coefficient, or back, and see where everything goes."""
        j = self.next
        leaves = bool(self.active[j])
        entries = self._column(j)
        self.pivots += 1
        degenerate = not leaves and not entries[j] > LEAST_PIVOT * self.diagonal[j]
        follows = degenerate and self.fast[self.row, j] <= STILL
        self.ended = (degenerate and not follows) or self.pivots > PIVOTS * len(entries) or expired()
        if self.ended:
            self.fast[:] = 0.0
            return
        if follows:
            self.skipped.append(j)
            self.others[j] = self.turns[j] = 0.0
            self.fast[:, j] = 0.0
            return
        side = 0 if self.signs[j] > 0.0 else 1
        sign = float(self.signs[j]) if leaves else 1.0 - 2.0 * self.row
        self._pivot(j, entries, leaves, sign)
        if leaves:
            self.far[side, j], self.far[1 - side, j] = 0.0, 2.0 * self.level
        else:
            self.far[0, j] = 0.0
        self.signs[j], self.turns[j] = (0.0, -1.0) if leaves else (sign, sign)
        self.active[j], self.others[j] = (0.0, 1.0) if leaves else (1.0, 0.0)
        if leaves:
            self._reconsider()
        if self.waiting == BATCH:
            self._apply()
        self._aim(self.moves)
        if leaves:
            # It moves away from where it was, and does not come back at once because of rounding.
            self.fast[side, j] = min(float(self.fast[side, j]), 0.0)

    def _reconsider(self) -> None:
        """Follow the slopes again that were skipped: A has shrunk, so they may no longer follow those within."""
        for j in self.skipped:
            slope = float(self.b[j] - self.H[j] @ (self.signs * self.far[0]))
            self.far[:, j] = max(self.level - slope, 0.0), max(self.level + slope, 0.0)
            self.others[j], self.turns[j] = 1.0, -1.0
        self.skipped.clear()

    def _column(self, j: int) -> Array:
        """A column of the symmetric matrix, without what waits."""
        k, entries = self.waiting, np.empty(len(self.swept))
        entries[:j], entries[j:] = self.swept[j, :j], self.swept[j:, j]
        entries -= (self.ways[:k] * self.columns[:k, j]) @ self.columns[:k]
        return entries

    def _pivot(self, j: int, entries: Array, leaves: bool, sign: float) -> None:
        """Pivot on the entry j of a column with these entries; what it does to other columns waits."""
        k, along, pivot = self.waiting, float(self.moves[j]), float(entries[j])
        column = entries / pivot
        np.divide(entries, math.sqrt(abs(pivot)), out=self.columns[k])
        self.columns[: k + 1, j], self.ways[k] = 0.0, math.copysign(1.0, pivot)
        self.waiting = k + 1
        self.moves += ((0.0 if leaves else sign) - along) * column
        self.moves[j] = sign - along / pivot if leaves else (along - sign) / pivot
        if leaves:
            np.negative(column, out=column)
        column[j] = -1.0 / pivot
        self.swept[j, :j], self.swept[j:, j] = column[:j], column[j:]

    def _apply(self) -> None:
        """Take what waits away from the matrix, and find the moves anew."""
        from scipy.linalg.blas import dsymv, dsyrk

        for way in (1.0, -1.0):
            some = self.columns[: self.waiting][self.ways[: self.waiting] == way].T
            if some.size:
                dsyrk(-way, some, beta=1.0, c=self.swept, lower=1, overwrite_c=1)
        self.waiting, self.moves = 0, dsymv(1.0, self.swept, self.signs, lower=1)

    def _aim(self, moves: Array) -> None:
        """The speeds, from the change of slopes outside A and, with the other sign, of coefficients within."""
        fast = self.fast
        np.multiply(moves, self.turns, out=fast[0])
        fast[0] += self.others
        np.multiply(moves, self.others, out=fast[1])
        fast[1] += self.others

    def length(self) -> float:
        """By how much the multiplier can fall until an entry comes or goes, or it is zero."""
        if self.ended:
            return 0.0
        self.steps.fill(np.inf)
        np.divide(self.far, self.fast, out=self.steps, where=self.fast > 0.0)
        at = int(self.steps.argmin())
        step = max(float(self.steps.flat[at]), 0.0)
        self.row, self.next = divmod(at, len(self.signs))
        self.ended = step >= self.level
        return min(step, self.level)

    def advance(self, step: float) -> None:
        """Go to the next pivot, and over it."""
        self.far -= step * self.fast
        self.level -= step
        self._take()
