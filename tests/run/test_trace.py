"""The trace: its columns, what they mean, and the forms it can take."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.catalogue import BENT, SAMPLED, SOLVERS, pairs, problem, solver

from projfree import FrankWolfe, LpBall, PrimalAveraging, minimize

BALL = LpBall(1.5, 1.0)
COLUMNS = ["iteration", "passes", "seconds", "value", "bound", "gap", "gamma"]


@pytest.fixture(scope="module")
def trace():
    return minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=12, tol=0.0).trace


@pytest.mark.parametrize("name", SOLVERS | SAMPLED)
@pytest.mark.parametrize("case", ["logistic", "squares, intercept"])
def test_columns_of_a_convex_run(name, case):
    f = problem(case)
    result = minimize(f, BALL, solver(name), max_iter=12, tol=0.0)
    trace = result.trace
    np.testing.assert_array_equal(trace["iteration"], np.arange(1, len(trace) + 1))
    for column in ("passes", "seconds", "bound"):
        assert np.all(np.diff(trace[column][np.isfinite(trace[column])]) >= 0), column
    assert trace["passes"][-1] <= result.n_passes
    assert trace["seconds"][-1] == result.seconds
    known = np.isfinite(trace["value"])
    np.testing.assert_array_equal(trace["gap"][known], (trace["value"] - trace["bound"])[known])
    assert np.nanmax(trace["bound"]) <= result.value
    assert trace["gamma"].min() >= 0


@pytest.mark.parametrize("name", ["PA", "FW, open loop", "PG", "FISTA", "PA, corrective"])
def test_values_are_those_of_the_iterates(name):
    points = []
    f = problem("logistic, intercept")
    result = minimize(f, BALL, solver(name), max_iter=8, tol=0.0, callbacks=[lambda run: points.append(run.state.x.w)])
    values = [f(f.point(w)) for w in points]
    known = np.isfinite(result.trace["value"])
    assert known.sum() >= 7
    np.testing.assert_allclose(result.trace["value"][known], np.array(values)[known], rtol=1e-11)


@pytest.mark.parametrize(("name", "case"), pairs(("FW, exact", "FW, open loop", "PG"), BENT))
def test_gaps_of_a_run_without_convexity(name, case):
    """Each is the Frank-Wolfe gap at its own iterate."""
    points = [np.zeros(4)]
    f = problem(case)
    result = minimize(f, BALL, solver(name), max_iter=8, tol=0.0, callbacks=[lambda run: points.append(run.state.x.w)])
    trace = result.trace
    assert np.isnan(trace["bound"]).all()
    assert np.isfinite(trace["gap"][:-1]).all()
    if case == "biweight":  # with a local intercept a fresh start may end in another valley
        tangents = [f.evaluate(f.point(w)).slope for w in points]
        gaps = [np.vdot(m.gradient, w) + BALL.support(m.gradient) for m, w in zip(tangents, points, strict=True)]
        np.testing.assert_allclose(trace["gap"][:-1], gaps[1:-1], rtol=1e-9)


@pytest.mark.parametrize(("record", "rows"), [(1, list(range(1, 13))), (5, [5, 10]), (100, []), (0, [])])
def test_record(record, rows):
    result = minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=12, tol=0.0, record=record)
    assert result.trace["iteration"].tolist() == rows
    assert len(result.trace) == len(rows)


def test_recording_changes_nothing_else():
    runs = [minimize(problem("logistic"), BALL, FrankWolfe(), max_iter=9, tol=0.0, record=r) for r in (0, 1, 4)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.w, runs[0].w)
        assert (run.value, run.bound, run.n_passes) == (runs[0].value, runs[0].bound, runs[0].n_passes)


@pytest.fixture
def pyplot():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.parametrize(
    ("x", "label"), [("passes", "passes over the data"), ("iteration", "iteration"), ("seconds",) * 2]
)
def test_plot(trace, pyplot, x, label):
    ax = trace.plot(x)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == (label, "certified gap")
    (line,) = ax.get_lines()
    known = trace["gap"] > 0
    np.testing.assert_array_equal(line.get_xdata(), trace[x][known])
    np.testing.assert_array_equal(line.get_ydata(), trace["gap"][known])
