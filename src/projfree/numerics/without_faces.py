"""Points near the minimum of a quadratic over a `FlatBall` by methods that need no regular face.

Where more entries are not zero than the matrix has rank, a Newton step on the face says nothing about the multiplier,
and descent drops one entry after the other. What takes over must not take minutes on thousands of entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from projfree.checks import Array
from projfree.numerics.flat_ball import FlatBall
from projfree.numerics.l1_path import l1_path
from projfree.numerics.lp_quadratic import minimise_quadratic
from projfree.numerics.projected_quadratic import project_descent
from projfree.numerics.pseudo_inverse import pseudo_inverse

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
    joint = H if b.ndim == 1 else np.kron(H, np.eye(b.shape[1]))
    found = l1_path(joint / costs / costs[:, None], b.ravel() / costs, np.array([ball.radius]))[0]
    return np.asarray(found / costs).reshape(b.shape)
