"""The numbers that the plan's rules look at."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    BiWeight,
    Box,
    ConstrainedNewton,
    Direct,
    Entries,
    Gamma,
    GroupBall,
    Huber,
    KSupportBall,
    Logistic,
    LpBall,
    Objective,
    Positive,
    ProjectedGradient,
    Relay,
    SchattenBall,
    Softmax,
    Squared,
    Weighted,
    WorkingSet,
    as_data,
    minimize,
    path,
    plan,
)
from projfree.data.tasks import TaskData
from projfree.sets import SETS, OracleSet, WeightedSchattenBall
from projfree.solvers import costs as prices
from projfree.solvers.costs import Costs
from projfree.solvers.rules import RULES
from projfree.testing.sets import fitting


def test_the_plan_counts_the_numbers_that_a_read_meets():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    sparse = sp.csr_array(np.where(X > 1.0, X, 0.0))
    tables = {"dense": X, "single": X.astype(np.float32), "sparse": sparse}
    sizes = {name: Costs(Objective(Squared(), as_data(A, y)), LpBall(2, 1.0)).size for name, A in tables.items()}
    assert sizes == {"dense": 240.0, "single": 240.0, "sparse": float(sparse.nnz)}
    view = Objective(Squared(), as_data(sparse, y, scale=np.full(6, 2.0)))
    assert Costs(view, LpBall(2, 1.0)).size == sparse.nnz
    entries = as_data(Entries([0, 1], [1, 0], (3, 2)), [1.0, 2.0])
    assert Costs(Objective(Squared(), entries), SchattenBall(1.5, 1.0)).size == 6.0


@pytest.mark.parametrize("ball", [GroupBall(1.5, 1.2, 1.0), SchattenBall(1, 1.0), LpBall(2, 1.0)], ids=repr)
def test_tasks_are_projected(ball):
    rng = np.random.default_rng(0)
    X, y, task = rng.standard_normal((40, 3)), rng.standard_normal(40), np.arange(40) % 4
    made = plan(Objective(Squared(), TaskData(X, y, task), fit_intercept=True), ball)
    assert made.solver == AcceleratedProjectedGradient()
    other = plan(Objective(BiWeight(), TaskData(X, y, task)), ball)
    assert other.solver == ProjectedGradient(BacktrackingGradient())


def test_tasks_without_a_projection_and_entries_are_not():
    rng = np.random.default_rng(0)
    data = TaskData(rng.standard_normal((40, 3)), rng.standard_normal(40), np.arange(40) % 4)
    ball = WeightedSchattenBall(1.5, 1.0, np.ones(3), np.ones(4))
    assert "ProjectedGradient" not in repr(plan(Objective(Squared(), data), ball).solver)
    entries = as_data(Entries([0, 1, 2], [1, 0, 1], (3, 2)), [1.0, 2.0, 3.0])
    assert AcceleratedProjectedGradient() not in [
        choice.solver for choice in plan(Objective(Squared(), entries), SchattenBall(1.5, 1.0)).choices
    ]


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
    assert not ball.projects_quickly
    result = minimize(f, ball, max_iter=600)
    assert result.status.converged
    assert ball.norm(result.w) < 0.9 * ball.radius


def test_minima_on_the_boundary_of_such_sets_take_no_slow_projection(monkeypatch):
    """Where features differ in scale, iterates lie inside for a hundred iterations before they get there."""
    rng, groups = np.random.default_rng(1), tuple(np.repeat(np.arange(8), 5).tolist())
    X = rng.standard_normal((400, 40)) * np.geomspace(1.0, 0.01, 40)
    y = X @ rng.standard_normal(40) + 0.3 * rng.standard_normal(400)
    free = np.linalg.lstsq(X, y, rcond=None)[0]
    ball = GroupBall(1.5, 3.0, 0.9 * GroupBall(1.5, 3.0, 1.0, groups).norm(free), groups)
    monkeypatch.setattr(GroupBall, "project", None)
    assert minimize(Objective(Squared(), as_data(X, y)), ball, tol=1e-4).status.converged


@pytest.mark.parametrize("p", [1, 2])
def test_a_path_of_squares_on_few_features_forms_one_gram_matrix(p):
    rng = np.random.default_rng(0)
    X = sp.random_array((100_000, 400), density=0.02, rng=rng, data_sampler=rng.standard_normal).tocsr()
    f = Objective(
        Squared(), as_data(X, X @ rng.standard_normal(400) + rng.standard_normal(100_000)), fit_intercept=True
    )
    assert plan(f, LpBall(p, 1.0)).solver != Direct()  # for one radius it would not pay
    assert plan(f, LpBall(p, 1.0), radii=20).solver == Direct()
    found = path(f, LpBall(p, 1.0), np.geomspace(0.5, 5.0, 20), record=0)
    assert all(result.status.converged for result in found.results)
    assert all(result.solver == Direct() for result in found.results)


def kinds_of_problems():
    rng = np.random.default_rng(0)
    for n, d, k in ((60, 4, 1), (60, 250, 1), (20_000, 3, 1), (60, 4, 5)):
        X = rng.standard_normal((n, d))
        scores = X @ rng.standard_normal((d, k))
        y = scores[:, 0] if k == 1 else scores
        for loss, targets in ((Squared(), y), (Logistic(), np.sign(y)), (BiWeight(), y)):
            for intercept in (False, True):
                yield Objective(loss, as_data(X, targets), fit_intercept=intercept)
        if k > 1:
            yield Objective(Softmax(k), as_data(X, scores.argmax(axis=1)), fit_intercept=True)
    yield Objective(Squared(), as_data(Entries([0, 1, 2], [1, 0, 1], (3, 2)), [1.0, 2.0, 3.0]))


def sets_of(shape):
    yield from (LpBall(p, 1.0) for p in (1, 1.3, 2, 4, np.inf))
    yield KSupportBall(2, 1.0)
    if len(shape) == 2:
        yield from (GroupBall(2, 1, 1.0), SchattenBall(1, 1.0), SchattenBall(2, 1.0))


def test_no_rule_that_was_not_asked_would_have_been_chosen():
    for f in kinds_of_problems():
        for ball in sets_of(f.shape):
            for radii in (1, 20):
                made, costs = plan(f, ball, radii=radii), Costs(f, ball, radii)
                assert made.solver == made.choices[0].solver
                for rule, tangents in RULES.items():
                    choice = rule(costs)
                    assert choice is None or choice.work >= tangents * costs.tangent


@pytest.mark.parametrize("radius", [0.5, 10.0, 1_000.0])
def test_the_k_support_ball_has_models(radius):
    """Averages of vertices took half a minute where the minimum is inside, which no vertex is near."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))
    y = rng.gamma(2.0, np.exp(0.3 * X @ rng.standard_normal(20)))
    f, ball = Objective(Gamma(), as_data(X, y)), KSupportBall(5, radius)
    assert plan(f, ball).solver == ConstrainedNewton()
    result = minimize(f, ball, tol=1e-6)
    assert result.status.converged
    assert result.n_passes <= 60


