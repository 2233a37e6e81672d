"""Laws of the geometry of constraint sets; see `projfree.testing.sets`, which collects them."""

from __future__ import annotations

import numpy as np

from projfree.checks import Array
from projfree.sets import ConstraintSet, NormBall


def inner(g: Array, w: Array) -> float:
    """<g, w> without overflow of its terms."""
    top = float(np.max(np.abs(g))) or 1.0
    return top * float(np.vdot(g / top, np.asarray(w, dtype=np.float64)))


def size(g: Array) -> float:
    """The Euclidean norm without overflow of the squares."""
    top = float(np.max(np.abs(g))) or 1.0
    return top * float(np.linalg.norm(g / top))


def membership(C: ConstraintSet, w: Array) -> bool:
    """`contains`, True for sets that cannot tell."""
    try:
        return C.contains(w)
    except NotImplementedError:
        return True


def reach_and_diameter_are_upper_bounds(C: ConstraintSet, g: Array, h: Array) -> None:
    """No point is longer than the reach, no two are further apart than the diameter."""
    rng = np.random.default_rng(0)
    points = [C.lmo(g), C.lmo(-g), C.lmo(h), C.centre(g.shape), C.random(g.shape, rng)]
    assert max(map(size, points)) <= C.reach(g.shape) * (1.0 + 1e-12)
    assert max(size(u - v) for u in points for v in points) <= C.diameter(g.shape) * (1.0 + 1e-12) + 1e-300


def contains_tells_inside_from_outside(C: ConstraintSet, g: Array, h: Array) -> None:
    """Mixtures of points are inside; what lies beyond a vertex, in the direction that it is extreme for, is not."""
    u, v, w = C.lmo(g), C.lmo(h), C.centre(g.shape)
    assert membership(C, 0.3 * u + 0.3 * v + 0.4 * w)
    try:
        beyond = [C.contains(u - 1e-6 * C.reach(g.shape) * g / size(g))] if g.any() else []
        assert not any(beyond)
        assert not C.contains(np.full(g.shape, np.nan))
    except NotImplementedError:
        assert not isinstance(C, NormBall)


def norms_are_dual(C: ConstraintSet, g: Array, h: Array) -> None:
    """<g, h> <= dual_norm(g) norm(h), the triangle inequality and homogeneity."""
    if not isinstance(C, NormBall):
        return
    assert inner(g, h) <= C.dual_norm(g) * C.norm(h) * (1.0 + 1e-12)
    for norm in (C.norm, C.dual_norm):
        assert norm(g + h) <= (norm(g) + norm(h)) * (1.0 + 1e-12) + 1e-300
        for factor in (1e-200, 1e200):
            assert abs(norm(factor * g) - factor * norm(g)) <= 1e-12 * factor * norm(g) + 1e-305
        assert (norm(g) > 0.0) == bool(g.any())


def euclidean_modulus_holds(C: ConstraintSet, g: Array, h: Array) -> None:
    """The Euclidean ball of radius (alpha/2) c (1-c) |x - y|^2 about (1-c) x + c y lies in the set."""
    alpha, x, y = C.strong_convexity(g.shape), C.lmo(g), C.lmo(h)
    if alpha == 0.0 or not (g.any() and h.any()):
        return
    rng = np.random.default_rng(0)
    for c in (0.01, 0.3, 0.5):
        middle, margin = (1.0 - c) * x + c * y, 0.5 * alpha * c * (1.0 - c) * size(x - y) ** 2
        for z in (rng.standard_normal(g.shape), -g, -h, middle, -C.lmo(-middle), x + y):
            if z.any():
                assert membership(C, middle + (margin / size(z)) * z)


def vertices_move_slowly(C: ConstraintSet, g: Array, h: Array) -> None:
    r"""|lmo(g) - lmo(h)| <= 2 |g - h| / (alpha (|g| + |h|)), alpha the Euclidean modulus."""
    alpha = C.strong_convexity(g.shape)
    if alpha > 0.0 and g.any() and h.any():
        bound = 2.0 * size(g - h) / (alpha * (size(g) + size(h)))
        assert size(C.lmo(g) - C.lmo(h)) <= bound * (1.0 + 1e-9) + 1e-9 * C.reach(g.shape)


def projection_is_the_nearest_point(C: ConstraintSet, w: Array) -> None:
    """P lies in the set, <w - P, v - P> <= 0 for the worst v, points inside stay, and P is in the form of w."""
    before = w.copy()
    p = C.project(w)
    np.testing.assert_array_equal(w, before)
    assert C.contains(p)
    step = w - p
    excess = C.support(step) - inner(step, p)
    assert excess <= 1e-12 * (size(w) + C.reach(w.shape)) * C.reach(w.shape) + 1e-300
    np.testing.assert_allclose(C.project(p), p, rtol=0.0, atol=1e-13 * C.reach(w.shape))
    np.testing.assert_array_equal(C.project(np.asfortranarray(w)), p)
    single = np.clip(w, -1e38, 1e38).astype(np.float32)
    q = C.project(single)
    assert q.dtype == np.float32
    assert C.contains(q)


def projection_does_not_expand(C: ConstraintSet, w: Array, x: Array) -> None:
    """|P(w) - P(x)| <= |w - x|, and points of the set are their own projections."""
    slack = 1e-13 * (size(w) + size(x) + C.reach(w.shape))
    assert size(C.project(w) - C.project(x)) <= size(w - x) + slack
    inside = 0.5 * C.lmo(w) + 0.5 * C.centre(w.shape)
    np.testing.assert_allclose(C.project(inside), inside, rtol=0.0, atol=slack)
