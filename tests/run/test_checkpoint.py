"""A run that goes on from a checkpoint equals, bit for bit, the one that was never interrupted."""

from __future__ import annotations

import os

import numpy as np
import pytest
from solvers.catalogue import PROBLEMS, X, pairs, problem, solver

from projfree import (
    Checkpoint,
    LpBall,
    Objective,
    PrimalAveraging,
    SchattenBall,
    Softmax,
    Status,
    as_data,
    minimize,
    persist,
)

BALL = LpBall(1.5, 1.0)
EVERY, STOP, END = 3, 5, 7
MOST = ("squares", "logistic, intercept", "biweight", "sigmoid, intercept")
SOME = ("PA", "PA, corrective", "PA, growing", "FW, exact", "PG, single", "FISTA")
CURVED = ("squares", "logistic, intercept", "softmax, intercept", "biweight")
SOON = ("Newton", "Newton, Hessian-free", "direct")  # done before the first checkpoint is due, or soon after
REST = [name for name in PROBLEMS if name not in MOST]


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    """Whether bytes reach the disk is tested with `persist`; waiting for them a thousand times is not needed here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def same(a, b):
    """Everything but the clock."""
    for name in ("iteration", "passes", "value", "bound", "gap", "gamma"):
        np.testing.assert_array_equal(a.trace[name], b.trace[name], err_msg=name)
    np.testing.assert_array_equal(a.w, b.w)
    np.testing.assert_array_equal(a.intercept, b.intercept)
    for name in ("value", "bound", "gap", "relative_gap", "n_iter", "n_passes", "status"):
        assert getattr(a, name) == getattr(b, name), name
    np.testing.assert_array_equal(a.certificate.witness, b.certificate.witness)


def three_runs(make, chosen, ball, folder, **settings):
    """The whole run, and one that is stopped between two checkpoints and resumed by a new process' objects."""
    settings = {"tol": 0.0, "seed": 5} | settings
    whole = minimize(make(), ball, chosen, max_iter=END, callbacks=[Checkpoint(folder / "a", EVERY)], **settings)
    minimize(make(), ball, chosen, max_iter=STOP, callbacks=[Checkpoint(folder / "b", EVERY)], **settings)
    resumed = minimize(
        make(), ball, chosen, max_iter=END, callbacks=[Checkpoint(folder / "b", EVERY)], state=folder / "b", **settings
    )
    return whole, resumed


@pytest.mark.parametrize(("name", "case"), [pair for pair in pairs(problems=MOST) if pair[0] not in SOON])
def test_resumed_equals_uninterrupted(name, case, tmp_path):
    whole, resumed = three_runs(PROBLEMS[case], solver(name), BALL, tmp_path)
    same(whole, resumed)
    assert whole.n_iter == END, "it went on after the checkpoint"


@pytest.mark.parametrize(("name", "case"), pairs(SOON, CURVED))
@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_quick_solvers_resume_at_every_iteration(name, case, stop, tmp_path):
    settings = {"tol": 1e-12, "seed": 5, "callbacks": [Checkpoint(tmp_path, 1)]}
    whole = minimize(PROBLEMS[case](), BALL, solver(name), max_iter=6, **settings)
    minimize(PROBLEMS[case](), BALL, solver(name), max_iter=stop, **settings)
    same(whole, minimize(PROBLEMS[case](), BALL, solver(name), max_iter=6, state=tmp_path, **settings))


@pytest.mark.parametrize(("name", "case"), pairs(SOME, REST))
def test_from_a_start_and_with_gaps_in_the_trace(name, case, tmp_path):
    start = np.full(problem(case).shape, 0.1)
    same(*three_runs(PROBLEMS[case], solver(name), BALL, tmp_path, start=start, record=3))


