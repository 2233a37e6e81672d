"""Going on from a state, owning the loop, seeds and starts."""

from __future__ import annotations

import pickle
from dataclasses import fields
from itertools import islice

import numpy as np
import pytest
from solvers.catalogue import SAMPLED, SOLVERS, X, Y, counted, fits, problem, solver

from projfree import (
    FrankWolfe,
    GroupBall,
    LpBall,
    Objective,
    PrimalAveraging,
    Squared,
    WorkingSet,
    as_data,
    iterate,
    minimize,
)

BALL = LpBall(1.5, 1.0)


@pytest.mark.parametrize("name", [name for name in SOLVERS | SAMPLED if fits(name, "logistic")])
def test_a_run_goes_on_from_the_state_of_a_result(name):
    """Two halves take the steps of the whole: same iterates, the count of iterations starts again."""
    whole = minimize(problem("logistic"), BALL, solver(name), max_iter=10, tol=0.0, seed=3)
    f = problem("logistic")
    half = minimize(f, BALL, solver(name), max_iter=3, tol=0.0, seed=3)
    rest = minimize(f, BALL, solver(name), max_iter=7, tol=0.0, state=half.state)
    assert rest.state.t == whole.state.t
    assert rest.n_iter == rest.trace["iteration"][-1] <= 7
    np.testing.assert_allclose(rest.state.x.w, whole.state.x.w, atol=1e-10)
    np.testing.assert_allclose(rest.trace["gamma"], whole.trace["gamma"][3:], rtol=1e-6)
    assert rest.bound <= rest.value


def test_the_state_of_a_result_keeps_what_a_checkpoint_keeps():
    """The columns of the features in use are a copy of the data, and a pickle of the result would hold them."""
    x = np.random.default_rng(0).standard_normal((3_000, 6))
    f, live = Objective(Squared(), as_data(x, x[:, 0] - x[:, 1])), []
    result = minimize(f, LpBall(1, 2.0), WorkingSet(), callbacks=[lambda run: live.append(run.state)])
    dropped = {each.name for each in fields(result.state) if each.metadata.get("transient")} - {"problem", "solver"}
    assert {"evaluation", "columns"} <= {name for name in dropped if getattr(live[-1], name) is not None}
    assert {name for name in dropped if getattr(result.state, name)} == set()
    assert len(pickle.dumps(result)) < x[:, 0].nbytes
    assert minimize(f, LpBall(1, 2.0), state=result.state).status.converged


@pytest.mark.parametrize("name", ["PA", "FW, open loop", "PG", "FISTA", "PA, corrective", "PA, growing"])
def test_iterate_gives_the_states_of_a_run(name):
    result = minimize(problem("squares"), BALL, solver(name), max_iter=7, tol=0.0, seed=2)
    *_, last = islice(iterate(problem("squares"), BALL, solver(name), seed=2), result.n_iter)
    assert last.t == result.n_iter
    np.testing.assert_allclose(last.x.w, result.state.x.w, atol=1e-12)


@pytest.mark.parametrize("name", SAMPLED)
def test_a_seed_determines_the_run(name):
    runs = [minimize(problem("squares"), BALL, solver(name), max_iter=5, tol=0.0, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].state.x.w, runs[1].state.x.w)
    assert runs[0].value == runs[1].value
    assert not np.array_equal(runs[0].state.x.w, runs[2].state.x.w)