@pytest.mark.parametrize("p", [1.5, 3.0, np.inf])
def test_groups_of_any_norm_go_to_working_sets_where_these_take_the_fewest_reads(p):
    rng = np.random.default_rng(1)
    X, W = rng.standard_normal((400, 60)), np.zeros((60, 5))
    W[:4] = rng.standard_normal((4, 5))
    f, ball = Objective(Squared(), as_data(X, X @ W + rng.standard_normal((400, 5)))), GroupBall(p, 1, 3.0)
    made = plan(f, ball)
    assert isinstance(made.solver, Relay)
    assert isinstance(made.solver.first, WorkingSet)
    chosen = minimize(f, ball, tol=1e-6)
    assert chosen.status.converged
    for choice in made.choices[1:3]:
        other = minimize(f, ball, choice.solver, tol=1e-6, max_iter=300)
        assert chosen.n_passes < other.n_passes
        assert max(chosen.bound, other.bound) <= min(chosen.value, other.value)


def test_a_plan_is_a_value_and_keeps_no_rows():
    X = np.random.default_rng(0).standard_normal((5_000, 4))
    made = [plan(Objective(Squared(), as_data(X, X[:, 0])), LpBall(2, 1.0)) for _ in range(2)]
    assert made[0] == made[1]
    assert hash(made[0]) == hash(made[1])
    assert made[0] != plan(Objective(Squared(), as_data(X, X[:, 0])), LpBall(2, 2.0))
    read = pickle.loads(pickle.dumps(made[0]))
    assert read == made[0]
    assert read.explain() == made[0].explain()
    assert len(pickle.dumps(made[0])) < 5_000