@pytest.mark.parametrize("name", ["PA", "PA, corrective", "FW, exact", "PG"])
def test_matrices_in_a_spectral_set(name, tmp_path):
    def make():
        return Objective(Softmax(), as_data(X, np.arange(60) % 3), fit_intercept=True)

    same(*three_runs(make, solver(name), SchattenBall(1, 1.0), tmp_path))


@pytest.mark.parametrize("case", ["sigmoid, intercept", "logistic, intercept", "squares, intercept"])
@pytest.mark.parametrize("name", ["PA", "FW, exact", "FISTA"])
def test_points_keep_their_intercepts(name, case, tmp_path):
    """Where a loss is not convex the intercept depends on where the search for it begins."""
    write, compared = Checkpoint(tmp_path, 1), 0

    def compare(run):
        nonlocal compared
        before = [run.state.x.intercept, run.best.intercept]
        write(run)
        compared += sum(b is not None for b in before)
        np.testing.assert_equal([run.state.x.intercept, run.best.intercept], before)

    minimize(problem(case), BALL, solver(name), tol=0.0, max_iter=4, callbacks=[compare])
    assert compared >= 4


def test_chains_of_interruptions(tmp_path):
    """Stopped by hand again and again, at any iteration."""

    def run(folder, stop=0, state=None):
        def press(run):
            if run.iteration == stop:
                raise KeyboardInterrupt

        settings = {"max_iter": 20, "tol": 0.0, "callbacks": [Checkpoint(folder, 3), press]}
        return minimize(problem("logistic"), BALL, PrimalAveraging(), state=state, **settings)

    state = None
    for iteration in (5, 9, 10, 17):
        assert run(tmp_path / "b", iteration, state).status is Status.INTERRUPTED
        state = tmp_path / "b"
    same(run(tmp_path / "a"), run(tmp_path / "b", state=state))


def test_a_checkpoint_holds_no_image(tmp_path):
    """Sixty rows, and nothing of that length on the disk but what the problem itself is."""
    minimize(problem("logistic"), BALL, PrimalAveraging(), max_iter=4, callbacks=[Checkpoint(tmp_path / "a", 4)])

    def sizes(tree):
        if isinstance(tree, dict):
            return [s for value in tree.values() for s in sizes(value)]
        if isinstance(tree, list | tuple):
            return [s for value in tree for s in sizes(value)]
        return [tree.size] if isinstance(tree, np.ndarray) else []

    assert max(sizes(persist.load(tmp_path / "a", kind="projfree checkpoint"))) <= 4


def squares(folder, every, n, **settings):
    """A short run that writes checkpoints."""
    settings = {"max_iter": n, "tol": 0.0, "callbacks": [Checkpoint(folder, every)]} | settings
    return minimize(problem("squares"), BALL, PrimalAveraging(), **settings)


def test_other_limits_and_tolerances_may_be_given(tmp_path):
    squares(tmp_path / "a", every=4, n=4)
    result = squares(tmp_path / "a", every=4, n=500, tol=1e-3, state=str(tmp_path / "a"))
    assert result.status is Status.CONVERGED
    assert result.trace["iteration"][3] == 4


def test_a_checkpoint_that_cannot_be_written_ends_the_run_and_the_earlier_one_stays(tmp_path, monkeypatch):
    f, save, called, settings = problem("squares"), persist.save, [], {"tol": 0.0, "max_iter": END}

    def full(*args, **given):
        called.append(given)
        if len(called) > 1:
            raise OSError(28, "No space left on device")
        save(*args, **given)

    whole = minimize(f, BALL, PrimalAveraging(), callbacks=[Checkpoint(tmp_path / "a", EVERY)], **settings)
    monkeypatch.setattr(persist, "save", full)
    with pytest.raises(OSError, match="No space left"):
        minimize(f, BALL, PrimalAveraging(), callbacks=[Checkpoint(tmp_path / "b", EVERY)], **settings)
    monkeypatch.undo()
    same(whole, minimize(f, BALL, state=tmp_path / "b", callbacks=[Checkpoint(tmp_path / "b", EVERY)], **settings))
