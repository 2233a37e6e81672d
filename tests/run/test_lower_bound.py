"""Averages of tangents: its bound never falls, never exceeds the optimum, and every bound has a witness."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from projfree import LpBall, QuadraticForm
from projfree.algebra import Minorant
from projfree.run.lower_bound import ELLS, LowerBound
from projfree.sets.base import random_point

BALL = LpBall(2, 1.0)
F = QuadraticForm(np.diag([2.0, 1.0, 0.5]), np.array([1.0, -2.0, 0.3]), c=-7.0)


def tangents(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        z = random_point(BALL, (3,), rng)
        yield F.evaluate(F.point(z)).slope, z


def optimum():
    """By projected gradient, written out; a point of the ball, so an upper bound on the minimum."""
    w = np.zeros(3)
    for _ in range(500):
        w = BALL.project(w - (F.H @ w - F.b) / 2.0)
    return F(F.point(w))


def test_nothing_is_claimed_before_the_first_tangent():
    lower = LowerBound(BALL, (3,))
    assert lower.bound == -math.inf
    lower.offer_averages()
    assert lower.bound == -math.inf, "zero is no lower bound on a negative function"
    assert lower.witness is None


def test_bounds_rise_and_stay_below_the_optimum():
    lower, best, bounds = LowerBound(BALL, (3,)), optimum(), []
    for m, z in tangents(60):
        lower.add(m, z)
        bounds.append(lower.bound)
    assert np.all(np.diff(bounds) >= 0)
    assert bounds[-1] <= best
    assert best - bounds[-1] < 0.5 * (best - bounds[0])


def test_a_witness_proves_the_bound_by_itself():
    """For quadratics the tangent at the average of the places is at least the average of the tangents."""
    lower = LowerBound(BALL, (3,))
    for m, z in tangents(40):
        lower.add(m, z)
    tangent = F.evaluate(F.point(lower.witness)).slope
    assert tangent.lower(BALL) >= lower.bound - 1e-12 * abs(lower.bound)
    assert lower.bound == lower.witnessed


def test_weights_add_up_to_one_exactly():
    """Otherwise an average of tangents would be below a multiple of f that is not quite one."""
    lower, ones = LowerBound(BALL, (3,)), Minorant(1.0, np.ones(3))
    for t in range(1, 200):
        lower.add(ones, np.ones(3))
        assert all(m.constant == pytest.approx(1.0, abs=1e-15 * t) for m, _ in lower.averages)
        for ell in ELLS:
            weight = ell / (t - 1.0 + ell)
            assert Fraction(1.0 - weight) + Fraction(1.0 - (1.0 - weight)) == 1
