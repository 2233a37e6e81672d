"""Checkpoints of other problems, other kinds of folders: a sentence, and nothing is touched."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.catalogue import X, Y, counted, problem

from projfree import (
    BlackBox,
    Checkpoint,
    FrankWolfe,
    Huber,
    LpBall,
    Objective,
    OpenLoop,
    OracleSet,
    PrimalAveraging,
    Squared,
    as_data,
    minimize,
    persist,
)

BALL = LpBall(1.5, 1.0)
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
    minimize(problem("squares"), BALL, PrimalAveraging(), max_iter=4, tol=0.0, callbacks=[Checkpoint(folder, 4)])
    before, (f, passes) = contents(folder), counted(f.open())
    sentence = rf"^the checkpoint at .*a is of another problem: its {part} (is .*, this one is|has other numbers)"
    with pytest.raises(ValueError, match=sentence):
        minimize(f, ball, chosen, state=folder, callbacks=[Checkpoint(folder, 1)])
    assert contents(folder) == before
    assert passes() == 0


def test_blackboxes_are_told_apart_by_name(tmp_path):
    def bowl(name, **settings):
        f = BlackBox(lambda w: (float(w @ w), 2 * w), 3, name=name, convex=True)
        return minimize(f, BALL, PrimalAveraging(), max_iter=2, **settings)

    bowl("bowl", start=np.full(3, 0.1), callbacks=[Checkpoint(tmp_path / "a", 1)])
    bowl("bowl", state=tmp_path / "a")
    with pytest.raises(ValueError, match=r"its objective is blackbox \(3,\) bowl, this one is blackbox \(3,\) plate;"):
        bowl("plate", state=tmp_path / "a")


def test_functions_and_sets_without_a_name_are_all_different(tmp_path):
    """Their averages of tangents bound no other function, and nothing but the object itself tells them apart."""

    def bowl():
        return BlackBox(lambda w: (float(w @ w), 2 * w), 3, convex=True)

    f, start = bowl(), np.full(3, 0.1)
    result = minimize(f, BALL, PrimalAveraging(), max_iter=2, start=start, callbacks=[Checkpoint(tmp_path / "a", 1)])
    minimize(f, BALL, PrimalAveraging(), max_iter=4, state=result.state)
    for state in (result.state, tmp_path / "a"):
        with pytest.raises(ValueError, match=r"is of another problem: its objective is blackbox \(3,\) without a name"):
            minimize(bowl(), BALL, PrimalAveraging(), state=state)
    sets = [OracleSet(BALL.lmo, BALL.support, contains=BALL.contains) for _ in range(2)]
    state = minimize(problem("squares"), sets[0], PrimalAveraging(), max_iter=2).state
    with pytest.raises(ValueError, match=r"is of another problem: its set is OracleSet without a name"):
        minimize(problem("squares"), sets[1], PrimalAveraging(), state=state)


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