def plans(ball):
    """A plan of a quadratic and one of rows for each shape that fits the set."""
    rng = np.random.default_rng(0)
    for shape in fitting(ball):
        X, y = rng.standard_normal((20, shape[0])), rng.standard_normal((20, *shape[1:]))
        for loss in (Squared(), Huber(0.5)):
            f = Objective(loss, as_data(X, y), fit_intercept=True)
            yield plan(f, ball), plan(f, copy.deepcopy(ball))


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.__name__)
def test_plans_are_values(kind):
    """Whatever the set holds, equal problems have equal plans, and the solver is that of the first choice."""
    for ball in kind.examples():
        for made, again in plans(ball):
            assert made.solver == made.choices[0].solver
            if kind is OracleSet:  # made of functions, of which nobody knows whether they are equal
                assert made == made.__class__(made.costs, made.tol, made.budget, made.solver)
                continue
            assert made == again == pickle.loads(pickle.dumps(made))
            assert hash(made) == hash(again)


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.__name__)
def test_sets_are_values(kind):
    balls = kind.examples()
    for i, ball in enumerate(balls):
        assert [ball == other for other in balls] == [j == i for j in range(len(balls))]
        assert ball != "a ball"
        if kind is not OracleSet:
            assert copy.deepcopy(ball) == ball
            assert len({ball, copy.deepcopy(ball)}) == 1


def test_sets_with_other_arrays_differ():
    weights = np.array([1.0, 2.0, 3.0])
    one, other = Weighted(LpBall(2, 1.0), weights), Weighted(LpBall(2, 1.0), weights + 1e-15)
    assert one != other
    assert Positive(one) != Positive(other)
    assert Positive(one) == Positive(Weighted(LpBall(2, 1.0), weights.copy()))
    assert Box(-1.0, 1.0) == Box(-1.0, 1.0) != Box(-1.0, 2.0)
    assert len({Box(-1.0, 1.0), Box(-1.0, 1.0), Box(np.zeros(3), np.ones(3))}) == 2


@pytest.mark.parametrize("price", ["TANGENT", "SEARCH", "LEAST_READ", "MODEL_FLOPS", "ORACLE", "PROJECTION"])
def test_another_price_is_in_all_numbers_of_a_problem_that_is_priced_anew(price, monkeypatch):
    """The fit of the prices changes them after the problems were made."""
    X = np.random.default_rng(0).standard_normal((30, 4))
    made = Costs(Objective(Logistic(), as_data(X, np.sign(X[:, 0])), fit_intercept=True), LpBall(2, 1.0))

    def numbers(costs):
        return costs.span, costs.tangent, costs.product, costs.search, costs.model_work, costs.oracle, costs.projection

    before = numbers(made)
    monkeypatch.setattr(prices, price, 3.0 * getattr(prices, price))
    assert numbers(made) == before
    assert numbers(made.repriced()) == numbers(
        Costs(Objective(Logistic(), as_data(X, np.sign(X[:, 0])), True), made.ball)
    )
    assert numbers(made.repriced()) != before
    assert made.repriced() == made
