"""Quadratics on the corner {m >= 0, sum m <= 1}: the exact step of line searches and corrections."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array


def minimise_on_corner(g: Array, H: Array) -> Array:
    r"""Minimise :math:`g^T m + m^T H m / 2` over :math:`m \ge 0, \sum m \le 1` for one or two coordinates.

    The minimum of a convex quadratic lies on one of the faces (the inside, three edges, three corners), where it
    has a closed form; the lowest of these candidates is returned, so that the answer is feasible whatever H is.
    """
    if len(g) == 1:
        return np.array([_on_segment(float(g[0]), float(H[0, 0]))])
    g0, g1 = float(g[0]), float(g[1])
    a, b, c = float(H[0, 0]), float(H[0, 1]), float(H[1, 1])
    candidates = [(_on_segment(g0, a), 0.0), (0.0, _on_segment(g1, c))]
    # The edge m0 + m1 = 1, from (1, 0) towards (0, 1).
    s = _on_segment(g1 - g0 + b - a, a - 2.0 * b + c)
    candidates.append((1.0 - s, s))
    det = a * c - b * b
    if det > 0.0:
        m0, m1 = (b * g1 - c * g0) / det, (b * g0 - a * g1) / det
        if m0 >= 0.0 and m1 >= 0.0 and m0 + m1 <= 1.0:
            candidates.append((m0, m1))
    return np.array(min(candidates, key=lambda m: _quadratic(m, (g0, g1), (a, b, c))))


def _on_segment(slope: float, curvature: float) -> float:
    if slope >= 0.0:
        return 0.0 if curvature >= 0.0 or slope + curvature / 2.0 >= 0.0 else 1.0
    return min(1.0, -slope / curvature) if curvature > 0.0 else 1.0


def _quadratic(m: tuple[float, float], g: tuple[float, float], h: tuple[float, float, float]) -> float:
    linear = g[0] * m[0] + g[1] * m[1]
    return linear + 0.5 * (h[0] * m[0] * m[0] + 2.0 * h[1] * m[0] * m[1] + h[2] * m[1] * m[1])
