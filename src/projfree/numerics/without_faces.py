"""Points near the minimum of a quadratic over a `FlatBall` by methods that need no regular face.

Where more entries are not zero than the matrix has rank, a Newton step on the face says nothing about the multiplier,
and descent drops one entry after the other. What takes over must not take minutes on thousands of entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from projfree.checks import Array
from projfree.numerics.fista import project_descent
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.l1_path import l1_path
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.numerics.pseudo_inverse import pseudo_inverse
from projfree.numerics.simplex_quadratic import minimise_on_simplex

#: Up to so many entries the path of all radii is followed from zero, and up to so many an active set is tried: a pivot
#: takes a time that grows with their square, a step of the latter with their cube.
MOST_WALKED, MOST_ACTIVE = 2_000, 500
#: Multiplications that projected gradients may take in all, and their steps where each projection solves equations.
WORK, SEARCHES = 1e9, 500


def without_faces(H: Array, b: Array, ball: FlatBall, start: Array) -> Iterator[Array]:
    """Points near the minimum, each by another method, as exact as it is."""
    entries = ball.groups is None and ball.signed
    if entries and b.size <= MOST_WALKED:
        yield _walked(H, b, ball)
    if entries and b.size <= MOST_ACTIVE and (ball.costs == ball.costs.flat[0]).all():
        yield minimise_quadratic(H, b, 1.0, ball.radius / float(ball.costs.flat[0]), start).w
        return
    if ball.groups is None and not ball.signed and b.size <= MOST_ACTIVE:
        yield _among_corners(H, b, ball, start)
    if not ball.tight and ball.signed:
        inside = np.asarray(pseudo_inverse(H)[0](b.reshape(len(b), -1))).reshape(b.shape)
        if ball.norm(inside) <= ball.radius:
            yield inside
            return
    largest = float(np.linalg.norm(H, np.inf)) if len(H) > MOST_ACTIVE else float(np.linalg.eigvalsh(H)[-1])
    steps = max(1, round(WORK / (H.size * b.size / len(b))))
    if ball.groups is not None and ball.exponent not in (2.0, math.inf):
        steps = min(steps, SEARCHES)
    yield project_descent(H, b, ball.project, start, largest * (1.0 + 1e-12), steps)


def _walked(H: Array, b: Array, ball: FlatBall) -> Array:
    """The end of the path of minimisers over smaller balls."""
    costs = np.broadcast_to(ball.costs, b.shape).ravel()
    found = l1_path(_joint(H, b) / costs / costs[:, None], b.ravel() / costs, np.array([ball.radius]))[0]
    return np.asarray(found / costs).reshape(b.shape)


def _among_corners(H: Array, b: Array, ball: FlatBall, start: Array) -> Array:
    """The minimiser where no entry is negative, as weights of the corners; zero is one unless the sum is given."""
    scale = np.append(ball.radius / np.broadcast_to(ball.costs, b.shape).ravel(), [] if ball.tight else [0.0])
    weights, m = np.zeros(len(scale)), b.size
    weights[:m] = np.maximum(start.ravel(), 0.0) / scale[:m]
    weights[m:] = max(1.0 - float(weights.sum()), 0.0)
    weights = weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))
    K = np.zeros((len(scale),) * 2)
    K[:m, :m] = _joint(H, b) * scale[:m] * scale[:m, None]
    found = minimise_on_simplex(K, K @ weights - np.append(b.ravel(), scale[m:]) * scale, weights)
    return np.asarray(found[:m] * scale[:m]).reshape(b.shape)


def _joint(H: Array, b: Array) -> Array:
    """The matrix that acts on all entries in C order."""
    return H if b.ndim == 1 else np.kron(H, np.eye(b.shape[1]))
