"""Stochastic Primal Averaging: slopes with samples of constant size and of sizes t, t^2, t^4.

Slopes of the mean error over five seeds as measured (l_2, rho = 0.3, 20,000 rows, constant size 100):

======  ===========  ===========  ==========  ==========
option  constant     t            t^2         t^4
        [1e2, 2e3]   [1e2, 2e3]   [10, 140]   [10, 300]
======  ===========  ===========  ==========  ==========
A       -0.98        -1.72        -1.92       -1.99
B       0.00         -0.71        -1.45       -1.99
======  ===========  ===========  ==========  ==========

The windows of t^2 end where the sample is all rows. An average needs no more than t^2 rows for -2; the last gradient
alone keeps the noise of its sample, so its error falls no faster than the variance: not at all, -1, -2.
"""

from __future__ import annotations

import numpy as np
import pytest

from projfree import FrankWolfe, Growing, LastGradient, Minibatch, OpenLoop, PrimalAveraging, iterate

SEEDS = range(5)


def sampled(option, sampling):
    return PrimalAveraging(average=LastGradient() if option == "B" else None, sampling=sampling)


def mean_curve(problem, solver, p, rho, steps, seeds=SEEDS):
    curves = [problem.curve(solver, p, rho, steps, f=problem.objective, seed=seed) for seed in seeds]
    return curves[0].mean(*curves[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "sampling", "window", "measured"),
    [
        ("A", Minibatch(100), (1e2, 2e3), -0.98),
        ("A", Growing(1), (1e2, 2e3), -1.72),
        ("A", Growing(2), (10, 140), -1.92),
        ("A", Growing(4), (10, 300), -1.99),
        ("B", Minibatch(100), (1e2, 2e3), 0.00),
        ("B", Growing(1), (1e2, 2e3), -0.71),
        ("B", Growing(2), (10, 140), -1.45),
        ("B", Growing(4), (10, 300), -1.99),
    ],
    ids=str,
)
def test_slopes_by_option_and_sample_size(problem, option, sampling, window, measured):
    curve = mean_curve(problem, sampled(option, sampling), 2, 0.3, int(window[1]))
    assert curve.slope(*window) == pytest.approx(measured, abs=0.1)


@pytest.mark.slow
def test_the_last_gradient_of_a_constant_sample_has_a_floor(problem):
    """100 rows, l_2, rho = 0.3: option B stays 21 % off for ever, option A is at 0.05 % after 2,000 iterations."""
    a, b = (mean_curve(problem, sampled(option, Minibatch(100)), 2, 0.3, 2_000, range(2)) for option in "AB")
    assert b.errors[1_000:].min() >= 0.1
    assert a.errors[-1] <= 2e-3


def passes(sampling, n, steps):
    return np.cumsum([sampling.size(t, n) for t in range(1, steps + 1)]) / n


@pytest.mark.slow
def test_squares_of_t_with_the_average_need_far_fewer_passes_than_the_published_method(problem):
    """l_2, rho = 0.9, passes to 2 %: A with t^2 1.5, B with t^4 (the paper) more than 100, all rows with A 16."""
    n = len(problem.y)
    ours = mean_curve(problem, sampled("A", Growing(2)), 2, 0.9, 100, range(3)).first(0.02)
    paper = mean_curve(problem, sampled("B", Growing(4)), 2, 0.9, 110, range(1)).first(0.02)
    assert passes(Growing(2), n, 100)[int(ours) - 1] <= 4
    assert paper > 110
    assert passes(Growing(4), n, 110)[-1] >= 100


def test_the_published_sample_sizes():
    """min(t^4, N): all rows of Adult from t = 15 on, after 2.6 passes; of YearPredictionMSD from 27 on, after 5.1."""
    sampling = Growing(4)
    assert [sampling.size(t, 10_000) for t in (1, 2, 3, 9, 10, 11)] == [1, 16, 81, 6561, 10_000, 10_000]
    for n, t, read in ((48_842, 15, 2.6), (515_345, 27, 5.1)):
        assert sampling.size(t - 1, n) < n == sampling.size(t, n)
        assert passes(sampling, n, t - 1)[-1] == pytest.approx(read, abs=0.05)


def test_the_published_method_ends_as_the_full_one_and_reads_what_it_says(small):
    """From t = 6 on (6^4 > 1,000) its steps are those of option B on all rows, from the same state."""
    f, ball = small.objective, small.ball(2, 0.5)
    paper, full = sampled("B", Growing(4)), sampled("B", Growing(9))
    before, states = f.workspace.rows_read, iterate(f, ball, paper, seed=1)
    for _ in range(20):
        state = next(states)
    assert f.workspace.rows_read - before == 1 + 16 + 81 + 256 + 625 + 15 * 1_000
    ours, theirs = (solver.step(f, ball, state).x.w for solver in (paper, full))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)  # the second step finds images that the first met


@pytest.mark.parametrize("solver", [sampled("A", Growing(2)), sampled("B", Growing(4))], ids=str)
def test_growing_samples_reach_the_rate_in_miniature(small, solver):
    """l_2, rho = 0.5, [10, 200], one seed: -1.99 for both."""
    curve = small.curve(solver, 2, 0.5, 200, f=small.objective)
    assert -2.3 <= curve.slope(10, 200) <= -1.7


def test_frank_wolfe_on_samples_needs_growth_too(small):
    """Its error keeps the noise of the last sample: 32 % with 30 rows, 0.06 % with t^2 after 300 iterations."""
    fixed, growing = (
        small.curve(FrankWolfe(OpenLoop(), s), 2, 0.5, 300, f=small.objective) for s in (Minibatch(30), Growing(2))
    )
    assert growing.errors[-1] <= 0.01 * fixed.errors[-100:].mean()
