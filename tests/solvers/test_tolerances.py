"""The law of tolerances: the plan never reads the data more often for a looser tolerance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    GroupBall,
    Huber,
    Logistic,
    LpBall,
    Objective,
    SchattenBall,
    Simplex,
    Softmax,
    Squared,
    as_data,
    minimize,
)

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
LOSSES = {"squares": Squared(), "logistic": Logistic(), "huber": Huber(0.5), "softmax": Softmax()}
BALLS = {
    "l_1": LpBall(1, 1.0),
    "l_1.5": LpBall(1.5, 1.0),
    "l_2": LpBall(2, 1.0),
    "l_inf": LpBall(np.inf, 1.0),
    "simplex": Simplex(1.0),
    "group": GroupBall(2, 1, 1.0),
    "Schatten": SchattenBall(1, 1.0),
}
CLASSES = 4


def dense(rng):
    return rng.standard_normal((200, 20)) * np.geomspace(1.0, 0.05, 20)


def text(rng):
    """Rows of length one, whose columns are met ever less often."""
    odds = np.minimum(1.0, 8.0 / np.arange(1, 241))
    X = sp.csr_array((rng.random((120, 240)) < odds) * rng.lognormal(size=(120, 240)))
    return sp.csr_array(X / np.maximum(sp.linalg.norm(X, axis=1), 1e-12)[:, None])


def click(rng):
    """Many rows of a few ones."""
    return sp.csr_array((rng.random((800, 60)) < np.minimum(0.5, 3.0 / np.arange(1, 61))) * 1.0)


def wide(rng):
    return rng.standard_normal((40, 200))


TABLES = {"dense": dense, "text": text, "click": click, "wide": wide}
VECTORS = ("l_1", "l_1.5", "l_2", "l_inf", "simplex")
CASES = [
    *[(table, loss, ball) for table in TABLES for loss in ("squares", "logistic", "huber") for ball in VECTORS],
    *[(table, "softmax", ball) for table in TABLES for ball in ("l_2", "group", "Schatten")],
]


def problem(table, loss, name, share):
    """A problem whose radius is a share of the norm of the coefficients that made its targets."""
    rng = np.random.default_rng(0)
    X = TABLES[table](rng)
    W = rng.standard_normal((X.shape[1], CLASSES)) * (rng.random((X.shape[1], 1)) < 0.2)
    W *= 2.0 / np.std(X @ W)
    if loss == "softmax":
        y = np.argmax(X @ W + rng.gumbel(size=(X.shape[0], CLASSES)), axis=1)
    else:
        W = W[:, 0]
        u = X @ W + rng.standard_normal(X.shape[0])
        y = np.sign(u) if loss == "logistic" else u
    f, ball = Objective(LOSSES[loss], as_data(X, y), fit_intercept=True), BALLS[name]
    if name == "simplex":
        return f, Simplex(share * float(np.abs(W).sum()))
    return f, ball.resized(share * ball.norm(W))


#: Thousands of iterations, or expensive ones.
LONG = [("text", loss, "l_inf") for loss in ("squares", "logistic", "huber")]
LONG += [("text", "huber", "simplex"), ("wide", "huber", "simplex"), ("wide", "huber", "l_inf")]
MARKED = [pytest.param(*case, marks=[pytest.mark.slow] if case in LONG else []) for case in CASES]


@pytest.mark.parametrize(("table", "loss", "ball"), MARKED, ids=str)
def test_a_looser_tolerance_never_takes_more_reads(table, loss, ball):
    # Data are made anew, because they remember their Gram matrix.
    results = [minimize(*problem(table, loss, ball, 0.2), tol=tol, record=0) for tol in TOLERANCES]
    assert all(result.status.converged for result in results)
    for loose, tight in pairwise(results):
        assert loose.n_passes <= 1.1 * tight.n_passes


@pytest.mark.parametrize(("table", "loss", "ball"), MARKED, ids=str)
def test_a_run_does_not_depend_on_what_ran_before(table, loss, ball):
    fresh = minimize(*problem(table, loss, ball, 0.2), tol=1e-4, record=0)
    f, small = problem(table, loss, ball, 0.2)
    minimize(f, problem(table, loss, ball, 0.6)[1], tol=1e-2, record=0)
    later = minimize(f, small, tol=1e-4, record=0)
    assert (later.value, later.bound, later.n_iter) == (fresh.value, fresh.bound, fresh.n_iter)
    np.testing.assert_array_equal(later.w, fresh.w)
    if not f.structure.quadratic_form:  # whose sums over rows are remembered
        assert later.n_passes == fresh.n_passes
