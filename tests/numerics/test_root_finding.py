"""The root finder for increasing functions: the right root, within its interval, in few looks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from projfree.numerics.projections import decreasing_roots
from projfree.numerics.root_finding import NoRootError, find_root, find_roots

# name: (function, slope), all increasing with the root 0
SHAPES = {
    "line": (lambda x: 3.0 * x, lambda x: 3.0),
    "cubic": (lambda x: x**3, lambda x: 3.0 * x * x),
    "arctan": (math.atan, lambda x: 1.0 / (1.0 + x * x)),
    "exponential": (lambda x: math.expm1(min(x, 700.0)), lambda x: math.exp(min(x, 700.0))),
    "flat then steep": (lambda x: x + 1e6 * max(x - 1e-3, 0.0), lambda x: 1.0 + (1e6 if x > 1e-3 else 0.0)),
    "steps": (lambda x: math.copysign(min(abs(x), 1.0), x), lambda x: 1.0 if abs(x) < 1.0 else 0.0),
    "no slope": (lambda x: x, lambda x: 0.0),
}

every_shape = pytest.mark.parametrize("name", SHAPES)
places = st.floats(-50.0, 50.0).map(lambda x: round(x, 6))


def is_root(name: str, found: float, root: float) -> bool:
    """Within rounding of it, or where the function itself is below rounding: a cubic is flat around its root."""
    return abs(found - root) <= 1e-13 * max(1.0, abs(root)) or abs(SHAPES[name][0](found - root)) <= 1e-25


class Counted:
    """The shape moved to ``root``, which counts how often it is asked."""

    def __init__(self, name: str, root: float, noise: float = 0.0) -> None:
        self.value, self.slope = SHAPES[name]
        self.root, self.noise, self.calls, self.asked = root, noise, 0, []

    def __call__(self, x: float) -> tuple[float, float, float]:
        self.calls += 1
        self.asked.append(x)
        return self.value(x - self.root), self.slope(x - self.root), self.noise


@every_shape
@example(root=0.0, low=2.0, width=1e-15, start=3.0)  # a bracket of neighbouring numbers
@given(root=places, low=places, width=st.floats(0.0, 100.0), start=places)
def test_bracketed(name, root, low, width, start):
    high, fun = low + width, Counted(name, root)
    found = find_root(fun, start, low, high)
    nearest = min(max(root, low), high)
    assert is_root(name, found, root) if low <= root <= high else found == nearest
    assert fun.calls <= 100
    assert all(low <= x <= high for x in fun.asked)


@every_shape
@example(root=0.0, start=15.0)  # Newton's steps shrink for hundreds of looks
@given(root=places, start=places)
def test_on_the_whole_line(name, root, start):
    fun = Counted(name, root)
    assert is_root(name, find_root(fun, start), root)


@pytest.mark.parametrize("root", [1e12, -1e12, 1e-12])
def test_far_and_near_roots(root):
    assert find_root(Counted("arctan", root), 0.0) == pytest.approx(root, rel=1e-14)


@given(root=places, noise=st.floats(1e-9, 1.0))
def test_a_value_within_its_noise_is_a_root(root, noise):
    fun = Counted("line", root, noise)
    assert abs(3.0 * (find_root(fun, 0.0) - root)) <= noise


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_root(sign):
    def fun(x: float) -> tuple[float, float, float]:
        return sign * (1.0 + math.exp(-abs(x))), 0.0, 0.0

    with pytest.raises(NoRootError):
        find_root(fun, 0.0)
    assert find_root(fun, 0.0, -1.0, 2.0) == (-1.0 if sign > 0 else 2.0)


@pytest.mark.parametrize("root", [3e19, -2e36, 5e120, -1e250])
def test_roots_far_beyond_what_doubling_reaches(root):
    """As the intercept of predictions of that size has."""

    def fun(x: float) -> tuple[float, float, float]:
        return math.copysign(min(abs(x - root), 1.0), x - root), float(abs(x - root) < 1.0), 1e-16

    assert find_root(fun, 0.0) == pytest.approx(root, rel=1e-12)


def test_several_roots_at_once():
    """The same places as one after the other, in as many looks as the longest search takes."""
    roots, starts = [0.3, -40.0, 1e6, 0.0], [0.0, 0.0, 0.0, 0.0]
    funs = [Counted("arctan", root) for root in roots]
    looks = []

    def look(places):
        looks.append(list(places))
        return [fun(x) for fun, x in zip(funs, places, strict=True)]

    found = find_roots(look, starts)
    alone = [Counted("arctan", root) for root in roots]
    assert found == [find_root(fun, start) for fun, start in zip(alone, starts, strict=True)]
    assert len(looks) == max(fun.calls for fun in alone)


def test_roots_of_many_functions_at_once():
    """Straight, steep, flat and kinked ones, with a root at an end, beyond it, and none."""

    def fun(x):
        return np.array(
            [1 - x[0], 1e-9 - x[1], 0.5 - x[2] ** 40, np.exp(-60 * x[3]) - 1e-20, np.sign(0.3 - x[4]), -x[5], 3 - x[6]]
        )

    found = decreasing_roots(fun, np.zeros(7), np.full(7, 2.0))
    roots = np.array([1, 1e-9, 0.5 ** (1 / 40), np.log(1e20) / 60, 0.3, 0, 2])
    np.testing.assert_allclose(found, roots, rtol=1e-14)
