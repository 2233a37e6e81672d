"""Checks of constraint sets and Hypothesis strategies for their arguments, for authors of new sets.

A check is a function that raises `AssertionError` if a set violates a property. `ORACLE_LAWS` take ``(C, g)`` with a
gradient of any scale; `GEOMETRY_LAWS` take ``(C, g, h)`` with two gradients of moderate scale, and `PROJECTION_LAWS`
take a point::

    @given(cases(MySet(1.0), MySet(3.0)))
    def test_oracle(case):
        for law in ORACLE_LAWS:
            law(*case)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from projfree.algebra import size
from projfree.checks import Array
from projfree.sets import ConstraintSet, NormBall
from projfree.sets.base import random_point

#: Relative tolerance of the checks, and absolute tolerances for underflow in a sum and in a product of small numbers.
RTOL, UNDERFLOW, SMALL = 1e-12, 1e-320, 1e-300
#: Shapes on which the checks run, if the set supports them.
SHAPES = ((1,), (2,), (3,), (7,), (1, 1), (1, 3), (4, 1), (4, 3), (2, 5), (6, 3), (3, 3), (5, 5))
#: Scales of gradients, from subnormal numbers to the upper end of the range.
SCALES = (1e-310, 1e-300, 1e-155, 1e-10, 1.0, 1e10, 1e155, 1e300)


def supported_shapes(C: ConstraintSet) -> list[tuple[int, ...]]:
    """Return the shapes in `SHAPES` that the set supports."""
    shapes: list[tuple[int, ...]] = []
    for shape in SHAPES:
        with suppress(ValueError):
            C.check_shape(shape)
            shapes.append(shape)
    return shapes


@st.composite
def gradients(draw: Any, shape: tuple[int, ...], extreme: bool = True) -> Array:
    """Draw a dense, tied, sparse, graded, rank-one or zero array; ``extreme`` scales it to the limits of the range."""
    kind = draw(st.sampled_from(("plain", "tied", "sparse", "graded", "rank one", "zero")))
    g = draw(arrays(np.float64, shape, elements=st.floats(-1.0, 1.0, allow_subnormal=False), fill=st.nothing()))
    if draw(st.booleans()):  # Hypothesis prefers round numbers, which are rare in gradients
        g = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).standard_normal(shape)
    if kind == "tied":
        g = np.sign(g)
    elif kind == "sparse":
        g = np.where(np.abs(g) > 0.5, g, 0.0)
    elif kind == "graded":
        g = g * np.logspace(0, -20, g.size).reshape(shape)
    elif kind == "rank one" and len(shape) == 2:
        g = np.outer(g[:, 0], g[0])
    elif kind == "zero":
        g = np.zeros(shape)
    return np.asarray(g * draw(st.sampled_from(SCALES))) if extreme else g


@st.composite
def cases(draw: Any, *given: ConstraintSet, count: int = 1, extreme: bool = True) -> tuple[Any, ...]:
    """Draw one of the given sets and ``count`` arrays of a shape that it supports."""
    C = draw(st.sampled_from(given))
    shape = draw(st.sampled_from(supported_shapes(C)))
    return (C, *(draw(gradients(shape, extreme)) for _ in range(count)))


def inner(g: Array, w: Array) -> float:
    """Return <g, w> without overflow of its terms."""
    top = float(np.max(np.abs(g))) or 1.0
    return top * float(np.vdot(g / top, np.asarray(w, dtype=np.float64)))


def membership(C: ConstraintSet, w: Array) -> bool:
    """Return `contains`, or True if the set does not implement it."""
    try:
        return C.contains(w)
    except NotImplementedError:
        assert not isinstance(C, NormBall)
        return True


def lmo_is_the_minimiser(C: ConstraintSet, g: Array) -> None:
    """Check that the vertex lies in the set, and that no random point and no other vertex has a lower inner product."""
    v, rng = C.lmo(g), np.random.default_rng(0)
    others = [C.centre(g.shape), *(random_point(C, g.shape, rng) for _ in range(4))]
    others += [C.lmo(rng.standard_normal(g.shape)) for _ in range(4)]
    assert all(membership(C, w) for w in (v, *others))
    slack = RTOL / 10 * size(g) * C.reach(g.shape) + UNDERFLOW / 100
    assert inner(g, v) <= min(inner(g, w) for w in others) + slack


def support_is_attained(C: ConstraintSet, g: Array) -> None:
    """Check <g, lmo(g)> = -support(-g) = -r dual_norm(g) and |lmo(g)| = r, and that `oracle` gives the same."""
    (v, support, *_), exact = C.oracle(g), C.support(-g)
    support = exact if math.isnan(support) else support
    np.testing.assert_array_equal(v, C.lmo(g))
    scale = exact if isinstance(C, NormBall) else size(g) * C.reach(g.shape)
    error = 2.0 * C.support_error(-g, support) + UNDERFLOW
    assert abs(inner(g, v) + support) <= RTOL * scale + UNDERFLOW
    assert abs(support - exact) <= error + RTOL / 1000 * scale
    if isinstance(C, NormBall):
        assert abs(support - C.radius * C.dual_norm(g)) <= error
        assert not g.any() or abs(C.norm(v) - C.radius) <= RTOL * C.radius


def zero_gives_the_centre(C: ConstraintSet, g: Array) -> None:
    """Check that the oracle of a zero gradient is the centre, and that repeated calls give identical results."""
    np.testing.assert_array_equal(C.lmo(np.zeros_like(g)), C.centre(g.shape))
    np.testing.assert_array_equal(C.lmo(g), C.lmo(g.copy()))


def form_does_not_matter(C: ConstraintSet, g: Array) -> None:
    """Check read-only, Fortran-ordered, strided and integer input, and that the dtype float32 is preserved."""
    for form in (np.repeat(g, 2, axis=-1)[..., ::2], np.asfortranarray(g)):
        form.flags.writeable = False
        np.testing.assert_array_equal(C.lmo(form), C.lmo(g))
        assert C.support(form) == C.support(g)
    assert C.lmo(np.sign(g).astype(int)).dtype == np.float64
    v = C.lmo(to_single(g))
    assert v.dtype == np.float32
    assert v.shape == g.shape
    assert membership(C, v)


def to_single(g: Array) -> Array:
    """Convert to float32, clipped to half of its largest number."""
    most = 0.5 * float(np.finfo(np.float32).max)
    return np.clip(g, -most, most).astype(np.float32)


def scale_does_not_matter(C: ConstraintSet, g: Array) -> None:
    """Check that a power of two times the gradient has the same oracle, and the support multiplied by it."""
    top = float(np.max(np.abs(g)))
    factor = 2.0 ** (-math.frexp(top)[1] // 2)
    if top > SMALL / RTOL**4:  # otherwise underflow loses digits
        slack = RTOL / 10 * C.reach(g.shape)
        np.testing.assert_allclose(C.lmo(g * factor), C.lmo(g), rtol=RTOL, atol=slack)
        assert abs(C.support(g * factor) - factor * C.support(g)) <= slack * size(g * factor)


def reach_and_diameter_are_upper_bounds(C: ConstraintSet, g: Array, h: Array) -> None:
    """Check that no norm exceeds `reach` and no distance exceeds `diameter`."""
    points = [C.lmo(g), C.lmo(-g), C.lmo(h), C.centre(g.shape), random_point(C, g.shape, np.random.default_rng(0))]
    assert max(map(size, points)) <= C.reach(g.shape) * (1.0 + RTOL)
    assert max(size(u - v) for u in points for v in points) <= C.diameter(g.shape) * (1.0 + RTOL) + SMALL


def contains_tells_inside_from_outside(C: ConstraintSet, g: Array, h: Array) -> None:
    """Check that convex combinations are inside, and that points beyond a vertex in its normal direction are not."""
    u, v, w = C.lmo(g), C.lmo(h), C.centre(g.shape)
    assert membership(C, 0.5 * (0.5 * u + 0.5 * v) + 0.5 * w)
    with suppress(NotImplementedError):
        assert not g.any() or not C.contains(u - math.sqrt(RTOL) * C.reach(g.shape) * g / size(g))
        assert not C.contains(np.full(g.shape, np.nan))


def norms_are_dual(C: ConstraintSet, g: Array, h: Array) -> None:
    """Check <g, h> <= dual_norm(g) norm(h), the triangle inequality and homogeneity."""
    if isinstance(C, NormBall):
        assert inner(g, h) <= C.dual_norm(g) * C.norm(h) * (1.0 + RTOL)
        for norm in (C.norm, C.dual_norm):
            assert norm(g + h) <= (norm(g) + norm(h)) * (1.0 + RTOL) + SMALL
            assert (norm(g) > 0.0) == bool(g.any())
            for factor in SCALES[2:7:4]:
                assert abs(norm(factor * g) - factor * norm(g)) <= RTOL * factor * norm(g) + RTOL * SMALL


def vertices_move_slowly(C: ConstraintSet, g: Array, h: Array) -> None:
    """Check |lmo(g) - lmo(h)| <= 2 |g - h| / (alpha (|g| + |h|)) with the modulus alpha of strong convexity."""
    alpha = C.strong_convexity(g.shape)
    if alpha > 0.0 and g.any() and h.any():
        bound = 2.0 * size(g - h) / (alpha * (size(g) + size(h)))
        assert size(C.lmo(g) - C.lmo(h)) <= bound * (1.0 + 1000 * RTOL) + 1000 * RTOL * C.reach(g.shape)


def projection_is_the_nearest_point(C: ConstraintSet, w: Array) -> None:
    """Check that P is in the set, <w - P, v - P> <= 0 for all v in the set, and that points inside do not move."""
    before, p, reach = w.copy(), C.project(w), C.reach(w.shape)
    np.testing.assert_array_equal(w, before)
    assert C.contains(p)
    assert C.support(w - p) - inner(w - p, p) <= RTOL * (size(w) + reach) * reach + SMALL
    np.testing.assert_allclose(C.project(p), p, rtol=0.0, atol=RTOL / 10 * reach)
    np.testing.assert_array_equal(C.project(np.asfortranarray(w)), p)
    single = C.project(to_single(w))
    assert single.dtype == np.float32
    assert C.contains(single)


def structure_describes_the_set(C: ConstraintSet, g: Array, h: Array) -> None:
    """Check that the norms in `structure` bound the points of the set, and that it states whether it projects."""
    structure = C.structure(g.shape)
    for w in (C.lmo(g), C.lmo(h), C.centre(g.shape)):
        rest = np.delete(w, structure.free, axis=0)
        if structure.lp is not None:
            assert structure.lp.contains(rest if structure.weights is None else rest * structure.weights, 10 * RTOL)
        if structure.group_l1 is not None:
            assert structure.group_l1.norm(rest) <= structure.group_l1.radius * (1.0 + RTOL)
        if structure.absolute and isinstance(C, NormBall):
            assert abs(C.norm(np.abs(w)) - C.norm(w)) <= RTOL * C.radius
    projects = False
    with suppress(NotImplementedError):
        projects = C.project(g) is not None
    assert projects == (structure.projection != "none")


Law = Callable[..., None]
#: Checks of one gradient of any scale.
ORACLE_LAWS: tuple[Law, ...] = (
    lmo_is_the_minimiser,
    support_is_attained,
    zero_gives_the_centre,
    form_does_not_matter,
    scale_does_not_matter,
)
#: Checks of two gradients of moderate scale.
GEOMETRY_LAWS: tuple[Law, ...] = (
    reach_and_diameter_are_upper_bounds,
    contains_tells_inside_from_outside,
    norms_are_dual,
    vertices_move_slowly,
    structure_describes_the_set,
)
#: Checks of one point of any scale, for sets that have a projection.
PROJECTION_LAWS: tuple[Law, ...] = (projection_is_the_nearest_point,)
