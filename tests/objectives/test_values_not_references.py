"""Points are values and runs are apart: nobody else's points, callbacks or kernels change what an objective says."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    BlackBox,
    CorrectivePrimalAveraging,
    FrankWolfe,
    Logistic,
    LpBall,
    Objective,
    OpenLoop,
    Perturbed,
    PrimalAveraging,
    QuadraticForm,
    Squared,
    as_data,
    minimize,
    path,
)

BALL = LpBall(1.5, radius=1.0)


def tables(seed=0, n=150, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


@dataclass(frozen=True)
class Triple(Squared):
    """Three times the squared loss, in NumPy alone."""

    def value(self, u, y):
        return 3.0 * super().value(u, y)

    def derivative(self, u, y):
        return 3.0 * super().derivative(u, y)

    def second(self, u, y):
        return 3.0 * super().second(u, y)

    @property
    def smoothness(self):
        return 6.0


@pytest.mark.parametrize("kind", ["C", "F", "sparse"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_subclass_of_a_compiled_loss_has_its_own_value(kind, intercept, monkeypatch):
    monkeypatch.setattr("projfree.data.compiled.NATIVE_BYTES", 0)
    X, y = tables()
    table = {"C": X, "F": np.asfortranarray(X), "sparse": sp.csr_array(X)}[kind]
    result = minimize(Objective(Triple(), as_data(table, y), intercept), BALL)
    u = X @ result.w + (0.0 if result.intercept is None else result.intercept)
    assert result.value == pytest.approx(3.0 * np.mean((u - y) ** 2), rel=1e-12)
    assert result.status.converged
    assert result.value == pytest.approx(3.0 * minimize(Objective(Squared(), as_data(X, y), intercept), BALL).value)


def test_a_subclass_of_the_squared_loss_has_no_gram_matrix():
    X, y = tables()
    values = path(Objective(Triple(), as_data(X, y), fit_intercept=True), BALL, [0.1, 0.5]).values
    squares = path(Objective(Squared(), as_data(X, y), fit_intercept=True), BALL, [0.1, 0.5]).values
    np.testing.assert_allclose(values, 3.0 * squares, rtol=1e-5)


@pytest.mark.slow
def test_a_subclass_of_a_compiled_loss_on_a_large_table():
    X, y = tables(n=200_000, d=45)
    result = minimize(Objective(Triple(), as_data(X, y)), BALL)
    assert result.value == pytest.approx(3.0 * np.mean((X @ result.w - y) ** 2), rel=1e-10)


def test_points_cannot_be_changed():
    X, y = tables()
    f = Objective(Logistic(), as_data(X, y), fit_intercept=True)
    w = np.full(4, 0.1)
    x = f.point(w)
    w[:] = 7.0  # the point has a copy
    assert x.w.tolist() == [0.1] * 4
    with pytest.raises(ValueError, match="read-only"):
        x.w[0] = 1.0
    for name in ("w", "intercept", "of", "handle"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(x, name, None)
    found = f.evaluate(x)
    assert x.intercept is None
    assert found.intercept is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.value = 0.0
    z = 0.5 * found.point + 0.5 * f.point(np.ones(4))
    with pytest.raises(ValueError, match="read-only"):
        z.w[0] = 1.0


def functions():
    X, y = tables()
    other = tables(1)
    return {
        "rows": Objective(Logistic(), as_data(X, y)),
        "other rows": Objective(Logistic(), as_data(*other)),
        "sparse, intercept": Objective(Logistic(), as_data(sp.csr_array(X), y), fit_intercept=True),
        "squares": Objective(Squared(), as_data(X, y), fit_intercept=True),
        "form": QuadraticForm(np.diag([1.0, 2.0, 3.0, 4.0]), np.ones(4)),
        "box": BlackBox(lambda w: (w @ w, 2 * w), shape=4),
        "perturbed": Perturbed(Objective(Squared(), as_data(*other)), 0.1, np.ones(4)),
    }


@pytest.mark.parametrize("of", list(functions()))
@pytest.mark.parametrize("given_to", list(functions()))
def test_a_point_of_one_objective_given_to_another(of, given_to):
    made = functions()
    f, g, w = made[of], made[given_to], np.array([0.3, -0.2, 0.1, 0.4])
    x = f.evaluate(f.point(w)).point
    z = 0.25 * x + 0.75 * f.point(-w)
    f.evaluate(z)
    for point in (x, z):
        own = g.evaluate(g.open().point(np.array(point.w)))
        theirs = g.evaluate(point)
        assert theirs.value == pytest.approx(own.value, rel=1e-13)
        np.testing.assert_allclose(theirs.slope.gradient, own.slope.gradient, rtol=1e-9, atol=1e-12)


def test_a_point_of_another_shape_is_refused():
    X, y = tables()
    f, g = Objective(Logistic(), as_data(X, y)), Objective(Logistic(), as_data(X[:, :2], y))
    with pytest.raises(ValueError, match="shape"):
        g.evaluate(f.point(np.ones(4)))


@pytest.mark.parametrize("solver", [PrimalAveraging(), FrankWolfe(), CorrectivePrimalAveraging()], ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_callback_that_reads_the_data_changes_nothing(solver, kind):
    X, y = tables()
    f = Objective(Logistic(), as_data(kind(X), y), fit_intercept=True)

    def look(run):
        run.f.minorant(run.f.point(np.ones(4)))
        run.f.value(run.state.x)

    plain = minimize(f, BALL, solver, tol=1e-6, max_iter=60)
    looked = minimize(f, BALL, solver, tol=1e-6, max_iter=60, callbacks=[look])
    assert (looked.n_iter, looked.n_passes) == (plain.n_iter, plain.n_passes)
    np.testing.assert_array_equal(looked.w, plain.w)
    np.testing.assert_array_equal(looked.trace["passes"], plain.trace["passes"])


def test_runs_beside_one_another_do_not_mix():
    X, y = tables()
    f = Objective(Logistic(), as_data(sp.csr_array(X), y), fit_intercept=True)
    inner = []

    def run_another(run):
        if run.iteration == 5:
            inner.append(minimize(f, LpBall(2, radius=3.0), CorrectivePrimalAveraging()))

    plain = minimize(f, BALL, PrimalAveraging(), max_iter=30, tol=0.0)
    nested = minimize(f, BALL, PrimalAveraging(), max_iter=30, tol=0.0, callbacks=[run_another])
    np.testing.assert_array_equal(nested.w, plain.w)
    assert nested.n_passes == plain.n_passes
    np.testing.assert_array_equal(inner[0].w, minimize(f, LpBall(2, radius=3.0), CorrectivePrimalAveraging()).w)


@pytest.mark.parametrize("solver", [PrimalAveraging(), FrankWolfe(OpenLoop()), CorrectivePrimalAveraging()], ids=repr)
def test_results_hold_nothing_of_the_size_of_the_rows(solver):
    X, y = tables(n=20_000, d=2)
    for table in (X, sp.csr_array(X)):
        result = minimize(Objective(Logistic(), as_data(table, y), fit_intercept=True), BALL, solver, max_iter=20)
        text = pickle.dumps(result)
        assert len(text) < 20_000
        again = pickle.loads(text)
        np.testing.assert_array_equal(again.w, result.w)
        assert copy.deepcopy(result).value == result.value
