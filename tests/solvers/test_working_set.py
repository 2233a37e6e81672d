"""`WorkingSet`: the minimum among few features, proved for all."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    AcceleratedProjectedGradient,
    BacktrackingGradient,
    Checkpoint,
    FrankWolfe,
    GroupBall,
    HessianFreeNewton,
    Huber,
    Logistic,
    LpBall,
    Objective,
    Perturbed,
    Positive,
    QuadraticForm,
    Relay,
    Simplex,
    Softmax,
    Squared,
    Status,
    Weighted,
    WorkingSet,
    as_data,
    minimize,
)
from projfree.data.columns import Columns
from projfree.numerics import symmetric
from projfree.sets import WithFree
from projfree.solvers import working_set
from projfree.testing import SealedData

N, D = 60, 150
RNG = np.random.default_rng(4)
DENSE = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.2)
TRUE = np.where(np.arange(D) < 5, 2.0, 0.0)
Y = DENSE @ TRUE + 0.3 * RNG.standard_normal(N)
WEIGHT = RNG.uniform(0.0, 2.0, N)
COSTS = RNG.uniform(0.5, 2.0, D)
LABELS = tuple(np.arange(D) // 5)
BALLS = {
    "l_1": LpBall(1, 3.0),
    "weighted": Weighted(LpBall(1, 3.0), COSTS),
    "positive": Positive(LpBall(1, 3.0)),
    "simplex": Simplex(4.0),
    "groups": GroupBall(2, 1, 2.0, LABELS),
}
LOSSES = {"squared": (Squared(), Y), "logistic": (Logistic(), np.sign(Y)), "huber": (Huber(0.5), Y)}
ACCELERATED = AcceleratedProjectedGradient(BacktrackingGradient())


def objective(loss, X=DENSE, *, intercept=False, weight=None):
    kind, y = LOSSES[loss]
    return Objective(kind, as_data(X, y, weight), fit_intercept=intercept)


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("smallest", [4, 100])
def test_it_certifies_what_other_methods_find(ball, loss, intercept, smallest):
    f = objective(loss, sp.csr_array(DENSE), intercept=intercept, weight=WEIGHT)
    result = minimize(f, BALLS[ball], WorkingSet(smallest), tol=1e-9, max_iter=60)
    other = minimize(f, BALLS[ball], ACCELERATED, tol=1e-6, max_iter=3000)
    assert result.status.converged, result
    assert BALLS[ball].contains(result.w)
    assert result.bound <= other.value
    assert other.bound <= result.value
    assert result.certificate.verify(sp.csr_array(DENSE), LOSSES[loss][1], WEIGHT).ok


@pytest.fixture
def unformed(monkeypatch):
    """Products of features are never formed where their columns are at hand."""
    monkeypatch.setattr(working_set, "MOST_FORMED", 0)


@pytest.mark.usefixtures("unformed")
@pytest.mark.parametrize("ball", ["l_1", "weighted", "positive", "simplex"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_columns_whose_products_are_not_formed_give_the_same(ball, loss, intercept, scale, monkeypatch):
    kind, y = LOSSES[loss]
    f = Objective(kind, as_data(sp.csr_array(DENSE), y, WEIGHT, scale=scale), fit_intercept=intercept)
    assert f.has_columns
    expected = minimize(f.open(), BALLS[ball], ACCELERATED, tol=1e-6, max_iter=3000)
    monkeypatch.setattr(Objective, "hessian_among", lambda *_: pytest.fail("formed"))
    result = minimize(f, BALLS[ball], WorkingSet(30), tol=1e-9, max_iter=100)
    assert result.status.converged, result
    assert result.bound <= expected.value
    assert expected.bound <= result.value


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("storage", ["sorted", "unsorted", "scaled"])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_products_with_columns_are_those_of_the_hessian(centred, storage, outputs):
    X = sp.csr_array(DENSE)
    if storage == "unsorted":
        turned = np.lexsort((-X.indices, np.repeat(np.arange(N), np.diff(X.indptr))))
        X = sp.csr_array((X.data[turned], X.indices[turned], X.indptr), shape=X.shape)
        assert not X.has_sorted_indices
    y = Y if not outputs else np.column_stack([Y, -Y])
    f = Objective(Squared(), as_data(X, y, WEIGHT, scale=storage == "scaled"), fit_intercept=centred)
    x, features = f.point(np.zeros(f.shape)), np.array([2, 3, 11, 90, 149])
    found, H = f.column_products(x, features), f.hessian_among(x, features)
    np.testing.assert_allclose(found.times(np.eye(5)), H, atol=1e-13)
    np.testing.assert_allclose(found.diagonal, H.diagonal(), atol=1e-13)
    on, sides = np.array([0, 2, 3]), RNG.standard_normal((3, 2))
    exact = np.linalg.solve(H[np.ix_(on, on)], sides)
    np.testing.assert_allclose(found.solve(on, sides), exact, atol=0.03 * np.abs(exact).max())
    for rounds in (1, 5):
        start, slope = RNG.standard_normal((1, 5)), RNG.standard_normal((1, 5))
        costs, parts = RNG.uniform(0.1, 0.5, (1, 5)), []
        for each in (found, symmetric.Formed(H)):
            w, g = start.copy(), slope.copy()
            each.descend(g, w, 0.2, costs, True, rounds)
            np.testing.assert_allclose(g, slope + (w - start) @ H, atol=1e-12)
            parts.append(w)
        np.testing.assert_allclose(parts[0], parts[1], atol=1e-12)


def test_a_column_of_zeros_and_two_alike_are_no_obstacle(monkeypatch):
    monkeypatch.setattr(working_set, "MOST_FORMED", 0)
    X = DENSE.copy()
    X[:, 0], X[:, 2] = 0.0, X[:, 1]
    f = Objective(Squared(), as_data(sp.csr_array(X), Y))
    result = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    assert result.status.converged
    assert result.w[0] == 0.0


def test_sets_beyond_the_formed_ones_are_taken_in(monkeypatch):
    for name, most in (("MOST_FORMED", 10), ("MOST_FEATURES", 12)):
        monkeypatch.setattr(working_set, name, most)
    sparse, dense = objective("squared", sp.csr_array(DENSE)), objective("squared")
    result = minimize(sparse, LpBall(1, 9.5), WorkingSet(6), tol=1e-8)
    assert result.status.converged
    assert np.count_nonzero(result.w) > 12
    assert minimize(dense, LpBall(1, 9.5), WorkingSet(6), tol=1e-8).status is Status.TOO_LARGE


FREE = (3, 70)
KEPT = np.delete(np.arange(D), FREE)
INNER = {
    "l_1": LpBall(1, 2.0),
    "weighted": Weighted(LpBall(1, 2.0), COSTS[KEPT]),
    "positive": Positive(LpBall(1, 2.0)),
    "simplex": Simplex(2.0),
    "groups": GroupBall(2, 1, 1.5, tuple(np.arange(len(KEPT)) // 4)),
}


@pytest.mark.parametrize("ball", INNER)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", [50.0, 0.05])
def test_free_features_stand_outside_the_ball(ball, loss, bound):
    f = objective(loss, sp.csr_array(DENSE), intercept=loss == "huber", weight=WEIGHT)
    whole = WithFree(INNER[ball], free=FREE, bound=bound)
    result = minimize(f, whole, WorkingSet(4), tol=1e-7, max_iter=100)
    other = minimize(f, whole, ACCELERATED, tol=1e-3, max_iter=200)
    assert result.status.converged, result
    assert whole.contains(result.w)
    at_end = np.abs(result.w[list(FREE)]).max() == bound
    assert at_end == (bound < 1.0)
    assert result.bound <= other.value
    assert other.bound <= result.value


@pytest.mark.parametrize("bound", [50.0, 0.5])
def test_a_referee_agrees_about_free_features(bound):
    f, w = objective("squared"), cp.Variable(D)
    norms = [cp.norm1(w[KEPT]) <= 2.0, cp.abs(w[list(FREE)]) <= bound]
    least = cp.Problem(cp.Minimize(cp.sum_squares(DENSE @ w - Y) / N), norms).solve(solver=cp.CLARABEL)
    result = minimize(f, WithFree(LpBall(1, 2.0), free=FREE, bound=bound), WorkingSet(10), tol=1e-9, max_iter=50)
    assert result.status.converged
    assert result.value == pytest.approx(least, rel=1e-6)
    assert result.bound <= least * (1.0 + 1e-7)


@pytest.mark.parametrize("inner", [GroupBall(2, 1, 3.0), LpBall(1, 4.0)])
@pytest.mark.parametrize("loss", [Squared(), Softmax()])
@pytest.mark.parametrize("bound", [20.0, 0.1])
def test_free_features_of_several_outputs(inner, loss, bound):
    X = RNG.standard_normal((60, 25))
    y = X @ RNG.standard_normal((25, 3)) + 0.5 * RNG.standard_normal((60, 3))
    f = Objective(loss, as_data(X, y if isinstance(loss, Squared) else np.argmax(y, axis=1)), fit_intercept=True)
    whole = WithFree(inner, free=(0, 7), bound=bound)
    result = minimize(f, whole, WorkingSet(8), tol=1e-7, max_iter=200)
    other = minimize(f, whole, ACCELERATED, tol=1e-3, max_iter=200)
    assert result.status.converged
    assert max(result.bound, other.bound) <= min(result.value, other.value)


@pytest.mark.parametrize("ball", BALLS)
def test_a_referee_finds_the_same_minimum(ball):
    f, w = objective("squared"), cp.Variable(D)
    norms = {
        "l_1": [cp.norm1(w) <= 3.0],
        "weighted": [cp.norm1(cp.multiply(COSTS, w)) <= 3.0],
        "positive": [w >= 0, cp.sum(w) <= 3.0],
        "simplex": [w >= 0, cp.sum(w) == 4.0],
        "groups": [sum(cp.norm2(w[5 * g : 5 * g + 5]) for g in range(D // 5)) <= 2.0],
    }
    least = cp.Problem(cp.Minimize(cp.sum_squares(DENSE @ w - Y) / N), norms[ball]).solve(solver=cp.CLARABEL)
    result = minimize(f, BALLS[ball], WorkingSet(), tol=1e-10)
    assert result.value == pytest.approx(least, rel=1e-6)
    assert result.bound <= least * (1.0 + 1e-7)


@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc", "float32", "sealed", "standardized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_storage_gives_the_same(storage, loss):
    kind, y = LOSSES[loss]
    tables = {
        "fortran": lambda: as_data(np.asfortranarray(DENSE), y),
        "csr": lambda: as_data(sp.csr_array(DENSE), y),
        "csc": lambda: as_data(sp.csc_array(DENSE), y),
        "float32": lambda: as_data(sp.csr_array(DENSE.astype(np.float32)), y),
        "sealed": lambda: SealedData(DENSE, y),
        "standardized": lambda: as_data(sp.csr_array(DENSE), y, centre=True, scale=True),
        "dense": lambda: as_data(DENSE, y),
    }
    f = Objective(kind, tables[storage](), fit_intercept=True)
    result = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    assert result.status.converged
    if storage == "standardized":
        scaled = (DENSE - DENSE.mean(axis=0)) / np.where(DENSE.std(axis=0) > 0, DENSE.std(axis=0), 1.0)
        plain = Objective(kind, as_data(scaled, y), fit_intercept=True)
    else:
        plain = objective(loss, intercept=True)
    expected = minimize(plain, LpBall(1, 3.0), WorkingSet(), tol=1e-8)
    rel = 1e-5 if storage == "float32" else 1e-7
    assert result.value == pytest.approx(expected.value, rel=rel)


def test_several_outputs_share_their_products():
    X, W = RNG.standard_normal((50, 40)), np.zeros((40, 3))
    W[:4] = RNG.standard_normal((4, 3))
    y = X @ W + 0.1 * RNG.standard_normal((50, 3))
    f = Objective(Squared(), as_data(X, y), fit_intercept=True)
    for ball in (GroupBall(2, 1, 3.0), LpBall(1, 4.0)):
        result = minimize(f, ball, WorkingSet(10), tol=1e-9)
        other = minimize(f, ball, ACCELERATED, tol=1e-7)
        assert result.status.converged
        assert result.value == pytest.approx(other.value, rel=1e-6)


@pytest.mark.parametrize("ball", [LpBall(1, 3.0), GroupBall(2, 1, 2.0)])
def test_coupled_outputs(ball):
    X = RNG.standard_normal((80, 30))
    y = np.argmax(X[:, :3] + 0.5 * RNG.standard_normal((80, 3)), axis=1)
    f = Objective(Softmax(), as_data(X, y), fit_intercept=True)
    result = minimize(f, ball, WorkingSet(8), tol=1e-8)
    other = minimize(f, ball, ACCELERATED, tol=1e-6, max_iter=3000)
    assert result.status.converged
    assert max(result.bound, other.bound) <= min(result.value, other.value)


@pytest.mark.parametrize("seed", range(6))
def test_models_of_counted_words_need_few_turns(seed, monkeypatch):
    """Where the multiplier falls too far, more entries are taken in than the model has rank."""
    from projfree.numerics import flat_quadratic

    rng = np.random.default_rng(seed)
    often = 1.0 / (np.arange(800) + 3.0)
    X = sp.csr_array(rng.poisson(40.0 * often / often.sum(), size=(150, 800)).astype(float))
    f = Objective(Softmax(), as_data(X, rng.integers(3, size=150)), fit_intercept=True)
    turns, descend = [], flat_quadratic._Entries.descend
    monkeypatch.setattr(flat_quadratic._Entries, "descend", lambda self: turns.append(1) or descend(self))
    monkeypatch.setattr(flat_quadratic, "without_faces", lambda *a: pytest.fail("a face was given up"))
    result = minimize(f, LpBall(1, 60.0), WorkingSet(), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.n_passes <= 18
    assert len(turns) <= 20


@pytest.mark.parametrize("solver", [WorkingSet(), HessianFreeNewton()], ids=repr)
def test_no_average_of_tangents_is_kept(solver, monkeypatch):
    from projfree.run import ladder

    monkeypatch.setattr(ladder, "Stacked", lambda *a: pytest.fail("tangents were averaged"))
    ball = LpBall(1, 3.0) if isinstance(solver, WorkingSet) else LpBall(2, 3.0)
    result = minimize(objective("logistic", sp.csr_array(DENSE)), ball, solver, tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.certificate.verify(objective=objective("logistic")).ok


def test_few_reads_where_few_features_count():
    f = objective("squared", sp.csr_array(DENSE))
    assert minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-8).n_passes <= 12


@pytest.mark.parametrize("start", ["dense", "vertex", "far"])
def test_any_start_will_do(start):
    f = objective("squared")
    starts = {"dense": np.full(D, 3.0 / D), "vertex": 3.0 * np.eye(D)[7], "far": -3.0 * np.eye(D)[0]}
    result = minimize(f, LpBall(1, 3.0), WorkingSet(10), start=starts[start], tol=1e-9)
    assert result.value == pytest.approx(minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-9).value, rel=1e-8)


def test_a_start_without_zeros_gives_way_to_a_vertex():
    X = sp.random_array((20, 5_000), density=0.01, random_state=1, format="csr")
    f = Objective(Squared(), as_data(X, np.arange(20.0)))
    result = minimize(f, Simplex(2.0), WorkingSet(), tol=1e-6)
    assert result.status.converged
    assert np.count_nonzero(result.w) < 100


@pytest.mark.parametrize("loss", LOSSES)
def test_a_checkpoint_goes_on_bit_for_bit(loss, tmp_path):
    f, ball, settings = objective(loss, intercept=True), LpBall(1, 3.0), {"tol": 0.0}
    whole = minimize(f, ball, WorkingSet(4), max_iter=6, callbacks=[Checkpoint(tmp_path / "a", 2)], **settings)
    minimize(f, ball, WorkingSet(4), max_iter=4, callbacks=[Checkpoint(tmp_path / "b", 2)], **settings)
    rest = minimize(f, ball, state=tmp_path / "b", max_iter=6, callbacks=[Checkpoint(tmp_path / "b", 2)], **settings)
    np.testing.assert_array_equal(whole.w, rest.w)


def test_interpolated_data_end_without_an_error():
    X = RNG.standard_normal((10, 60))
    y = X[:, 0] * 2.0
    result = minimize(Objective(Squared(), as_data(X, y)), LpBall(1, 50.0), WorkingSet(), tol=1e-6)
    assert result.value <= 1e-8
    assert result.bound <= result.value


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match=r"few features.*LpBall\(1.*CorrectivePrimalAveraging"):
        minimize(objective("squared"), LpBall(2, 1.0), WorkingSet())
    with pytest.raises(ValueError, match="smallest"):
        WorkingSet(smallest=0)


@pytest.mark.parametrize("order", ["sorted", "unsorted", "repeated"])
@pytest.mark.parametrize("places", [None, np.array([2, 0])])
def test_moments_of_some_columns_are_those_of_the_table(order, places):
    X = sp.csr_array(DENSE)
    if order != "sorted":
        rows, cols = X.nonzero()
        values = X.data if order == "unsorted" else np.concatenate([0.25 * X.data, 0.75 * X.data])
        turn = 1 if order == "unsorted" else 2
        shuffled = RNG.permutation(turn * X.nnz)
        rows, cols = np.tile(rows, turn)[shuffled], np.tile(cols, turn)[shuffled]
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N))])
        by_row = np.argsort(rows, kind="stable")
        X = sp.csr_array((values[shuffled][by_row], cols[by_row], ends), shape=X.shape)
    features, h = np.array([7, 3, 90, 11]), RNG.random(N)
    f = Objective(Squared(), as_data(X, Y, h))
    rows = f.hessian_among(f.point(np.zeros(D)), features, places)
    full = 2.0 * (DENSE[:, features].T * (h / h.sum())) @ DENSE[:, features]
    np.testing.assert_allclose(rows, full if places is None else full[places], atol=1e-13)
    clean = as_data(X, Y).X
    columns = Columns.of(clean, features)
    w = np.zeros(D)
    w[features] = [1.0, -2.0, 0.5, 3.0]
    np.testing.assert_allclose(columns.image(w), DENSE @ w, atol=1e-13)


def test_frank_wolfe_is_where_it_leaves_off():
    f = objective("squared")
    slow = minimize(f, LpBall(1, 3.0), FrankWolfe(), tol=1e-9, max_iter=200)
    quick = minimize(f, LpBall(1, 3.0), WorkingSet(), tol=1e-9, max_iter=200)
    assert quick.value <= slow.value
    assert slow.bound <= quick.value


def test_columns_at_hand_serve_only_points_that_they_cover():
    f = objective("squared", sp.csr_array(DENSE))
    f.hessian_among(f.point(np.zeros(D)), np.array([3, 7]))
    inside, outside = np.zeros(D), RNG.standard_normal(D)
    inside[[3, 7]] = [1.0, -2.0]
    for w in (inside, outside):
        assert f.value(f.point(w)) == pytest.approx(np.mean((DENSE @ w - Y) ** 2), rel=1e-12)


@pytest.mark.parametrize("ball", [LpBall(1, 0.54), Positive(LpBall(1, 0.54)), Simplex(0.54)], ids=repr)
def test_a_model_without_curvature_is_no_end(ball):
    x = np.random.default_rng(5).standard_normal((20, 30)) * 10.0 ** np.arange(-1, 2).repeat(10)
    f = Objective(Huber(1e-3), as_data(x, 100.0 + np.arange(20.0)))  # all rows are on the straight part
    result = minimize(f, ball, WorkingSet(3), tol=1e-7, max_iter=300)
    other = minimize(f, ball, AcceleratedProjectedGradient(), tol=1e-7)
    assert result.status.converged
    assert result.value <= other.value * (1.0 + 1e-6)


def test_its_systems_stay_small_where_groups_join_outputs(monkeypatch):
    monkeypatch.setattr(working_set, "MOST_FEATURES", 60)
    sides = []
    solve = symmetric.regular_solve
    monkeypatch.setattr(symmetric, "regular_solve", lambda A, b: sides.append(len(A)) or solve(A, b))
    rng = np.random.default_rng(2)
    f = Objective(Squared(), as_data(rng.standard_normal((40, 25)), rng.standard_normal((40, 6))))
    result = minimize(f, GroupBall(2, 1, radius=20.0), WorkingSet(), tol=1e-6)
    assert result.status is Status.TOO_LARGE
    assert 0 < max(sides) <= 60
    both = minimize(f, GroupBall(2, 1, radius=20.0), Relay(WorkingSet(), AcceleratedProjectedGradient(), 50), tol=1e-6)
    assert both.status.converged


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: Perturbed(f, 0.1, np.ones(f.shape))], ids=["plain", "tilted"])
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_all_columns_of_a_form_share_its_part(wrap, outputs):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((8, 8))
    f = wrap(QuadraticForm(A @ A.T, rng.standard_normal((8, *outputs))))
    features, places = np.array([5, 1, 6]), np.array([2, 0])
    x = f.point(np.zeros(f.shape))
    np.testing.assert_array_equal(f.hessian_among(x, features), (A @ A.T)[np.ix_(features, features)])
    np.testing.assert_array_equal(f.hessian_among(x, features, places), (A @ A.T)[np.ix_([6, 5], features)])


def test_the_hessian_of_a_perturbed_function_is_not_formed_as_a_whole(monkeypatch):
    f = Perturbed(objective("squared"), 0.1, np.ones(D))
    monkeypatch.setattr(Perturbed, "hessian", lambda self, x: pytest.fail("all features"))
    assert np.isfinite(minimize(f, LpBall(1, 3.0), WorkingSet(4), max_iter=5).value)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.asfortranarray])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_hessian_of_some_features_is_part_of_that_of_all(loss, intercept, storage):
    f = objective(loss, storage(DENSE + 0.5 * (np.arange(D) == 11)), intercept=intercept, weight=WEIGHT)
    x, features = f.point(0.1 * np.sin(np.arange(D))), np.array([11, 4, 80])
    whole = f.hessian(x)[np.ix_(features, features)]
    np.testing.assert_allclose(f.hessian_among(x, features), whole, atol=1e-12)
    np.testing.assert_allclose(f.hessian_among(x, features, np.array([2, 0])), whole[[2, 0]], atol=1e-12)
