"""Promises that are not so, and states of other problems, end in a sentence and never in a wrong bound."""

import numpy as np
import pytest

from projfree import BlackBox, Checkpoint, LpBall, OracleSet, PrimalAveraging, QuadraticForm, Softmax, as_data, minimize
from projfree.algebra import Point
from projfree.objectives.intercepts.root_search import search
from projfree.run import Certificate

BALL = LpBall(2, radius=1.0)


def square(centre, constant=0.0):
    return BlackBox(lambda w: (float((w - centre) @ (w - centre)) + constant, 2.0 * (w - centre)), shape=2)


def disc(radius, **settings):
    ball = LpBall(2, radius=radius)
    return OracleSet(ball.lmo, ball.support, contains=ball.contains, diameter=2.0 * radius, **settings)


def test_states_of_functions_without_a_name_are_not_interchangeable():
    state = minimize(square(9.0, 100.0), BALL, PrimalAveraging(), max_iter=20).state
    with pytest.raises(ValueError, match="`state` is of another problem: its objective is blackbox"):
        minimize(square(3.0), BALL, PrimalAveraging(), state=state)


def test_a_function_goes_on_from_its_own_state():
    f = square(9.0)
    state = minimize(f, BALL, PrimalAveraging(), max_iter=20).state
    assert minimize(f, BALL, PrimalAveraging(), state=state, max_iter=5).n_iter <= 5


@pytest.mark.parametrize("names", [({}, {}), ({"name": "small"}, {"name": "large"})])
def test_checkpoints_of_oracle_sets_are_told_apart(tmp_path, names):
    f = QuadraticForm(np.eye(2), np.array([3.0, 4.0]))
    path = tmp_path / "run"
    minimize(f, disc(1.0, **names[0]), PrimalAveraging(), max_iter=8, tol=0.0, callbacks=[Checkpoint(path, every=1)])
    with pytest.raises(ValueError, match="is of another problem: its set is OracleSet"):
        minimize(f, disc(2.0, **names[1]), PrimalAveraging(), state=path)


def test_a_concave_function_called_convex_is_found_out():
    f = BlackBox(lambda w: (-float(w @ w), -2.0 * w), shape=2)
    with pytest.raises(ValueError, match=r"exceeds the value .* is not convex, or `support` of .* is too small"):
        minimize(f, BALL, PrimalAveraging(), start=np.array([0.5, 0.0]), max_iter=50)


def test_a_support_that_is_too_small_is_found_out():
    ball = LpBall(2, radius=1.0)
    wrong = OracleSet(ball.lmo, lambda g: 0.5 * ball.support(g), contains=ball.contains, diameter=2.0)
    with pytest.raises(ValueError, match=r"`support`\s+of .* is too small"):
        minimize(QuadraticForm(np.eye(2), np.array([3.0, 4.0])), wrong, PrimalAveraging(), max_iter=200)


def test_a_function_that_is_zero_everywhere_converges():
    result = minimize(QuadraticForm(np.zeros((2, 2)), np.zeros(2)), BALL)
    assert result.status.converged
    assert result.value == 0.0
    assert result.bound <= 0.0


@pytest.mark.parametrize("far", [700.0, 720.0, 735.0, 745.0])
def test_softmax_intercepts_where_the_curvature_has_vanished(far):
    u = np.array([[0.0, far], [0.0, far + 1.0], [0.0, far - 1.5], [0.0, far + 0.5]])
    data = as_data(u, np.array([0, 0, 1, 0])).with_targets(Softmax().targets)
    b = search(data.open(), Softmax(), data, Point(np.eye(2)), np.zeros(2), (2,))
    slope = (Softmax().derivative(u + b, np.array([0, 0, 1, 0])) * 0.25).sum(axis=0)
    assert np.abs(slope).max() <= 1e-8


def test_a_bound_above_the_value_is_no_proof():
    """Every number of this certificate is what the function gives; only that it is convex is not so."""
    f = BlackBox(lambda w: (-float(w @ w), -2.0 * w), 2)
    claim = Certificate(BALL, np.array([1.0, 0.0]), None, -1.0, -1e-12, -1.0, 0.0, np.zeros(2), None)
    checked = claim.verify(objective=f)
    assert checked.feasible
    assert checked.value == -1.0
    assert checked.bound > checked.value
    assert not checked.ok
