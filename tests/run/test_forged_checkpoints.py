"""A checkpoint may hold anything: what a resumed run reports is proved anew, and damage is one sentence."""

from __future__ import annotations

import functools
import math
import os

import numpy as np
import pytest
from solvers.catalogue import X, Y

from projfree import (
    AcceleratedProjectedGradient,
    Backtracking,
    BacktrackingGradient,
    Checkpoint,
    ConstrainedNewton,
    Direct,
    Entries,
    FrankWolfe,
    HessianFreeNewton,
    Logistic,
    LpBall,
    Objective,
    PairwiseFrankWolfe,
    PrimalAveraging,
    Relay,
    SchattenBall,
    Squared,
    TrustRegionLanczos,
    WorkingSet,
    as_data,
    minimize,
    persist,
)
from projfree.completion.alternating import Alternating
from projfree.completion.offsets import OffsetObjective
from projfree.run.checkpoint import KIND
from projfree.sets import WeightedSchattenBall

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


def on_arrays(change):
    """A forgery of an array; numbers and what is not there get one of their own."""
    return lambda value: change(value) if isinstance(value, np.ndarray) and value.ndim else np.full((2, 3), 1.0)


FORGED = {
    "text": lambda value: np.array(["a"] * np.size(value)) if isinstance(value, np.ndarray) else "a",
    "nothing": lambda value: None,
    "nan": lambda value: value * math.nan if isinstance(value, np.ndarray) else math.nan,
    "shape": lambda value: np.ones((2, 3)),
    "one less": on_arrays(lambda value: value[:-1]),
    "one axis more": on_arrays(lambda value: value[None]),
    "below zero": lambda value: -1 - value if isinstance(value, int | float | np.ndarray) else -1,
    "large": lambda value: value * 0 + 10**12 if isinstance(value, int | float | np.ndarray) else 10**12,
    "beyond floats": lambda value: 10**400,
    "complex": lambda value: value * 1j if isinstance(value, np.ndarray) and value.ndim else np.complex128(1j),
    "number": lambda value: 3.0,
    "flag": lambda value: value > 0 if isinstance(value, np.ndarray) else True,
}
EUCLIDEAN, FLAT = LpBall(2, 0.3), LpBall(1, 0.5)
LOGISTIC = Objective(Logistic(), as_data(X, np.sign(Y)), fit_intercept=True)
SHAPE = (12, 9)
PLACES = np.random.default_rng(0).permutation(math.prod(SHAPE))[:60]
ENTRIES = Entries(*divmod(PLACES, SHAPE[1]), SHAPE, factored=True)
RATINGS = Objective(Squared(), as_data(ENTRIES, np.random.default_rng(1).standard_normal(60)))
OFFSETS = OffsetObjective(Squared(), RATINGS.data, base=0.1)
STATES = {
    "averages": (LOGISTIC, BALL, PrimalAveraging()),
    "vertices": (LOGISTIC, BALL, FrankWolfe(Backtracking())),
    "active set": (F, FLAT, PairwiseFrankWolfe()),
    "momentum": (LOGISTIC, BALL, AcceleratedProjectedGradient(BacktrackingGradient())),
    "Hessian": (LOGISTIC, BALL, ConstrainedNewton()),
    "products": (LOGISTIC, BALL, HessianFreeNewton()),
    "form": (F, BALL, Direct()),
    "Krylov space": (F, EUCLIDEAN, TrustRegionLanczos()),
    "features": (F, FLAT, WorkingSet(smallest=2)),
    "first of two": (LOGISTIC, BALL, Relay(after=5)),
    "second of two": (LOGISTIC, BALL, Relay(after=1)),
    "factors": (RATINGS, SchattenBall(1, radius=1.0), FrankWolfe()),
    "sweeps": (OFFSETS, WeightedSchattenBall(1.0, 1.0, *map(np.ones, SHAPE)), Alternating(rank=2)),
}


@functools.cache
def minimum(case):
    f, ball, _ = STATES[case]
    return minimize(f, ball, tol=1e-8 if ball.spectral else 1e-13).value


def forgeries(tree, kind):
    """Trees with one value forged, by the place of the value."""
    for path, value in leaves({name: tree[name] for name in tree.keys() - {"version", "problem", "solver"}}):
        if "rungs" in path and path[1] > 0:
            continue  # all alike
        *above, last = path
        parent = functools.reduce(lambda part, key: part[key], above, tree)
        parent[last] = FORGED[kind](value)
        yield path
        parent[last] = value


