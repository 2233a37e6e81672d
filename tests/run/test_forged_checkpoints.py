"""A checkpoint may hold anything: what a resumed run reports is proved anew, and damage is one sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solvers.catalogue import X, Y

from projfree import (
    Checkpoint,
    Entries,
    FrankWolfe,
    LpBall,
    Objective,
    PrimalAveraging,
    SchattenBall,
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
        tree["lower_bound"] |= {
            "bound": tree["lower_bound"]["bound"] + amount,
            "witnessed": tree["lower_bound"]["bound"] + amount,
        }
        for m, _ in tree["lower_bound"]["averages"]:
            m["constant"] = np.float64(m["constant"] + amount)
        tree["state"]["m"]["constant"] = np.float64(tree["state"]["m"]["constant"] + amount)

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
    folder = written(lambda tree: tree["run"].update(centre_value=1e30))
    resumed = minimize(F, BALL, state=folder, max_iter=22, tol=1e-9)
    assert not resumed.status.converged
    assert resumed.relative_gap == pytest.approx(resumed.gap / resumed.value)


def test_a_point_outside_the_set_is_refused(written):
    def change(tree):
        for point in (tree["run"]["best"], tree["state"]["x"]):
            point["w"] = 100.0 * np.sign(np.ones(F.shape))
        tree["run"]["value"] = -math.inf

    with pytest.raises(ValueError, match=r"the checkpoint leads to a point outside LpBall"):
        minimize(F, BALL, state=written(change), max_iter=21, tol=1e-3)


DAMAGE = {
    "shape": lambda tree: tree["run"]["best"].update(w=np.zeros(3)),
    "not finite": lambda tree: tree["run"]["best"].update(w=np.full(F.shape, np.nan)),
    "text": lambda tree: tree["run"].update(seconds="soon"),
    "no bounds": lambda tree: tree.pop("lower_bound"),
    "a list": lambda tree: tree.update(state=[]),
    "trace": lambda tree: tree.update(trace={"iteration": np.arange(3)}),
    "averages": lambda tree: tree["lower_bound"].update(averages=[({}, 3)] * 3),
    "too few averages": lambda tree: tree["lower_bound"]["averages"].pop(),
    "a complex step": lambda tree: tree["state"].update(gamma=np.complex128(1j)),
    "another class of states": lambda tree: tree.update({"class": "Popen"}),
    "point": lambda tree: tree["state"].update(x={"type": "Point"}),
    "iteration": lambda tree: tree["state"].update(t=math.nan),  # a run that never ends
    "first iteration": lambda tree: tree["run"].update(first_iteration=math.nan),
    "text in the trace": lambda tree: tree["trace"].update(gap=np.array(["a"] * 20)),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_every_damage_is_one_sentence(written, change):
    with pytest.raises(ValueError, match=r"^the checkpoint at .*state is damaged"):
        minimize(F, BALL, state=written(change), max_iter=21)


def test_a_tree_that_is_no_run(tmp_path):
    persist.save(tmp_path / "a", ["nothing"], kind=KIND)
    with pytest.raises(ValueError, match=r"is damaged: it holds no run"):
        minimize(F, BALL, FrankWolfe(), state=tmp_path / "a")


def ratings():
    rng = np.random.default_rng(0)
    places = rng.permutation(40 * 30)[:300]
    return as_data(Entries(places // 30, places % 30, (40, 30), factored=True), rng.standard_normal(300))


PARTS = {
    "a row less": lambda w: w.update(left=w["left"][:-1]),
    "a column less": lambda w: w.update(right=w["right"][:, :-1]),
    "not finite": lambda w: w.update(left=w["left"] * math.nan),
    "text": lambda w: w.update(right=np.array(["a"])),
    "another shape": lambda w: w.update(shape=[30, 40]),
}


@pytest.mark.parametrize("change", PARTS.values(), ids=PARTS)
def test_factors_of_another_matrix_are_refused(change, tmp_path):
    f, ball = Objective(Squared(), ratings()), SchattenBall(1, radius=5.0)
    minimize(f, ball, FrankWolfe(), tol=0.0, max_iter=3, callbacks=[Checkpoint(tmp_path, 1)])
    tree = persist.load(tmp_path, kind=KIND)
    change(tree["state"]["x"]["w"])
    persist.save(tmp_path, tree, kind=KIND)
    with pytest.raises(ValueError, match=r"^the checkpoint at .* is damaged"):
        minimize(f, ball, FrankWolfe(), tol=0.0, max_iter=4, state=tmp_path)
