"""Laws of constraint sets and Hypothesis strategies for them, for those who add one.

A law is a function that raises `AssertionError` where a set breaks it. `ORACLE_LAWS` take ``(C, g)`` with a gradient of
any scale; `GEOMETRY_LAWS` take ``(C, g, h)`` with two gradients of moderate scale, `PROJECTION_LAWS` two points::

    @given(cases(MySet))
    def test_oracle(case):
        for law in ORACLE_LAWS:
            law(*case)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from projfree.checks import Array
from projfree.sets import ConstraintSet, GroupBall, LpBall, NormBall, SchattenBall
from projfree.testing import set_geometry as geometry
from projfree.testing.set_geometry import inner, membership, size

#: Shapes that the laws run on, as far as a set takes them.
SHAPES = ((1,), (2,), (3,), (7,), (1, 1), (1, 3), (4, 1), (4, 3), (2, 5), (6, 3), (3, 3), (5, 5))
_SCALES = (1e-310, 1e-300, 1e-155, 1e-10, 1.0, 1e10, 1e155, 1e300)
_EXPONENTS = st.sampled_from((1.0, 1.001, 1.01, 1.5, 2.0, 2.5, 30.0, 500.0, math.inf)) | st.floats(1.0, 12.0)
_RADII = st.sampled_from((1e-3, 1.0, 40.0))
_LABELS = st.sampled_from((None, None, (0, 0, 1), (2, 0, 1, 0), (1, 1, 1, 1), (0, 5, 5, 0, 0, 3, 5)))
_BUILDERS: dict[type[ConstraintSet], st.SearchStrategy[Any]] = {
    LpBall: st.builds(LpBall, _EXPONENTS, _RADII),
    GroupBall: st.builds(GroupBall, _EXPONENTS, _EXPONENTS, _RADII, _LABELS),
    SchattenBall: st.builds(SchattenBall, _EXPONENTS, _RADII),
}


def fitting(C: ConstraintSet) -> list[tuple[int, ...]]:
    """Those of `SHAPES` that the set takes."""

    def fits(shape: tuple[int, ...]) -> bool:
        try:
            C.check_shape(shape)
        except ValueError:
            return False
        return True

    return [shape for shape in SHAPES if fits(shape)]


def instances(cls: type[ConstraintSet]) -> st.SearchStrategy[ConstraintSet]:
    """The examples of a class, and for the balls of the package any exponents and radii."""
    examples = st.sampled_from(cls.examples())
    return examples | _BUILDERS[cls] if cls in _BUILDERS else examples


@st.composite
def gradients(draw: Any, shape: tuple[int, ...], extreme: bool = True) -> Array:
    """Plain, tied, sparse, graded and rank-one arrays, of scales up to the ends of the range where `extreme`."""
    kind = draw(st.sampled_from(("plain", "tied", "sparse", "graded", "rank one", "zero")))
    g = draw(arrays(np.float64, shape, elements=st.floats(-1.0, 1.0, allow_subnormal=False), fill=st.nothing()))
    if draw(st.booleans()):  # Hypothesis likes round numbers; most gradients are not
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
    return np.asarray(g * draw(st.sampled_from(_SCALES))) if extreme else g


@st.composite
def cases(draw: Any, cls: type[ConstraintSet], count: int = 1, extreme: bool = True) -> tuple[Any, ...]:
    """A set of the class and ``count`` arrays of one shape that fits it."""
    C = draw(instances(cls))
    shape = draw(st.sampled_from(fitting(C)))
    return (C, *(draw(gradients(shape, extreme)) for _ in range(count)))


def lmo_is_the_minimiser(C: ConstraintSet, g: Array) -> None:
    """The vertex lies in the set, and no random point of it and no other vertex is better."""
    v, rng = C.lmo(g), np.random.default_rng(0)
    assert membership(C, v)
    others = [C.random(g.shape, rng) for _ in range(4)] + [C.lmo(rng.standard_normal(g.shape)) for _ in range(4)]
    others += [C.centre(g.shape)]
    slack = 1e-13 * size(g) * C.reach(g.shape) + 1e-322
    for w in others:
        assert membership(C, w)
        assert inner(g, v) <= inner(g, w) + slack


def support_is_attained(C: ConstraintSet, g: Array) -> None:
    """<g, lmo(g)> = -support(-g) to 1e-12, relative to the value for balls, and `oracle` gives the same, if any."""
    v, support, *_ = C.oracle(g)
    support = C.support(-g) if math.isnan(support) else support
    np.testing.assert_array_equal(v, C.lmo(g))
    scale = C.support(-g) if isinstance(C, NormBall) else size(g) * C.reach(g.shape)
    assert abs(inner(g, v) + support) <= 1e-12 * scale + 1e-320
    assert abs(support - C.support(-g)) <= (1e-15 + 2.0 * C.support_rtol(g.shape)) * scale + 1e-320
    if isinstance(C, NormBall):
        assert abs(support - C.radius * C.dual_norm(g)) <= 2.0 * C.support_rtol(g.shape) * scale + 1e-320
        assert not g.any() or abs(C.norm(v) - C.radius) <= 1e-12 * C.radius


def zero_gives_the_centre(C: ConstraintSet, g: Array) -> None:
    """The oracle of a zero gradient is the centre, and calls repeat themselves."""
    np.testing.assert_array_equal(C.lmo(np.zeros_like(g)), C.centre(g.shape))
    np.testing.assert_array_equal(C.lmo(g), C.lmo(g.copy()))


def form_does_not_matter(C: ConstraintSet, g: Array) -> None:
    """Read-only, Fortran-ordered and strided input give the same digits; whole numbers work; float32 stays float32."""
    sliced = np.repeat(g, 2, axis=-1)[..., ::2]
    turned = np.asfortranarray(g)
    for form in (sliced, turned):
        form.flags.writeable = False
        np.testing.assert_array_equal(C.lmo(form), C.lmo(g))
        assert C.support(form) == C.support(g)
    assert C.lmo(np.sign(g).astype(int)).dtype == np.float64
    single = np.clip(g, -1e38, 1e38).astype(np.float32)
    v = C.lmo(single)
    assert v.dtype == np.float32
    assert v.shape == g.shape
    assert membership(C, v)


def scale_does_not_matter(C: ConstraintSet, g: Array) -> None:
    """A power of two times the gradient has the same oracle, and a support that many times as large."""
    top = float(np.max(np.abs(g)))
    factor = 2.0 ** (-math.frexp(top)[1] // 2)
    if top > 1e-250:  # else digits are lost before the set sees them
        np.testing.assert_allclose(C.lmo(g * factor), C.lmo(g), rtol=1e-12, atol=1e-13 * C.reach(g.shape))
        slack = 1e-13 * size(g * factor) * C.reach(g.shape)
        assert abs(C.support(g * factor) - factor * C.support(g)) <= slack


Law = Callable[..., None]
#: Laws of one gradient of any scale.
ORACLE_LAWS: tuple[Law, ...] = (
    lmo_is_the_minimiser,
    support_is_attained,
    zero_gives_the_centre,
    form_does_not_matter,
    scale_does_not_matter,
)
#: Laws of two gradients of moderate scale.
GEOMETRY_LAWS: tuple[Law, ...] = (
    geometry.reach_and_diameter_are_upper_bounds,
    geometry.contains_tells_inside_from_outside,
    geometry.norms_are_dual,
    geometry.euclidean_modulus_holds,
    geometry.vertices_move_slowly,
)
#: Laws of two points, for sets that have a projection; the first holds at every scale.
PROJECTION_LAWS: tuple[Law, ...] = (
    geometry.projection_is_the_nearest_point,
    geometry.projection_does_not_expand,
)