@pytest.mark.parametrize("kind", FORGED)
@pytest.mark.parametrize("case", STATES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_forged_member_ends_in_a_sentence_or_in_a_proof(case, kind, tmp_path, monkeypatch):
    """Members of the state of every solver, and for one of them whatever else a checkpoint holds."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    f, ball, solver = STATES[case]
    minimize(f, ball, solver, tol=0.0, max_iter=2, callbacks=[Checkpoint(tmp_path / "a", 1)])
    tree = persist.load(tmp_path / "a", kind=KIND)
    forged = tree if case == "averages" else {"state": tree["state"]}
    for path in forgeries(forged, kind):
        persist.save(tmp_path / "b", tree, kind=KIND)
        try:
            found = minimize(f, ball, solver, tol=0.0, max_iter=4, time_limit=20.0, state=tmp_path / "b")
        except ValueError as error:
            assert "the checkpoint" in str(error), path  # noqa: PT017 - a run may also go on
        else:
            proved(found, f, ball, minimum(case), path)


def proved(found, f, ball, best, path):
    """The point is in the set and has its value, and the bound is one."""
    assert ball.contains(found.w), path
    assert f.value(f.point(found.w, found.intercept)) == pytest.approx(found.value, rel=1e-12), path
    assert found.bound <= best * (1 + 1e-12), path
    assert found.n_iter <= 4, path


REFUSED = {
    "a number as iterate": ("averages", lambda tree: tree["state"].update(x=3.0)),
    "another iteration": ("averages", lambda tree: tree["state"].update(t=10**12)),
    "more iterations than floats count": (
        "averages",
        lambda tree: (tree["state"].update(t=10**400), tree["books"].update(first_iteration=10**400 - 2)),
    ),
    "more rows than floats count": ("averages", lambda tree: tree["books"].update(work=10**400)),
    "a number as best point": ("averages", lambda tree: tree.update(best=1.0)),
    "a row from the end": ("averages", lambda tree: tree.update(rows={"2": -1})),
    "a row of another iteration": ("averages", lambda tree: tree.update(rows={"2": 0})),
    "an average less": ("averages", lambda tree: tree["rungs"].pop()),
    "shape of an intercept": ("averages", lambda tree: tree["state"]["x"].update(intercept=np.zeros(3))),
    "a complex step": ("averages", lambda tree: tree["state"].update(gamma=np.complex128(1j))),
    "solver of a relay": ("first of two", lambda tree: tree["state"].update(leg=7)),
    "length of a diagonal": ("Krylov space", lambda tree: tree["state"].update(alpha=np.zeros(7))),
    "no basis": ("Krylov space", lambda tree: tree["state"].update(Q=np.zeros((0, 4)))),
    "features beyond": ("features", lambda tree: tree["state"].update(features=np.array([0, 99]), H=None)),
    "features twice": ("features", lambda tree: tree["state"].update(features=np.array([1, 1]), H=None)),
    "scale of other features": ("products", lambda tree: tree["state"].update(diagonal=np.ones(3))),
    "factors of another size": ("sweeps", lambda tree: tree["state"]["x"]["w"].update(right=np.full((9, 2), 1e12))),
    "singular values of another matrix": ("sweeps", lambda tree: tree["state"].update(sigma=np.full(2, 1e-3))),
    "momentum below one": ("momentum", lambda tree: tree["state"].update(theta=0.5)),
    "a bound of the last step": ("averages", lambda tree: tree["state"].update(bound=1e9)),
}


@pytest.mark.parametrize(("case", "change"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_state_is_refused(case, change, tmp_path):
    f, ball, solver = STATES[case]
    minimize(f, ball, solver, tol=0.0, max_iter=2, callbacks=[Checkpoint(tmp_path, 1)])
    tree = persist.load(tmp_path, kind=KIND)
    change(tree)
    persist.save(tmp_path, tree, kind=KIND)
    with pytest.raises(
        ValueError, match=r"^the checkpoint at .* is damaged .*begin anew with this folder removed, or with another one"
    ):
        minimize(f, ball, solver, tol=0.0, max_iter=4, state=tmp_path)


def test_numbers_that_lead_beyond_the_range_of_floats(tmp_path):
    f, ball, solver = STATES["sweeps"]
    minimize(f, ball, solver, tol=0.0, max_iter=2, callbacks=[Checkpoint(tmp_path, 1)])
    tree = persist.load(tmp_path, kind=KIND)
    tree["state"]["x"]["intercept"][:] = 1e12
    persist.save(tmp_path, tree, kind=KIND)
    sentence = r"^the checkpoint leads to a step that fails \(`w` must be finite.*\); restore it .* or begin anew"
    with pytest.raises(ValueError, match=sentence), np.errstate(all="ignore"):
        minimize(f, ball, solver, tol=0.0, max_iter=4, state=tmp_path)


PARTS = {
    "a row less": lambda w: w.update(left=w["left"][:-1]),
    "a column less": lambda w: w.update(right=w["right"][:, :-1]),
    "not finite": lambda w: w.update(left=w["left"] * math.nan),
    "text": lambda w: w.update(right=np.array(["a"])),
    "another shape": lambda w: w.update(shape=[30, 40]),
}


@pytest.mark.parametrize("change", PARTS.values(), ids=PARTS)
def test_factors_of_another_matrix_are_refused(change, tmp_path):
    rng = np.random.default_rng(0)
    places = rng.permutation(40 * 30)[:300]
    entries = Entries(places // 30, places % 30, (40, 30), factored=True)
    f, ball = Objective(Squared(), as_data(entries, rng.standard_normal(300))), SchattenBall(1, radius=5.0)
    minimize(f, ball, FrankWolfe(), tol=0.0, max_iter=3, callbacks=[Checkpoint(tmp_path, 1)])
    tree = persist.load(tmp_path, kind=KIND)
    change(tree["state"]["x"]["w"])
    persist.save(tmp_path, tree, kind=KIND)
    with pytest.raises(ValueError, match=r"^the checkpoint at .* is damaged"):
        minimize(f, ball, FrankWolfe(), tol=0.0, max_iter=4, state=tmp_path)
