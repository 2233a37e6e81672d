r"""Lemma 1 of the paper: the oracle of a strongly convex set is Lipschitz. The printed constant is short by a factor 2.

With :math:`x_p = \arg\max_{x \in C}\langle p, x\rangle` and alpha the Euclidean modulus of C,

.. math:: \|x_p - x_q\| \le \frac{2\|p - q\|}{\alpha(\|p\| + \|q\|)}
"""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from projfree import LpBall, PrimalAveraging, iterate

BALLS = [LpBall(p, r) for p in (2.0, 1.8, 1.5, 1.1) for r in (0.3, 2.0)]


def ratio(ball, p, q):
    """The left side in units of the right side without its factor: at most 2, or at most 1 if the paper were right."""
    moved = np.linalg.norm(ball.lmo(-p) - ball.lmo(-q))
    alpha = ball.strong_convexity(p.shape)
    return moved * alpha * (np.linalg.norm(p) + np.linalg.norm(q)) / np.linalg.norm(p - q)


def pairs(d, rng):
    """Far apart, close together, of different lengths, opposite, and nearly sparse."""
    for size in (1.0, 1e-2, 1e-5):
        p = rng.standard_normal(d)
        yield p, p + size * rng.standard_normal(d)
        yield p, (1 + size) * p[::-1]
        yield p**5, p**5 + size * rng.standard_normal(d)
    yield p, -p * rng.uniform(0.5, 2.0, d)


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_the_oracle_is_lipschitz_with_the_factor_two(ball):
    """Largest ratio in 1,000 pairs: 2.00 for p = 2, 1.85 for 1.8, 1.58 for 1.5 and 1.09 for 1.1.

    So the printed factor 1 fails on every ball, although alpha for p < 2 is a safe value, not a sharp one.
    """
    rng = np.random.default_rng(0)
    worst = max(ratio(ball, p, q) for d in (2, 3, 10, 90) for _ in range(25) for p, q in pairs(d, rng))
    assert 1 < worst <= 2 * (1 + 1e-9)


def test_the_factor_two_is_sharp():
    """On the l_2 ball with gradients of one length both sides agree up to the factor 2."""
    rng, ball = np.random.default_rng(0), LpBall(2, 1.0)
    p, q = rng.standard_normal((2, 5))
    assert ratio(ball, p, q * np.linalg.norm(p) / np.linalg.norm(q)) == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize(("p", "rho"), [(2, 0.5), (1.5, 0.9)])
def test_the_vertices_of_a_run_move_as_the_lemma_says(small, p, rho):
    r"""With p_t - p_{t-1} = gamma_t (g_t - p_{t-1}) it gives ||v_t - v_{t-1}|| = O(gamma_t / (alpha ||p_t||))."""
    ball = small.ball(p, rho)
    ratios = []
    for old, new in pairwise(islice(iterate(small.form, ball, PrimalAveraging()), 300)):
        turn = new.gamma * (new.evaluation.slope.gradient - old.m.gradient)
        np.testing.assert_allclose(new.m.gradient - old.m.gradient, turn, rtol=0, atol=1e-12)
        moved, size = np.linalg.norm(new.v.w - old.v.w), np.linalg.norm(new.m.gradient) + np.linalg.norm(old.m.gradient)
        assert moved <= 2 * np.linalg.norm(turn) / (ball.strong_convexity(turn.shape) * size) * (1 + 1e-6) + 1e-12
        ratios.append(ratio(ball, -new.m.gradient, -old.m.gradient))
    # On the round ball the run itself refutes the printed factor: 1.87 (and 0.72 on l_1.5).
    assert max(ratios) > 1 or p < 2
