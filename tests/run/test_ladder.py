"""The ladder of averages: its bound never falls, never exceeds the optimum, and every bound has a witness."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from projfree import LpBall, QuadraticForm, SchattenBall
from projfree.algebra import Minorant
from projfree.run.ladder import ELLS, Ladder

BALL = LpBall(2, 1.0)
F = QuadraticForm(np.diag([2.0, 1.0, 0.5]), np.array([1.0, -2.0, 0.3]), c=-7.0)


def tangents(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        z = BALL.random((3,), rng)
        yield F.minorant(F.point(z)), z


def optimum():
    """By projected gradient, written out; a point of the ball, so an upper bound on the minimum."""
    w = np.zeros(3)
    for _ in range(500):
        w = BALL.project(w - (F.H @ w - F.b) / 2.0)
    return F.value(F.point(w))


def test_nothing_is_claimed_before_the_first_tangent():
    ladder = Ladder(BALL, (3,))
    assert ladder.bound == -math.inf
    ladder.evaluate()
    assert ladder.bound == -math.inf, "zero is no lower bound on a negative function"
    assert ladder.witness is None


def test_bounds_rise_and_stay_below_the_optimum():
    ladder, best, bounds = Ladder(BALL, (3,)), optimum(), []
    for m, z in tangents(60):
        ladder.add(m, z)
        bounds.append(ladder.bound)
        assert ladder.bound >= m.lower(BALL)
    assert np.all(np.diff(bounds) >= 0)
    assert bounds[-1] <= best
    assert best - bounds[-1] < 0.5 * (best - bounds[0])


def test_rungs_are_the_averages_they_say():
    ladder, met = Ladder(BALL, (3,)), list(tangents(20))
    for m, z in met:
        ladder.add(m, z)
    for ell, rung in zip(ELLS, ladder.rungs, strict=True):
        shares = np.ones(1)
        for t in range(2, 21):
            a = ell / (t + ell - 1)
            shares = np.append((1 - a) * shares, a)
        assert rung.m.constant == pytest.approx(sum(s * m.constant for s, (m, _) in zip(shares, met, strict=True)))
        np.testing.assert_allclose(rung.z, sum(s * z for s, (_, z) in zip(shares, met, strict=True)), atol=1e-13)


def test_a_witness_proves_the_bound_by_itself():
    """For quadratics the tangent at the average of the places is at least the average of the tangents."""
    ladder = Ladder(BALL, (3,))
    for m, z in tangents(40):
        ladder.add(m, z)
    tangent = F.minorant(F.point(ladder.witness))
    assert tangent.lower(BALL) >= ladder.bound - 1e-12 * abs(ladder.bound)
    assert ladder.bound == ladder.witnessed


def test_a_known_bound_is_taken_over_but_has_no_witness():
    ladder = Ladder(BALL, (3,))
    m, z = next(tangents(1))
    ladder.add(m, z, known=m.lower(BALL) + 0.125)
    assert ladder.bound == m.lower(BALL) + 0.125
    assert ladder.witnessed == m.lower(BALL)


def test_the_allowance_is_that_of_the_best_bound():
    """It tells where rounding, not the solver, decides; that of a bound that is no good says nothing."""
    ladder, (m, z) = Ladder(BALL, (3,)), next(tangents(1))
    ladder.offer(m, z)
    best = ladder.bound, ladder.allowance
    assert best == m.minimum(BALL)
    ladder.offer(Minorant(m.constant, m.gradient, 0.5), z)
    assert (ladder.bound, ladder.allowance) == best


def test_estimates_prove_nothing():
    ladder = Ladder(BALL, (3,))
    m, z = next(tangents(1))
    ladder.offer(Minorant(-math.inf, m.gradient), z)
    assert ladder.bound == -math.inf
    assert ladder.witness is None


class Weighed:
    """Stands in for the averages and remembers what tangents were weighted with."""

    def __init__(self) -> None:
        self.weights: list[tuple[Fraction, Fraction]] = []

    def add(self, old, new, m, z):
        self.weights += zip(map(Fraction, old.tolist()), map(Fraction, new.tolist()), strict=True)

    def minima(self, ball):
        return [-math.inf] * len(ELLS), [0.0] * len(ELLS)


def test_weights_add_up_to_one_exactly():
    """Otherwise an average of tangents would be below a multiple of f that is not quite one."""
    ladder = Ladder(BALL, (1,))
    ladder._averages = averages = Weighed()
    for _ in range(200):
        ladder.add(Minorant(0.0, np.zeros(1)), np.zeros(1))
    assert len(averages.weights) == 200 * len(ELLS)
    assert {old + new for old, new in averages.weights} == {1}
    assert averages.weights[0] == (0, 1), "the first tangent replaces what was there before"


def test_singular_values_are_taken_seldom_on_spectral_sets():
    class Counted(SchattenBall):
        calls = 0

        def support(self, g):
            Counted.calls += 1
            return super().support(g)

    rng, ladder = np.random.default_rng(0), Ladder(Counted(1, 1.0), (3, 2))
    for _ in range(100):
        ladder.add(Minorant(0.0, rng.standard_normal((3, 2))), np.zeros((3, 2)))
    assert Counted.calls <= 25 * (len(ELLS) + 1)
    assert Counted.calls >= 10 * (len(ELLS) + 1)
