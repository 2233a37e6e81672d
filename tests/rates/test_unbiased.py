"""Sampled gradients are unbiased: their mean over all samples is the gradient, with weights and with an intercept."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from projfree import Growing, Huber, Logistic, Minibatch, Objective, Perturbed, Softmax, Squared, as_data
from projfree.sets import random_point

N, D = 7, 3
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((N, D)), RNG.standard_normal(D)
WEIGHTS = {"plain": None, "weighted": RNG.uniform(0.1, 3.0, N)}


def targets(loss):
    if isinstance(loss, Softmax):
        return np.arange(N) % 3
    return np.where(RNG.random(N) < 0.5, -1.0, 1.0) * (1.0 if loss.labels else RNG.uniform(1, 5, N))


def estimate(f, x, rows):
    """The estimate from the given rows, whatever a generator would have drawn."""
    data = f.reported.data
    data.sample = lambda m, rng: np.array(rows)
    try:
        return f.estimate(x, len(rows), np.random.default_rng(0)).gradient
    finally:
        del data.sample


def average(f, x, m):
    """The mean of the estimates over all samples of ``m`` rows."""
    return np.mean([estimate(f, x, rows) for rows in combinations(range(N), m)], axis=0)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(1.0), Softmax()], ids=repr)
def test_without_an_intercept(loss, m, weight):
    f = Objective(loss, as_data(X, targets(loss), WEIGHTS[weight]))
    x = f.point(np.broadcast_to(W, (*f.shape[1:], D)).T)
    np.testing.assert_allclose(average(f, x, m), f.evaluate(x).slope.gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("m", [1, 3])
def test_squares_are_centred_with_the_means_of_all_rows(m, weight):
    """Also one row at a time, where an intercept fitted to the sample would make every gradient zero."""
    f = Objective(Squared(), as_data(X, targets(Squared()), WEIGHTS[weight]), fit_intercept=True)
    x = f.point(W)
    np.testing.assert_allclose(average(f, x, m), f.evaluate(x).slope.gradient, rtol=0, atol=1e-12)
    assert np.linalg.norm(estimate(f, x, (2,))) > 0.1


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", [Logistic(), Huber(1.0)], ids=repr)
def test_other_losses_keep_the_intercept_of_the_point(loss, weight):
    """The mean is the gradient in w at that intercept: the exact one at an evaluated point, else as given."""
    f = Objective(loss, as_data(X, targets(loss), WEIGHTS[weight]), fit_intercept=True)
    exact = f.evaluate(f.point(W))
    np.testing.assert_allclose(average(f, exact.point, 2), exact.slope.gradient, rtol=0, atol=1e-12)
    held = f.point(W, intercept=0.7)
    s = np.full(N, 1 / N) if WEIGHTS[weight] is None else WEIGHTS[weight] / WEIGHTS[weight].sum()
    by_hand = X.T @ (s * loss.derivative(X @ W + 0.7, f.data.y))
    np.testing.assert_allclose(average(f, held, 2), by_hand, rtol=0, atol=1e-12)


def test_a_perturbation_is_added_to_every_estimate():
    f = Objective(Squared(), as_data(X, targets(Squared())))
    h = Perturbed(f, 0.3, np.ones(D))
    x = h.point(W)
    np.testing.assert_allclose(average(h, x, 2), f.evaluate(x).slope.gradient + 0.3, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sampling", [Minibatch(5), Growing(2)], ids=repr)
def test_the_draws_of_many_seeds_average_to_the_gradient(small, sampling):
    """All coordinates within 4.5 standard errors over 2,000 seeds, at an iteration that samples."""
    f = small.objective
    x = f.point(random_point(small.ball(2, 0.5), f.shape, np.random.default_rng(0)))
    draws = np.array([sampling.evaluate(f, x, 4, seed).slope.gradient for seed in range(2_000)])
    error = np.abs(draws.mean(axis=0) - f.evaluate(x).slope.gradient)
    assert np.all(error <= 4.5 * draws.std(axis=0) / np.sqrt(len(draws)))


def test_a_sample_is_drawn_without_replacement_and_depends_on_the_seed_and_the_iteration_alone():
    f = Objective(Squared(), as_data(np.eye(100), np.zeros(100)))  # each row has an entry of the gradient for itself

    def gradient(t, seed):
        return Minibatch(50).evaluate(f, f.point(np.ones(100)), t, seed).slope.gradient

    first = gradient(3, seed=8)
    np.testing.assert_array_equal(np.sort(first), np.repeat([0.0, 2.0 / 50], 50))
    np.testing.assert_array_equal(first, gradient(3, seed=8))
    assert not np.array_equal(first, gradient(4, seed=8))
    assert not np.array_equal(first, gradient(3, seed=9))
