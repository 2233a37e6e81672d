r"""A quadratic over the l_1 ball by an active-set method, which ends on the right face exactly.

The ball is the hull of :math:`\pm e_i` and 0. The method holds the minimiser over the hull of a few of
these vertices, takes in those that the gradient asks for, and drops those whose weight falls to zero; the value
decreases with every step, so that no set comes twice (Wolfe, 1976, Finding the nearest point in a polytope).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from projfree.checks import Array
from projfree.deadline import expired
from projfree.numerics.flat_step import flat_step, regular_solve
from projfree.numerics.unit_ball import Found, Unit

_EPS = float(np.finfo(np.float64).eps)
_GUESSES = 8  # faces that a start may try
_REFINED = 3  # steps on the last face
_IDLE = 30  # rounds without progress after which only rounding is left


def minimise_l1(unit: Unit, start: Array | None = None) -> Found:
    """The minimiser over the unit ball of l_1."""
    norm = 0.0 if start is None else float(np.add.reduce(np.abs(start), axis=None))
    x = np.zeros_like(unit.b) if start is None else start / max(norm, 1.0)
    found = unit.check(x)
    return found if found.gap <= found.floor else _SignedFace(unit, x).solve()


def start_from(unit: Unit, inverse: Callable[[Array], Array], free: Array) -> Array:
    """A start from the minimiser without the ball, ``free``: the minimiser on the face that has its signs.

    Entries whose sign would turn leave the face all at once, which is quick and need not be right; zero where no face
    is left. ``inverse`` solves with the matrix itself.
    """
    x = np.zeros_like(free)
    rows, columns = np.nonzero(free)
    sides = np.sign(free)
    signs = sides[rows, columns]
    for guess in range(_GUESSES):
        if not len(signs):
            break
        if guess == 0:
            inner, along = signs * free[rows, columns], signs * inverse(sides)[rows, columns]
        else:
            both = np.ones((len(signs), 2))
            both[:, 0] = signs * unit.b[rows, columns]
            solved = regular_solve(_block(unit, rows, columns, signs), both)
            if solved is None:
                break
            inner, along = solved.T
        weights = inner - (np.add.reduce(inner) - 1.0) / np.add.reduce(along) * along
        on = weights > 0.0
        if np.logical_and.reduce(on):
            x[rows, columns] = signs * weights
            break
        rows, columns, signs = rows[on], columns[on], signs[on]
    return x


def _block(unit: Unit, rows: Array, columns: Array, signs: Array) -> Array:
    """The matrix of the quadratic in the weights of the vertices."""
    block: Array = unit.H[rows[:, None], rows] * (signs * signs[:, None])
    return block if unit.b.shape[1] == 1 else block * (columns[:, None] == columns)


class _SignedFace:
    """The vertices in use: entries ``at`` of x with their signs and weights, and 0 with what is left of one."""

    def __init__(self, unit: Unit, x: Array) -> None:
        self.unit = unit
        self.noise = 4.0 * _EPS * float(max(1.0, unit.sizes.max()))
        self.rows, self.columns = np.nonzero(x)
        self.weights = np.abs(x[self.rows, self.columns])
        self.signs = np.sign(x[self.rows, self.columns])
        self.slack = 1.0 - float(self.weights.sum())
        if self.slack <= 4.0 * _EPS:
            self.slack, self.weights = 0.0, self.weights / self.weights.sum()

    def solve(self) -> Found:
        best, idle, full = self.unit.check(self.x()), 0, 0
        limit = 4 * self.unit.b.size + 50
        for step in range(1, limit + 1):
            self.descend()
            found = self.unit.check(self.x(), None, step)
            idle = 0 if found.gap < 0.9 * best.gap else idle + 1
            best = found if found.gap < best.gap else best
            if best.gap <= best.floor or idle >= _IDLE or full >= _REFINED or expired():
                break
            full = 0 if self.admit(best.floor) else full + 1  # with no vertex to take in, steps refine
        return best.after(step)

    def x(self) -> Array:
        x = np.zeros_like(self.unit.b)
        x[self.rows, self.columns] = self.signs * self.weights
        return x

    def descend(self) -> None:
        """Minimise over the hull of the vertices, dropping those in the way."""
        for _ in range(len(self.weights) + 1):
            if not len(self.weights):
                return
            slope = self.signs * (self.unit.H @ self.x() - self.unit.b)[self.rows, self.columns]
            block = _block(self.unit, self.rows, self.columns, self.signs)
            ways, whole = face_step(block, slope, self.slack == 0.0, self.noise)
            length = 1.0 if whole else np.inf
            falling = ways < 0.0
            if falling.any():
                length = min(length, float(np.minimum.reduce(-self.weights[falling] / ways[falling])))
            spent = float(np.add.reduce(ways))
            tight = self.slack > 0.0 and length * spent >= self.slack
            if tight:
                length = self.slack / spent
            if not math.isfinite(length):
                return
            hit = falling & (-self.weights >= ways * length * (1.0 + 4.0 * _EPS))
            self.weights = np.maximum(self.weights + length * ways, 0.0)
            if self.slack > 0.0:
                self.slack = 0.0 if tight else self.slack - length * spent
            self.keep(~hit)
            if (not hit.any() and not tight) or expired():
                return

    def keep(self, on: Array) -> None:
        self.rows, self.columns, self.signs = self.rows[on], self.columns[on], self.signs[on]
        self.weights = self.weights[on]
        if self.slack == 0.0 and len(self.weights):
            self.weights = self.weights / np.add.reduce(self.weights)

    def admit(self, noise: float) -> bool:
        """Take in the vertices, 0 among them, that would lower the value; False where there is none."""
        g = self.unit.H @ self.x() - self.unit.b
        level = 0.0
        if self.slack == 0.0 and len(self.weights):
            level = -float(self.weights @ (self.signs * g[self.rows, self.columns]))
            if level < -noise:
                self.slack = _EPS * _EPS  # a place for 0 among the vertices
                return True
        excess = np.abs(g) - level
        excess[self.rows, self.columns] = np.where(self.weights > 0.0, -np.inf, excess[self.rows, self.columns])
        worst = float(excess.max())
        if worst <= 0.25 * noise:
            return False
        rows, columns = np.nonzero(excess >= 0.5 * worst)
        order = np.argsort(-excess[rows, columns], kind="stable")[: 1 + len(self.weights) // 4]
        rows, columns = rows[order], columns[order]
        self.rows = np.concatenate((self.rows, rows))
        self.columns = np.concatenate((self.columns, columns))
        self.signs = np.concatenate((self.signs, -np.sign(g[rows, columns])))
        self.weights = np.concatenate((self.weights, np.zeros(len(rows))))
        return True


def face_step(H: Array, slope: Array, level: bool, noise: float) -> tuple[Array, bool]:
    r"""`flat_step`, with :math:`\sum\delta = 0` if ``level``."""
    if not level:
        return flat_step(H, slope, noise)
    slope = slope - slope.mean()  # changes nothing but the rounding
    sides = np.ones((len(slope), 2))
    sides[:, 0] = -slope
    solved = regular_solve(H, sides)
    if solved is not None:
        free, along = solved.T
        return free - np.add.reduce(free) / np.add.reduce(along) * along, True
    centre = np.eye(len(H)) - 1.0 / len(H)
    way, whole = flat_step(centre @ H @ centre, centre @ slope, noise)
    return centre @ way, whole
