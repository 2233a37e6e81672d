"""How often the data are read: one read an iteration wherever the algorithm allows it, and what a run adds."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from solvers.catalogue import counted, problem, solver

from projfree import LpBall, iterate, minimize

BALL = LpBall(1.5, 1.0)
STEPS = 12
#: solver: reads an iteration without intercept, and reads before the first (the smoothness constant)
ONE = {
    "PA": 0,
    "PA, last gradient": 0,
    "FW, open loop": 0,
    "FW, adaptive": 0,
    "FW, short with L": 0,
    "PG": 1,
    "FISTA": 1,
}
ONE |= {"PG, square root": 1}
TWO = ("PA, search", "PA, corrective", "FW, short", "FW, exact", "FW, backtracking")


def reads(name, case, steps=STEPS):
    """Rows read in each iteration, divided by rows."""
    f = problem(case)
    counts = [f.passes for _ in islice(iterate(f, BALL, solver(name)), steps)]
    return np.diff([0.0, *counts])


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("case", ["squares", "squares, intercept", "logistic"])
def test_one_read_an_iteration(name, case):
    expected = np.ones(STEPS)
    expected[0] += ONE[name]
    np.testing.assert_array_equal(reads(name, case), expected)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("case", ["squares", "squares, intercept", "logistic", "logistic, intercept"])
def test_rules_that_look_ahead_cost_a_second(name, case):
    np.testing.assert_array_equal(reads(name, case), np.full(STEPS, 2.0))


@pytest.mark.parametrize("name", ["PA", "FW, open loop", "PG", "FISTA"])
def test_an_intercept_that_depends_on_the_whole_image_costs_a_second(name):
    """From the third on: the first begin at zero, whose image is known."""
    np.testing.assert_array_equal(reads(name, "logistic, intercept")[2:], np.full(STEPS - 2, 2.0))


@pytest.mark.parametrize(("name", "rows"), [("PA, minibatch", 8), ("FW, minibatch", 8), ("PG, single", 1)])
@pytest.mark.parametrize("case", ["squares", "squares, intercept", "logistic, intercept"])
def test_samples_read_their_rows(name, rows, case):
    counts = reads(name, case)
    np.testing.assert_allclose(counts[1:], np.full(STEPS - 1, rows / 60))


@pytest.mark.parametrize("case", ["squares", "logistic"])
def test_growing_samples_read_their_rows(case):
    np.testing.assert_allclose(reads("PA, growing", case, 10), [min(t**2, 60) / 60 for t in range(1, 11)])


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_a_run_adds_few_reads(name):
    """One for a tangent at the iterate now and then unless it takes them itself, and at most three at the end.

    None at the end where the last read was of the answer itself.
    """
    f, counts = counted(problem("squares"))
    result = minimize(f, BALL, solver(name), max_iter=40, tol=0.0)
    passes = np.diff([0.0, *result.trace["passes"]])
    usual = 1.0 if name in ONE else 2.0
    checks = passes[1:] - usual
    assert set(checks) <= {0.0, 1.0}
    if name.startswith("PA"):
        assert 1 <= checks.sum() <= 12
    else:
        assert not checks.any(), "these take tangents at the iterate, or are done before"
    at_the_end = result.n_passes - result.trace["passes"][-1]
    assert at_the_end == 0.0 if name == "PG" else 1.0 <= at_the_end <= 3.0
    assert result.n_passes == counts()
    assert f.passes == 0, "the reads of a run are its own"


def test_products_with_a_matrix():
    np.testing.assert_array_equal(reads("FW, exact", "form"), np.full(STEPS, 2.0))
    np.testing.assert_array_equal(reads("PA", "form")[2:], np.full(STEPS - 2, 2.0))


@pytest.mark.parametrize("case", ["squares", "calls"])
def test_averaging_ends_as_soon_as_it_is_certified(case):
    """Also where nothing but a tangent at the iterate tells its value, as for a function that is called."""
    result = minimize(problem(case), LpBall(1.5, 0.1), solver("PA"), tol=1e-3, max_iter=2_000)
    assert result.status.converged
    assert result.n_iter < 200
