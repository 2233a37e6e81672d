"""Stacks of minorants: what they say is what `Minorant` says of each, errors included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projfree.algebra import Minorant, MinorantStack
from projfree.sets import Box, GroupBall, LpBall, SchattenBall

FIELDS = ("constant_error", "gradient_error", "curvature_error")


def minorant(rng, shape=(3,), scale=1.0):
    # Errors far above rounding, so that a term that is left out shows.
    errors = scale * rng.uniform(1e-16, 1e-15, size=3)
    return Minorant(float(scale * rng.normal()), scale * rng.normal(size=shape), *errors.tolist())


def assert_same(one: Minorant, other: Minorant) -> None:
    assert one.constant == other.constant
    np.testing.assert_array_equal(one.gradient, other.gradient)
    for name in FIELDS:  # they are sums of a few terms of one sign, added up in another order
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-14), name


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(3,), (2, 3), (40,)]), st.sampled_from([1.0, 1e-145, 1e160]))
def test_averages_are_those_of_minorants(seed, shape, scale):
    rng = np.random.default_rng(seed)
    members, m = [minorant(rng, shape, scale) for _ in range(4)], minorant(rng, shape, scale)
    old = rng.uniform(0.01, 0.99, size=4)
    averaged = MinorantStack.of(members).averaged(old, 1.0 - old, m)
    assert len(averaged) == 4
    for k, member in enumerate(members):
        assert_same(averaged[k], float(old[k]) * member + float(1.0 - old[k]) * m)


@pytest.mark.parametrize("name", FIELDS)
def test_every_error_is_carried_along(name):
    """One at a time, so that none is hidden by the others."""
    m, zero = Minorant(0.0, np.zeros(2), **{name: 1.0}), Minorant(0.0, np.zeros(2))
    old = np.array([0.25, 0.75])
    for first, second, expected in ((m, zero, old), (zero, m, 1.0 - old)):
        averaged = MinorantStack.of([first, first]).averaged(old, 1.0 - old, second)
        np.testing.assert_allclose(getattr(averaged, name), expected)


def test_the_first_tangent_replaces_what_was_there_before():
    m, none = minorant(np.random.default_rng(0)), Minorant(-math.inf, np.zeros(3))
    averaged = MinorantStack.of([none, none]).averaged(np.zeros(2), np.ones(2), m)
    assert_same(averaged[1], 0.0 * none + 1.0 * m)


def test_an_estimate_leaves_no_bound():
    rng = np.random.default_rng(0)
    m, half = minorant(rng), np.full(2, 0.5)
    for first, second in ((m, Minorant(-math.inf, m.gradient)), (Minorant(-math.inf, m.gradient), m)):
        averaged = MinorantStack.of([first, first]).averaged(half, half, second)
        assert averaged.minima(LpBall(2, 1.0))[0] == [-math.inf, -math.inf]


class Shrunk(LpBall):
    """A set of its own, whose support is not that of the ball that it is derived from."""

    def support(self, g):
        return 2.0 * super().support(g)


@pytest.mark.parametrize(
    "ball",
    [*LpBall.examples(), Shrunk(2, 1.5), Box(-1.0, 2.0), GroupBall(2.0, 1.0, 1.5), SchattenBall(1, 2.0)],
    ids=repr,
)
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e160])
def test_minima_are_those_of_minorants(ball, scale):
    rng = np.random.default_rng(1)
    members = [minorant(rng, (7, 5), size) for size in (scale, 1.0, scale)]
    members[2] = Minorant(1.0, np.zeros((7, 5)), 1e-15)
    bounds, allowances = MinorantStack.of(members).minima(ball)
    for member, bound, allowance in zip(members, bounds, allowances, strict=True):
        assert (bound, allowance) == member.minimum(ball)
