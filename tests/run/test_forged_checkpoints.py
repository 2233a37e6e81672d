"""A checkpoint may hold anything: what a resumed run reports is proved anew, and damage is one sentence."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from solvers.catalogue import X, Y

from projfree import (
    Checkpoint,
    ConstrainedNewton,
    Direct,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    PrimalAveraging,
    Squared,
    as_data,
    minimize,
    persist,
)
from projfree.run.checkpoint import KIND

BALL = LpBall(1.5, 1.0)
F = Objective(Squared(), as_data(X, Y), fit_intercept=True)


@pytest.fixture
def written(tmp_path):
    """A checkpoint after twenty iterations, and a way to change it."""
    folder = tmp_path / "state"
    minimize(F, BALL, PrimalAveraging(), tol=0.0, max_iter=20, callbacks=[Checkpoint(folder, 20)])

    def forged(change):
        tree = persist.load(folder, kind=KIND)
        change(tree)
        persist.save(folder, tree, kind=KIND)
        return folder

    return forged


def lift(amount):
    """Bounds, minorants and the solver's own average, all too high."""

    def change(tree):
        tree["ladder"] |= {"bound": tree["ladder"]["bound"] + amount, "witnessed": tree["ladder"]["bound"] + amount}
        for rung in tree["rungs"]:
            rung["m"]["constant"] = np.float64(rung["m"]["constant"] + amount)
        for value in tree["state"].values():
            if isinstance(value, dict) and value.get("type") == "minorant":
                value["constant"] = np.float64(value["constant"] + amount)

    return change


@pytest.mark.parametrize("share", [0.2, 0.9, 5.0])
@pytest.mark.parametrize("iterations", [21, 60])
def test_a_forged_bound_is_not_reported(written, share, iterations):
    best = minimize(F, BALL, tol=1e-12).value
    early = minimize(F, BALL, PrimalAveraging(), tol=0.0, max_iter=20)
    folder = written(lift(share * (early.value - early.bound)))
    resumed = minimize(F, BALL, state=folder, max_iter=iterations, tol=1e-3)
    assert resumed.bound <= best * (1 + 1e-12)
    if resumed.status.converged:
        assert resumed.value - best <= 1e-3 * resumed.value


def test_a_forged_value_at_the_centre_does_not_loosen_the_tolerance(written):
    folder = written(lambda tree: tree["books"].update(centre_value=1e30))
    resumed = minimize(F, BALL, state=folder, max_iter=22, tol=1e-9)
    assert not resumed.status.converged
    assert resumed.relative_gap == pytest.approx(resumed.gap / resumed.value)


def test_a_point_outside_the_set_is_refused(written):
    def change(tree):
        for point in (tree["best"], tree["state"]["x"]):
            point["w"] = 100.0 * np.sign(np.ones(F.shape))
        tree["books"]["value"] = -math.inf

    with pytest.raises(ValueError, match=r"the checkpoint leads to a point outside LpBall"):
        minimize(F, BALL, state=written(change), max_iter=21, tol=1e-3)


DAMAGE = {
    "shape": lambda tree: tree["best"].update(w=np.zeros(3)),
    "not finite": lambda tree: tree["best"].update(w=np.full(F.shape, np.nan)),
    "text": lambda tree: tree["books"].update(seconds="soon"),
    "no ladder": lambda tree: tree.pop("ladder"),
    "a list": lambda tree: tree.update(state=[]),
    "a stranger in the state": lambda tree: tree["state"].update(evil=1),
    "trace": lambda tree: tree.update(trace={"iteration": np.arange(3)}),
    "rungs": lambda tree: tree.update(rungs=[{"m": {"type": "minorant"}, "z": 3}]),
    "point": lambda tree: tree["state"].update(x={"type": "point"}),
    "iteration": lambda tree: tree["state"].update(t=math.nan),  # a run that never ends
    "first iteration": lambda tree: tree["books"].update(first_iteration=math.nan),
    "intercept": lambda tree: tree["state"]["x"].update(intercept=np.full((), np.nan)),
    "constant of a tangent": lambda tree: tree["state"]["m"].update(constant="low"),
    "gradient of a tangent": lambda tree: tree["state"]["m"].update(gradient=None),
    "text in the trace": lambda tree: tree["trace"].update(gap=np.array(["a"] * 20)),
    "a row of no trace": lambda tree: tree.update(rows={"20": 99}),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_every_damage_is_one_sentence(written, change):
    with pytest.raises(ValueError, match=r"^the checkpoint at .*state is damaged"):
        minimize(F, BALL, state=written(change), max_iter=21)


def test_no_attribute_of_the_run_can_be_set_by_the_file(written):
    folder = written(lambda tree: tree["books"].update(f="evil", tol=1e9) or tree["ladder"].update(ball="evil"))
    resumed = minimize(F, BALL, state=folder, max_iter=21, tol=0.0)
    assert not resumed.status.converged


def test_a_tree_that_is_no_run(tmp_path):
    persist.save(tmp_path / "a", ["nothing"], kind=KIND)
    with pytest.raises(ValueError, match=r"is damaged: it holds no run"):
        minimize(F, BALL, FrankWolfe(), state=tmp_path / "a")


def leaves(tree, path=()):
    """The places of all values in a tree."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


DAMAGED = {
    "text": lambda value: np.array(["a"] * np.size(value)) if isinstance(value, np.ndarray) else "a",
    "nothing": lambda value: None,
    "nan": lambda value: value * math.nan if isinstance(value, np.ndarray) else math.nan,
    "shape": lambda value: np.ones((2, 3)),
}


@pytest.mark.parametrize("kind", DAMAGED)
@pytest.mark.parametrize(
    "solver",
    [PrimalAveraging(), *(pytest.param(one, marks=pytest.mark.slow) for one in (Direct(), ConstrainedNewton()))],
    ids=lambda solver: type(solver).__name__,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_damaged_value_anywhere_ends_in_a_sentence_or_in_a_run(solver, kind, tmp_path):
    f = F if isinstance(solver, Direct) else Objective(Logistic(), as_data(X, np.sign(Y)))
    minimize(f, BALL, solver, tol=0.0, max_iter=2, callbacks=[Checkpoint(tmp_path / "a", 1)])
    tree = persist.load(tmp_path / "a", kind=KIND)
    for path, value in leaves({name: tree[name] for name in tree.keys() - {"version", "problem", "solver"}}):
        if "rungs" in path and path[1] > 0:
            continue  # all alike
        *above, last = path
        parent = functools.reduce(lambda part, key: part[key], above, tree)
        parent[last] = DAMAGED[kind](value)
        persist.save(tmp_path / "b", tree, kind=KIND)
        parent[last] = value
        try:
            minimize(f, BALL, solver, tol=0.0, max_iter=3, time_limit=20.0, state=tmp_path / "b")
        except ValueError as error:
            assert "the checkpoint" in str(error), path  # noqa: PT017 - a run may also go on