def test_no_global_generator_is_touched():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    minimize(problem("squares"), BALL, solver("PG, single"), max_iter=5, tol=0.0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("start", [[0.1, 0.2, 0.0, -0.1], np.zeros(4, dtype=int), np.full(4, 0.1, dtype=np.float32)])
def test_a_start_inside(start):
    seen = []
    f = problem("squares")
    minimize(f, BALL, FrankWolfe(), start=start, max_iter=1, callbacks=[lambda run: seen.append(run.best.w)])
    first = next(iterate(f, BALL, FrankWolfe(), start=start))
    np.testing.assert_array_equal(first.evaluation.point.w, np.asarray(start, dtype=float))


BAD_STARTS = {
    "outside": (
        [1.0, 1.0, 0.0, 0.0],
        ValueError,
        r"^`start` must lie in LpBall\(p=1\.5, radius=1\.0\), got \[1\.0,",
    ),
    "nan": ([np.nan, 0, 0, 0], ValueError, r"^`start` must be finite, got nan at index 0"),
    "shape": (
        [0.0, 0.0],
        ValueError,
        r"^`start` must have the shape \(4,\) of the objective's parameter, got \(2",
    ),
    "object": (np.zeros(4, object), TypeError, r"^`start` must hold real numbers, got dtype object"),
}


@pytest.mark.parametrize(("start", "error", "sentence"), BAD_STARTS.values(), ids=BAD_STARTS)
def test_bad_starts(start, error, sentence):
    f, passes = counted(problem("squares"))
    for call in (lambda: minimize(f, BALL, start=start), lambda: next(iterate(f, BALL, start=start))):
        with pytest.raises(error, match=sentence):
            call()
    assert passes() == 0


OTHER = {
    "objective": (Objective(Squared(), as_data(X, 2 * Y)), BALL, PrimalAveraging()),
    "set": (problem("squares"), LpBall(1.5, 0.1), PrimalAveraging()),
    "solver": (problem("squares"), BALL, FrankWolfe()),
}


@pytest.mark.parametrize("part", OTHER)
def test_a_state_of_another_problem(part):
    """An average of tangents of one function bounds no other: without this rule the bound would be false."""
    state = minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=5).state
    f, ball, chosen = OTHER[part]
    sentence = rf"^`state` is of another problem: its {part} (is .*, this one is|has other).*; give the same {part}, or"
    for call in (
        lambda: minimize(f, ball, chosen, state=state),
        lambda: next(iterate(f, ball, chosen, state=state)),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()


def test_a_state_that_no_run_made_is_of_no_problem():
    f, chosen = problem("squares"), PrimalAveraging()
    state = chosen.init(f, BALL, f.point(np.zeros(4)), 0)
    with pytest.raises(ValueError, match=r"^`state` is of another problem"):
        minimize(f, BALL, chosen, state=state)


def test_a_result_is_no_state():
    result = minimize(problem("squares"), BALL, max_iter=1)
    with pytest.raises(
        TypeError, match=r"^`state` must be the `state` of a result or the path of a checkpoint, got Result\.$"
    ):
        minimize(problem("squares"), BALL, state=result)


SETTINGS = {
    "tol": ({"tol": -1e-3}, ValueError, r"^`tol` must be at least 0, got -0\.001\.$"),
    "tol nan": ({"tol": np.nan}, ValueError, r"^`tol` must be at least 0, got nan\.$"),
    "tol text": ({"tol": "small"}, TypeError, r"^`tol` must be a real number, got 'small' of type str\.$"),
    "max_iter": ({"max_iter": 0}, ValueError, r"^`max_iter` must be a whole number of at least 1, got 0\.$"),
    "max_iter float": (
        {"max_iter": 1e3},
        ValueError,
        r"^`max_iter` must be a whole number .* got 1000\.0\.$",
    ),
    "time_limit": ({"time_limit": 0}, ValueError, r"^`time_limit` must be positive and finite, got 0\.$"),
    "record": ({"record": -1}, ValueError, r"^`record` must be a whole number of at least 0, got -1\.$"),
    "seed": ({"seed": -1}, ValueError, r"^`seed` must be a whole number of at least 0, got -1\.$"),
    "seed text": ({"seed": "x"}, ValueError, r"^`seed` must be a whole number of at least 0, got 'x'\.$"),
}


@pytest.mark.parametrize(("settings", "error", "sentence"), SETTINGS.values(), ids=SETTINGS)
def test_bad_settings(settings, error, sentence):
    f, passes = counted(problem("squares"))
    with pytest.raises(error, match=sentence):
        minimize(f, BALL, **settings)
    assert passes() == 0


def test_shapes_that_do_not_fit_the_set():
    f, passes = counted(problem("squares"))
    with pytest.raises(ValueError, match=r"`GroupBall` needs matrices .*, got shape \(4,\); for vectors use LpBall\."):
        minimize(f, GroupBall(2, 1, 1.0))
    assert passes() == 0
