"""`plan`: the solver for each kind of problem, and the memory that it may use."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from sets.examples import examples

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    BiWeight,
    ConstrainedNewton,
    CorrectivePrimalAveraging,
    Direct,
    FrankWolfe,
    GroupBall,
    HessianFreeNewton,
    Logistic,
    LpBall,
    Objective,
    ProjectedGradient,
    SchattenBall,
    Squared,
    WorkingSet,
    as_data,
    minimize,
    path,
    plan,
)
from projfree.data.sparse import TaskData
from projfree.sets import SETS, OracleSet
from projfree.solvers import choose


@pytest.mark.parametrize("ball", [GroupBall(1.5, 1.2, 1.0), SchattenBall(1, 1.0), LpBall(2, 1.0)], ids=repr)
def test_tasks_are_projected(ball):
    rng = np.random.default_rng(0)
    X, y, task = rng.standard_normal((40, 3)), rng.standard_normal(40), np.arange(40) % 4
    made = plan(Objective(Squared(), TaskData(X, y, task), fit_intercept=True), ball)
    assert made.solver == AcceleratedProjectedGradient()
    other = plan(Objective(BiWeight(), TaskData(X, y, task)), ball)
    assert other.solver == ProjectedGradient(BacktrackingGradient())


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_small_tables_of_many_scales_are_solved_exactly_at_every_tolerance(loss, tol):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 60)) * 10.0 ** rng.integers(-3, 4, 60)
    y = X @ (np.arange(60) < 3) + rng.standard_normal(20)
    f = Objective(loss, as_data(X, y if loss == Squared() else np.sign(y)))
    result = minimize(f, LpBall(1, 2.0), tol=tol)
    assert result.status.converged
    assert result.n_passes <= 100  # a thousand times as many for first-order methods


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("exponents", [(1.5, 3.0), (1.0, 2.0)])
def test_minima_inside_sets_with_slow_projections_are_reached(exponents, loss):
    """Averages of vertices would take tens of thousands of iterations."""
    rng, groups = np.random.default_rng(0), tuple(np.repeat(np.arange(3), 4).tolist())
    X = rng.standard_normal((300, 12))
    y = X @ rng.standard_normal(12) + 3.0 * rng.standard_normal(300)
    f = Objective(loss, as_data(X, y if loss == Squared() else np.sign(y)))
    ball = GroupBall(*exponents, 30.0, groups)
    assert ball.structure(f.shape).projection == "slow"
    result = minimize(f, ball, max_iter=600)
    assert result.status.converged
    assert ball.norm(result.w) < 0.9 * ball.radius


@pytest.mark.parametrize("p", [1, 2])
def test_a_path_of_squares_on_few_features_forms_one_gram_matrix(p):
    rng = np.random.default_rng(0)
    X = sp.random_array((100_000, 400), density=0.02, rng=rng, data_sampler=rng.standard_normal).tocsr()
    f = Objective(
        Squared(), as_data(X, X @ rng.standard_normal(400) + rng.standard_normal(100_000)), fit_intercept=True
    )
    assert p == 1 or plan(f, LpBall(p, 1.0)).solver != Direct()  # for one radius it would not pay
    assert plan(f, LpBall(p, 1.0), radii=20).solver == Direct()
    found = path(f, LpBall(p, 1.0), np.geomspace(0.5, 5.0, 20), record=0)
    assert all(result.status.converged for result in found.results)
    assert all(result.solver == Direct() for result in found.results)


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.__name__)
def test_sets_are_values(kind):
    balls = examples(kind)
    for i, ball in enumerate(balls):
        assert [ball == other for other in balls] == [j == i for j in range(len(balls))]
        assert ball != "a ball"
        if kind is not OracleSet:
            assert copy.deepcopy(ball) == ball
            assert len({ball, copy.deepcopy(ball)}) == 1


def table(n, d):
    X = np.random.default_rng(0).standard_normal((n, d))
    return as_data(X, np.sign(X[:, 0]))


SQUARES, LOGISTIC, BENT = (
    (lambda d, loss=loss: Objective(loss, table(300, d))) for loss in (Squared(), Logistic(), BiWeight())
)


@pytest.mark.parametrize(
    ("f", "ball", "solver"),
    [
        (SQUARES, LpBall(1.5, 1.0), {50: Direct, 250: HessianFreeNewton}),
        (SQUARES, LpBall(np.inf, 1.0), {50: Direct, 250: Direct}),
        (SQUARES, LpBall(1, 1.0), {50: Direct, 2_500: WorkingSet}),
        (LOGISTIC, LpBall(1, 1.0), {50: ConstrainedNewton, 250: WorkingSet}),
        (
            LOGISTIC,
            LpBall(2, 1.0),
            {50: ConstrainedNewton, 250: HessianFreeNewton},
        ),
        (LOGISTIC, LpBall(3, 1.0), {250: ConstrainedNewton}),
        (LOGISTIC, LpBall(3, 1.0), {2_500: AcceleratedProjectedGradient}),
        (BENT, LpBall(2, 1.0), {50: ConstrainedNewton, 2_500: FrankWolfe}),
        (
            LOGISTIC,
            OracleSet(LpBall(2, 1.0).lmo),
            {50: CorrectivePrimalAveraging},
        ),
    ],
)
def test_structure_and_size_decide(f, ball, solver):
    for d, kind in solver.items():
        made = plan(f(d), ball)
        assert type(made.solver) is kind
        assert made.explain() == f"{made.problem}\n  {made.solver!r}: {made.why}"


def test_matrices_that_do_not_fit_are_not_formed(monkeypatch):
    squares, logistic = Objective(Squared(), table(300, 100)), Objective(Logistic(), table(300, 100))
    monkeypatch.setenv("PROJFREE_MEMORY", str(7 * 8 * 100 * 100))
    assert plan(squares, LpBall(1.5, 1.0)).solver == Direct()
    assert plan(logistic, LpBall(1.5, 1.0)).solver == ConstrainedNewton()
    monkeypatch.setenv("PROJFREE_MEMORY", str(7 * 8 * 100 * 100 - 1))
    for f in (squares, logistic):
        assert plan(f, LpBall(1.5, 1.0)).solver == HessianFreeNewton()
        assert minimize(f, LpBall(1.5, 1.0)).status.converged


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), (" 1.5 gb ", 1_500_000_000), ("512MiB", 512 << 20), ("1000", 1000), (".5KB", 500), ("7B", 7)],
)
def test_memory_limits(monkeypatch, text, size):
    monkeypatch.setenv("PROJFREE_MEMORY", text)
    assert choose.memory_limit() == size


@pytest.mark.parametrize("text", ["much", "-4GB", "0", "4 XB", "1e9", "GB", "4GB 2", "nan"])
def test_bad_memory_limits(monkeypatch, text):
    monkeypatch.setenv("PROJFREE_MEMORY", text)
    with pytest.raises(ValueError, match=rf"PROJFREE_MEMORY must be a positive number of bytes.*got '{text}'; correct"):
        choose.memory_limit()
