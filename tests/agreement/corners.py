"""Pairs of a direction G and a point W of a set that maximises <G, W> over it, all entries whole numbers.

The norms involved are rational because the entries are chosen so: 3^2 + 4^2 = 5^2, 2^2 + 3^2 + 6^2 = 7^2,
3^3 + 4^3 + 5^3 = 6^3, and orthogonal matrices of whole numbers times 1/5 or 1/3. Whatever p is, a direction with one
entry has its maximiser on that axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from agreement.exact import Array

from projfree import Box, ConstraintSet, GroupBall, LpBall, SchattenBall, Simplex, Weighted

INF = math.inf
AXES = (1.0, 1.001, 1.05, 1.1, 1.2, 1.5, 1.7, 2.0, 3.0, 10.0, INF)
#: Five, respectively three times an orthogonal matrix.
TURN = np.array([[3, -4], [4, 3]])
FLIP = np.array([[1, -2, -2], [-2, 1, -2], [-2, -2, 1]])


@dataclass(frozen=True, eq=False)
class Corner:
    """W maximises <G, W> over the set; both are arrays of whole numbers (or halves)."""

    ball: ConstraintSet
    G: Array
    W: Array


def corners() -> list[Corner]:
    """All pairs, of every kind of set."""
    return [*_axes(), *_flat(), *_round(), *_groups(), *_spectral(), *_other()]


def _axes() -> list[Corner]:
    """One entry: the same maximiser for every exponent; d = 1 among them."""
    vectors = [Corner(LpBall(p, 3.0), np.array([0, -7, 0]), np.array([0, -3, 0])) for p in AXES]
    scalars = [Corner(LpBall(p, 0.5), np.array([5]), np.array([0.5])) for p in AXES]
    one = np.array([[0, 0], [0, 9]])
    groups = [Corner(GroupBall(p, q, 2.0), one, np.sign(one) * 2) for p in AXES[::3] for q in AXES[::3]]
    spectral = [Corner(SchattenBall(p, 2.0), one, np.sign(one) * 2) for p in AXES]
    return [*vectors, *scalars, *groups, *spectral]


def _flat() -> list[Corner]:
    """Corners and faces of l_1 and of l_inf, where the maximiser need not be unique."""
    g = np.array([6, -6, 2, 0])
    faces = [np.array([8, 0, 0, 0]), np.array([5, -3, 0, 0]), np.array([0, -8, 0, 0])]
    cube = [np.array([8, -8, 8, 0]), np.array([8, -8, 8, -3])]
    return [*(Corner(LpBall(1, 8.0), g, w) for w in faces), *(Corner(LpBall(INF, 8.0), g, w) for w in cube)]


def _round() -> list[Corner]:
    """l_2, l_1.5, l_3 and l_4 with rational norms; the last with weights."""
    out = []
    for g in ([3, -4], [2, 3, 6], [1, -4, 8, 0], [2, 4, -5, 6]):
        w = np.array(g)
        out.append(Corner(LpBall(2, float(np.sqrt(np.sum(w**2)))), w, w))
    for g in ([3, 4, -5], [1, 6, 8, 0]):
        w, size = np.array(g), round(float(np.sum(np.abs(np.array(g)) ** 3)) ** (1 / 3))
        out.append(Corner(LpBall(1.5, float(size**2)), w, np.sign(w) * w**2))
        out.append(Corner(LpBall(3, float(size)), np.sign(w) * w**2, w))
    ones = np.resize([1, -1], 16)
    out.append(Corner(LpBall(4, 2.0), 3 * ones, ones))
    d = np.array([0.5, 4.0])
    out.append(Corner(Weighted(LpBall(2, 5.0), d), np.array([3, 4]) * d, np.array([3, 4]) / d))
    out.append(Corner(Weighted(LpBall(1, 4.0), d), np.array([3, 4]) * d, np.array([0, 4]) / d))
    return out


def _groups() -> list[Corner]:
    G = np.array([[3, -4], [1, 2], [0, 0]])
    two = np.array([[3, 1], [-1, 4]])
    rows = np.array([[3, 4], [8, -6], [0, 5]])
    return [
        Corner(GroupBall(2, 1, 5.0), G, np.array([[3, -4], [0, 0], [0, 0]])),
        Corner(GroupBall(INF, 1, 5.0), G, np.array([[5, -5], [0, 0], [0, 0]])),
        Corner(GroupBall(1, 2, 5.0), two, np.array([[3, 0], [0, 4]])),
        Corner(GroupBall(INF, 2, 5.0), np.array([[1, -2], [4, 0]]), np.array([[3, -3], [4, 1]])),
        Corner(GroupBall(2, INF, 5.0), rows, np.array([[3, 4], [4, -3], [0, 5]])),
        Corner(GroupBall(1, INF, 5.0), two, np.array([[5, 0], [0, 5]])),
    ]


def _spectral() -> list[Corner]:
    """Singular values as in `_round`, turned by orthogonal matrices of whole numbers."""
    out = []
    for left, right, scale in ((TURN, TURN.T, 25), (TURN, np.eye(2, dtype=int), 5), (FLIP, FLIP[:, ::-1], 9)):
        for p, s, v, size in _singular(len(left)):
            ball = SchattenBall(p, float(size * scale))
            out.append(Corner(ball, left @ np.diag(s) @ right, left @ np.diag(v) @ right))
    wide = np.hstack([FLIP, np.zeros((3, 2), dtype=int)])
    out.append(Corner(SchattenBall(INF, 3.0), wide, wide))
    return out


def _singular(k: int) -> list[tuple[float, list[int], list[int], int]]:
    """Exponent, singular values of G, those of W, and the norm of the latter."""
    if k == 2:
        return [(1.0, [4, 1], [2, 0], 2), (2.0, [3, 4], [3, 4], 5), (INF, [3, 1], [2, 2], 2), (2.0, [1, 0], [1, 0], 1)]
    return [(1.5, [3, 4, 5], [9, 16, 25], 36), (3.0, [9, 16, 25], [3, 4, 5], 6), (1.0, [2, 7, 3], [0, 3, 0], 3)]


def _other() -> list[Corner]:
    g = np.array([2, 5, 5, -1])
    box = Box(np.array([-1.0, 0.5, 2.0, -4.0]), np.array([0.0, 0.5, 3.0, 8.0]))
    return [
        Corner(Simplex(4.0), g, np.array([0, 4, 0, 0])),
        Corner(Simplex(4.0), g, np.array([0, 1, 3, 0])),
        Corner(Simplex(1.0), -np.array([[1, 2], [3, 4]]), np.array([[1, 0], [0, 0]])),
        Corner(box, g, np.array([0.0, 0.5, 3.0, -4.0])),
        Corner(Box(-2.0, 5.0), np.array([[1, 0], [-3, 2]]), np.array([[5.0, -1.0], [-2.0, 5.0]])),
    ]
