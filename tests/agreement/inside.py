"""Points that lie in a set to 70 digits: what refutes a bound must be feasible beyond doubt."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from agreement.exact import DIGITS, ONE, Array, decimals, power

from projfree import Box, ConstraintSet, GroupBall, LpBall, SchattenBall, Simplex, Weighted
from projfree.sets import Birkhoff, KSupportBall, OwlBall, Positive, Shifted, WithUnpenalized

#: Norms are right to more digits than this; a point is scaled to lie that much inside.
MARGIN = Decimal("1." + 69 * "0" + "1")
SWEEPS = 12


def pulled(ball: ConstraintSet, w: Any) -> Array:
    """The point of the set that is nearest to ``w`` along a ray (balls, simplex) or in each entry (box)."""
    with localcontext(DIGITS):
        w = decimals(w)
        if isinstance(ball, Box):
            low, high = (decimals(np.broadcast_to(b, w.shape)) for b in (ball.lower, ball.upper))
            return np.minimum(np.maximum(w, low), high)
        if isinstance(ball, Simplex):
            w = np.maximum(w, decimals(np.zeros(w.shape)))
            # The last digit of the sum goes to the largest entry: the sum is the radius to 80 digits.
            return w * (Decimal(ball.radius) / w.sum())
        if isinstance(ball, WithUnpenalized):
            kept = ~np.isin(np.arange(len(w)), ball.free)
            w[kept] = pulled(ball.ball, w[kept])
            w[~kept] = np.clip(w[~kept], -Decimal(ball.bound), Decimal(ball.bound))
            return w
        if isinstance(ball, Positive):
            return pulled(ball.ball, np.maximum(w, decimals(np.zeros(w.shape))))
        if isinstance(ball, Birkhoff):
            return _doubly_stochastic(w)
        if isinstance(ball, Shifted):
            offset = decimals(np.broadcast_to(ball.offset, w.shape))
            return pulled(ball.ball, w - offset) + offset
        size = norm(ball, w)
        radius = Decimal(ball.radius)
        return w * (radius / (size * MARGIN)) if size * MARGIN > radius else w


def norm(ball: ConstraintSet, w: Array) -> Decimal:
    """The norm of a ball."""
    with localcontext(DIGITS):
        if isinstance(ball, Weighted):
            return norm(ball.ball, w * decimals(np.broadcast_to(ball.weights, w.shape)))
        if isinstance(ball, LpBall):
            return lp(np.ravel(w), ball.p)
        if isinstance(ball, GroupBall):
            labels = range(len(w)) if ball.groups is None else ball.groups
            groups = [np.ravel(w[np.equal(labels, label)]) for label in sorted(set(labels))]
            return lp([lp(group, ball.p) for group in groups], ball.q)
        if isinstance(ball, OwlBall):
            return _dot(list(decimals(ball.weights)), _sorted(w))
        if isinstance(ball, KSupportBall):
            return _k_support(_sorted(w), ball.k)
        assert isinstance(ball, SchattenBall)
        return lp(np.ravel(w), 2.0) if ball.p == 2.0 else lp(singular_values(w), ball.p)


def _sorted(w: Array) -> list[Decimal]:
    return sorted((abs(e) for e in np.ravel(w)), reverse=True)


def _k_support(z: list[Decimal], k: int) -> Decimal:
    """By the one l for which the mean of the tail lies between two entries."""
    k = min(k, len(z))
    for l in range(k):  # noqa: E741 - the letter of the formula
        tail = sum(z[k - l - 1 :], Decimal(0))
        if (l == k - 1 or z[k - l - 2] * (l + 1) > tail) and tail >= z[k - l - 1] * (l + 1):
            return (_dot(z[: k - l - 1], z[: k - l - 1]) + tail * tail / (l + 1)).sqrt()
    raise AssertionError("there is always one")


def _doubly_stochastic(w: Array) -> Array:
    """Shift rows and columns to their sums, then mix with the centre until no entry is negative."""
    n = len(w)
    w = w + (ONE - w.sum(axis=1))[:, None] / n
    w = w + (ONE - w.sum(axis=0))[None, :] / n
    below = -min(np.min(w), Decimal(0)) * n
    share = below / (ONE + below)
    return w * (ONE - share) + share / n


def lp(x: Any, p: float) -> Decimal:
    sizes = [abs(e) for e in x]
    top = max(sizes)
    if np.isinf(p) or not top:
        return top
    if p == 1.0:
        return sum(sizes, Decimal(0))
    if p == 2.0:
        return sum((e * e for e in sizes), Decimal(0)).sqrt()
    exponent = Decimal(p)
    return top * power(sum((power(e / top, exponent) for e in sizes), Decimal(0)), ONE / exponent)


def singular_values(w: Array) -> list[Decimal]:
    """By one-sided Jacobi rotations: columns are turned against each other until all are orthogonal."""
    columns = [list(c) for c in (w.T if w.shape[0] >= w.shape[1] else w)]
    for _ in range(SWEEPS):
        turned = False
        for i in range(len(columns)):
            for j in range(i + 1, len(columns)):
                turned |= _turn(columns, i, j)
        if not turned:
            break
    return [_dot(c, c).sqrt() for c in columns]


def _turn(columns: list[list[Decimal]], i: int, j: int) -> bool:
    x, y = columns[i], columns[j]
    a, b, c = _dot(x, x), _dot(y, y), _dot(x, y)
    if abs(c) <= Decimal("1e-76") * (a * b).sqrt():
        return False
    zeta = (b - a) / (2 * c)
    t = (ONE if zeta >= 0 else -ONE) / (abs(zeta) + (ONE + zeta * zeta).sqrt())
    cos = ONE / (ONE + t * t).sqrt()
    sin = cos * t
    columns[i] = [cos * p - sin * q for p, q in zip(x, y, strict=True)]
    columns[j] = [sin * p + cos * q for p, q in zip(x, y, strict=True)]
    return True


def _dot(x: list[Decimal], y: list[Decimal]) -> Decimal:
    return sum((p * q for p, q in zip(x, y, strict=True)), Decimal(0))
