"""Passes are compiled by what was read before, a number that is the same on every machine."""

import numpy as np
import pytest

from projfree import Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize
from projfree.data import compiled

N, D = 300, 4
X = np.random.default_rng(0).standard_normal((N, D))
Y = np.sign(X[:, 0] + 0.3)


@pytest.fixture
def asked(monkeypatch):
    """The rows that were read before each pass that asked for compiled code, tables of this size being large enough."""
    found = []
    monkeypatch.setattr(compiled, "SMALLER_BYTES", X.nbytes)
    monkeypatch.setattr(compiled, "MUCH_READ", 10 * X.nbytes)
    monkeypatch.setattr("projfree.data.dense.THREADED_BYTES", 0)  # else one tile needs no blocks
    monkeypatch.setattr(compiled, "prepare", lambda work, *_: found.append(work.read))
    return found


def run(f, iterations, callbacks=()):
    ball = LpBall(2, radius=1.0)
    return minimize(f, ball, PrimalAveraging(), tol=0.0, max_iter=iterations, callbacks=callbacks)


def test_a_run_of_many_passes_is_compiled_from_a_fixed_one_on(asked):
    run(Objective(Logistic(), as_data(X, Y)), 8)
    assert asked == []
    run(Objective(Logistic(), as_data(X, Y)), 20)
    assert asked[:10] == [N * k for k in range(10, 20)]
    assert all(read >= 20 * N for read in asked[10:])  # the value at the end; the exit check reads by itself


def test_what_was_read_outside_the_run_does_not_count(asked):
    f = Objective(Logistic(), as_data(X, Y))
    for k in range(30):
        f.value(f.point(np.full(D, 0.01 * k)))
    asked.clear()
    run(f, 8)
    assert asked == []


def test_folds_follow_the_passes(asked):
    f = Objective(Logistic(), as_data(X, Y), fit_intercept=True)
    run(f, 3)
    assert asked == []
    run(f, 12)
    assert min(asked) == 10 * N


@pytest.mark.parametrize(
    ("nbytes", "passes", "pays"),
    [(1 << 26, 0, True), (1 << 25, 127, False), (1 << 25, 128, True), ((1 << 25) - 1, 10_000, False)],
)
def test_sizes(nbytes, passes, pays):
    assert compiled.pays(nbytes, 50, 50 * passes) is pays
