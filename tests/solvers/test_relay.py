"""Two solvers in turn: when the second takes over, and that nothing is lost when it does."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from solvers.catalogue import problem

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    Checkpoint,
    CorrectivePrimalAveraging,
    FrankWolfe,
    LpBall,
    ProjectedGradient,
    QuadraticForm,
    Relay,
    iterate,
    minimize,
)

SOLVER = Relay(CorrectivePrimalAveraging(), AcceleratedProjectedGradient(BacktrackingGradient()), after=20, look=4)
F = QuadraticForm(np.diag([1.0, 3.0, 10.0]), np.array([1.0, 1.0, 1.0]))  # minimum of norm 1.06


def legs(radius, steps):
    return [state.leg for state, _ in zip(iterate(F, LpBall(2, radius), SOLVER), range(steps), strict=False)]


def test_a_minimum_inside_ends_the_first_turn_at_the_look():
    assert legs(radius=50.0, steps=8) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_minimum_on_the_boundary_leaves_it_the_whole_turn():
    assert legs(radius=0.2, steps=24) == [0] * 20 + [1] * 4


def test_without_a_look_only_the_count_matters():
    plain = Relay(SOLVER.first, SOLVER.then, after=20)
    found = [state.leg for state, _ in zip(iterate(F, LpBall(2, 50.0), plain), range(22), strict=False)]
    assert found == [0] * 20 + [1] * 2


@pytest.mark.parametrize("radius", [0.2, 50.0])
def test_the_answer_is_certified(radius):
    result = minimize(F, LpBall(2, radius), SOLVER, tol=1e-8)
    assert result.status.converged
    unconstrained = np.array([1.0, 1.0 / 3.0, 0.1])
    assert radius < 1.0 or np.allclose(result.w, unconstrained, atol=1e-3)


def test_a_checkpoint_knows_whose_turn_it_is(tmp_path):
    ball = LpBall(2, 50.0)
    minimize(F, ball, SOLVER, tol=0.0, max_iter=6, callbacks=[Checkpoint(tmp_path / "run", 6)])
    resumed = minimize(F, ball, SOLVER, tol=0.0, max_iter=9, state=tmp_path / "run")
    straight = minimize(F, ball, SOLVER, tol=0.0, max_iter=9, callbacks=[Checkpoint(tmp_path / "other", 6)])
    assert resumed.state.leg == straight.state.leg == 1
    np.testing.assert_array_equal(resumed.w, straight.w)


def test_a_relay_of_relays_is_refused():
    with pytest.raises(TypeError, match="two plain solvers"):
        Relay(SOLVER, CorrectivePrimalAveraging())


@pytest.mark.parametrize("case", ["squares", "logistic, intercept"])
def test_the_second_goes_on_where_the_first_has_stopped(case):
    """A relay is its two solvers run by hand, the iterate of the first being the start of the second."""
    f, ball = problem(case), LpBall(1.5, 1.0)
    states = list(islice(iterate(f, ball, Relay(FrankWolfe(), ProjectedGradient(), after=3)), 5))
    first = list(islice(iterate(f, ball, FrankWolfe()), 3))
    then = list(islice(iterate(f, ball, ProjectedGradient(), start=first[-1].x.w), 2))
    for state, alone in zip(states, [*first, *then], strict=True):
        np.testing.assert_allclose(state.x.w, alone.x.w, atol=1e-12)
