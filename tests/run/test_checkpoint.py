"""A run that goes on from a checkpoint equals, bit for bit, the one that was never interrupted."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from solvers.catalogue import PROBLEMS, X, Y, pairs, problem, solver

from projfree import (
    BlackBox,
    Checkpoint,
    FrankWolfe,
    Huber,
    LpBall,
    Objective,
    OpenLoop,
    PrimalAveraging,
    SchattenBall,
    Softmax,
    Squared,
    Status,
    as_data,
    minimize,
    persist,
)

BALL = LpBall(1.5, 1.0)
EVERY, STOP, END = 2, 5, 8
MOST = ("squares, intercept", "logistic", "logistic, intercept", "biweight", "sigmoid, intercept")
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
    for name in ("value", "bound", "gap", "relative_gap", "smallest_gap", "n_iter", "n_passes", "status"):
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


@pytest.mark.parametrize(("name", "case"), pairs(problems=MOST))
def test_resumed_equals_uninterrupted(name, case, tmp_path):
    whole, resumed = three_runs(PROBLEMS[case], solver(name), BALL, tmp_path)
    same(whole, resumed)
    assert whole.n_iter == END, "it went on after the checkpoint"


@pytest.mark.parametrize(("name", "case"), pairs(("PA", "FW, exact", "PG", "FISTA", "PA, corrective"), REST))
def test_from_a_start_and_with_gaps_in_the_trace(name, case, tmp_path):
    start = np.full(problem(case).shape, 0.1)
    same(*three_runs(PROBLEMS[case], solver(name), BALL, tmp_path, start=start, record=3))


@pytest.mark.parametrize("name", ["PA", "PA, corrective", "FW, exact", "PG"])
def test_matrices_in_a_spectral_set(name, tmp_path):
    def make():
        return Objective(Softmax(), as_data(X, np.arange(60) % 3), fit_intercept=True)

    same(*three_runs(make, solver(name), SchattenBall(1, 1.0), tmp_path))


@pytest.mark.parametrize("every", [1, 2, 7])
@pytest.mark.parametrize("name", ["PA", "FW, exact", "PG, single"])
def test_every_so_often(name, every, tmp_path):
    """Each state can be the one that is saved, also that of the first iteration."""
    runs = [
        minimize(
            problem("sigmoid, intercept"), BALL, solver(name), max_iter=n, tol=0.0, state=state, callbacks=callbacks
        )
        for n, state, callbacks in (
            (9, None, [Checkpoint(tmp_path / "a", every)]),
            (8, None, [Checkpoint(tmp_path / "b", every)]),
            (9, tmp_path / "b", [Checkpoint(tmp_path / "b", every)]),
        )
    ]
    same(runs[0], runs[2])


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


def test_written_when_due(tmp_path):
    squares(tmp_path / "a", every=6, n=5)
    assert not (tmp_path / "a").exists()
    squares(tmp_path / "a", every=6, n=7)
    assert persist.load(tmp_path / "a", kind="projfree checkpoint")["state"]["t"] == 6


def test_the_books_are_kept(tmp_path):
    """What has been read and the smallest gap are of the whole run, also after many checkpoints."""
    seen = []
    f = problem("biweight")
    callbacks = [lambda run: seen.append(run.smallest_gap), Checkpoint(tmp_path / "a", 1)]
    result = minimize(f, BALL, FrankWolfe(OpenLoop()), max_iter=6, tol=0.0, callbacks=callbacks)
    assert result.n_passes == f.work / f.rows
    assert np.all(np.diff(result.trace["passes"]) > 0)
    kept = persist.load(tmp_path / "a", kind="projfree checkpoint")
    assert tuple(kept["smallest_gap"]) == seen[-1]
    assert kept["books"]["work"] / f.rows == result.trace["passes"][-1]


def test_other_limits_and_tolerances_may_be_given(tmp_path):
    squares(tmp_path / "a", every=4, n=4)
    result = squares(tmp_path / "a", every=4, n=500, tol=1e-3, state=str(tmp_path / "a"))
    assert result.status is Status.CONVERGED
    assert result.trace["iteration"][3] == 4


OTHER = {
    "data": (Objective(Squared(), as_data(X, Y + 1e-9)), BALL, PrimalAveraging(), "objective"),
    "loss": (Objective(Huber(9.0), as_data(X, Y)), BALL, PrimalAveraging(), "objective"),
    "intercept": (Objective(Squared(), as_data(X, Y), fit_intercept=True), BALL, PrimalAveraging(), "objective"),
    "weights": (Objective(Squared(), as_data(X, Y, np.arange(60))), BALL, PrimalAveraging(), "objective"),
    "radius": (problem("squares"), LpBall(1.5, 2.0), PrimalAveraging(), "set"),
    "exponent": (problem("squares"), LpBall(1.25, 1.0), PrimalAveraging(), "set"),
    "schedule": (problem("squares"), BALL, PrimalAveraging(OpenLoop(4)), "solver"),
    "solver": (problem("squares"), BALL, FrankWolfe(), "solver"),
}


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("f", "ball", "chosen", "part"), OTHER.values(), ids=OTHER)
def test_a_checkpoint_of_another_problem(f, ball, chosen, part, tmp_path):
    folder = tmp_path / "a"
    squares(folder, every=4, n=4)
    before, work = contents(folder), f.work
    sentence = (
        rf"^the checkpoint at .*a is of another problem: its {part} is .*, this one is .*; give the same {part}, or"
    )
    with pytest.raises(ValueError, match=sentence):
        minimize(f, ball, chosen, state=folder, callbacks=[Checkpoint(folder, 1)])
    assert contents(folder) == before
    assert f.work == work


def test_blackboxes_are_told_apart_by_name(tmp_path):
    def bowl(name, **settings):
        f = BlackBox(lambda w: (float(w @ w), 2 * w), 3, name=name)
        return minimize(f, BALL, PrimalAveraging(), max_iter=2, **settings)

    bowl("bowl", start=np.full(3, 0.1), callbacks=[Checkpoint(tmp_path / "a", 1)])
    bowl("bowl", state=tmp_path / "a")
    with pytest.raises(ValueError, match=r"its objective is blackbox \(3,\) bowl, this one is blackbox \(3,\) plate;"):
        bowl("plate", state=tmp_path / "a")


def test_no_checkpoint_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"found no finished save in .*; check the path, or save first\."):
        minimize(problem("squares"), BALL, state=tmp_path / "nowhere")
    persist.save(tmp_path / "model", {"w": np.zeros(4)}, kind="model")
    with pytest.raises(ValueError, match=r"holds a 'model', not a 'projfree checkpoint'; check the path\."):
        minimize(problem("squares"), BALL, state=tmp_path / "model")


def test_a_folder_of_somebody_else_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"holds 'thesis.tex'; choose another path\."):
        minimize(problem("squares"), BALL, callbacks=[Checkpoint(tmp_path, 1)])
    assert contents(tmp_path) == {(tmp_path / "thesis.tex").relative_to(tmp_path): b"mine"}


def test_settings_are_checked(tmp_path):
    with pytest.raises(ValueError, match=r"`Checkpoint\(every=\.\.\.\)` must be a whole number of at least 1, got 0\."):
        Checkpoint(tmp_path, every=0)
    assert replace(Checkpoint(tmp_path), every=3) == Checkpoint(tmp_path, 3)
