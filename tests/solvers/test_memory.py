"""The plan counts the memory of solvers as it is, and chooses none that does not fit."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from projfree import (
    Logistic,
    LpBall,
    Objective,
    OwlBall,
    QuadraticForm,
    Relay,
    SchattenBall,
    Softmax,
    Squared,
    TrustRegionLanczos,
    as_data,
    minimize,
    plan,
)
from projfree.solvers import budget

RNG = np.random.default_rng(0)


def table(n, d):
    X = RNG.standard_normal((n, d))
    return X, X @ RNG.standard_normal(d) + RNG.standard_normal(n)


def squares(n, d):
    X, y = table(n, d)
    return lambda: Objective(Squared(), as_data(X, y), fit_intercept=True)


def logistic(n, d):
    X, y = table(n, d)
    return lambda: Objective(Logistic(), as_data(X, np.sign(y)), fit_intercept=True)


def softmax(n, d, k):
    X, y = RNG.standard_normal((n, d)), np.concatenate([np.arange(k), RNG.integers(0, k, n - k)])
    return lambda: Objective(Softmax(), as_data(X, y), fit_intercept=True)


def outputs(n, d, k):
    X, Y = RNG.standard_normal((n, d)), RNG.standard_normal((n, k))
    return lambda: Objective(Squared(), as_data(X, Y), fit_intercept=True)


def sparse(n, d):
    X, y = sp.random_array((n, d), density=0.002, rng=RNG).tocsr(), RNG.standard_normal(n)
    return lambda: Objective(Squared(), as_data(X, y))


def form(d):
    A = RNG.standard_normal((d + 10, d))
    return lambda: QuadraticForm(A.T @ A, A[0])


CASES = {
    "squares, wide": (squares(2_000, 500), LpBall(1.5, 1.0)),
    "squares, long": (squares(100_000, 5), LpBall(1.5, 1.0)),
    "squares, l_2": (squares(2_000, 500), LpBall(2, 1.0)),
    "logistic, wide": (logistic(2_000, 300), LpBall(1.5, 1.0)),
    "logistic, long": (logistic(100_000, 5), LpBall(1, 2.0)),
    "softmax, many classes": (softmax(4_000, 5, 40), LpBall(2, 1.0)),
    "softmax, long": (softmax(50_000, 6, 3), LpBall(1.5, 1.0)),
    "outputs": (outputs(20_000, 20, 8), SchattenBall(1, 1.0)),
    "sparse": (sparse(10_000, 3_000), LpBall(2, 1.0)),
    "form": (form(400), LpBall(1.5, 1.0)),
    "polytope, squares": (squares(2_000, 300), OwlBall(np.linspace(1.0, 0.5, 300), 3.0)),
    "polytope, logistic": (logistic(20_000, 40), OwlBall(np.linspace(1.0, 0.5, 40), 2.0)),
}


def peak(f, ball, solver):
    minimize(f(), ball, solver, tol=1e-9, max_iter=2)  # what is compiled or imported counts for nobody
    fresh = f()
    tracemalloc.start()
    try:
        minimize(fresh, ball, solver, tol=1e-9, max_iter=8)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", CASES)
def test_counts_are_what_is_used(name):
    f, ball = CASES[name]
    for choice in plan(f(), ball).choices:
        solver = replace(choice.solver, after=3) if isinstance(choice.solver, Relay) else choice.solver
        used = peak(f, ball, solver)
        assert used <= 1.15 * choice.memory + 1e6, choice.line()
        if not isinstance(choice.solver, Relay | TrustRegionLanczos):  # these may end before they hold everything
            assert choice.memory <= 4.0 * used + 1e7, choice.line()


def test_a_hundred_classes_are_counted():
    X, y = np.ones((20_000, 10)), np.arange(20_000) % 100
    made = plan(Objective(Softmax(), as_data(X, y), fit_intercept=True), LpBall(2, 1.0))
    assert all(100e6 < choice.memory < 400e6 for choice in made.choices)


def test_what_does_not_fit_is_not_chosen(monkeypatch):
    f, ball = CASES["logistic, wide"][0](), LpBall(1.1, 1.0)
    free = plan(f, ball)
    assert not free.too_large
    first, rest = free.choices[0], free.choices[1:]
    monkeypatch.setenv("PROJFREE_MEMORY", str(first.memory - 1))
    made = plan(f, ball)
    assert made.choices == rest
    assert made.too_large == (first,)
    assert made.solver != first.solver
    assert minimize(f, ball, max_iter=2).solver == made.solver
    assert f"not:    {first.solver!r}: it takes {first.memory / 1e6:,.1f} MB besides the data" in made.explain()
    monkeypatch.setenv("PROJFREE_MEMORY", str(first.memory))
    assert plan(f, ball).choices == free.choices


def test_nothing_fits(monkeypatch):
    monkeypatch.setenv("PROJFREE_MEMORY", "1 kB")
    sentence = (
        r"^no solver fits in 1,000 bytes, .*takes about [\d,]+ besides the data; raise PROJFREE_MEMORY, or give `so"
    )
    f, ball = CASES["squares, long"][0](), LpBall(2, 1.0)
    with pytest.raises(MemoryError, match=sentence):
        minimize(f, ball)
    assert minimize(f, ball, TrustRegionLanczos()).status.converged  # whoever names a solver gets it


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), (" 1.5 gb ", 1_500_000_000), ("512MiB", 512 << 20), ("1000", 1000), (".5KB", 500), ("7B", 7)],
)
def test_sizes(monkeypatch, text, size):
    monkeypatch.setenv("PROJFREE_MEMORY", text)
    assert budget.budget() == size


@pytest.mark.parametrize("text", ["much", "-4GB", "0", "4 XB", "1e9", "GB", "4GB 2", "nan"])
def test_bad_sizes(monkeypatch, text):
    monkeypatch.setenv("PROJFREE_MEMORY", text)
    with pytest.raises(ValueError, match=rf"PROJFREE_MEMORY must be a positive number of bytes.*got '{text}'; correct"):
        plan(QuadraticForm(np.eye(2), np.ones(2)), LpBall(2, 1.0))


def test_half_of_the_machine(monkeypatch):
    monkeypatch.delenv("PROJFREE_MEMORY", raising=False)
    assert budget.budget() == budget.machine() // 2
    assert 1e8 < budget.machine() < 1e15


def test_containers_have_less(monkeypatch, tmp_path):
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text("123000\n")
    monkeypatch.setattr(budget, "LIMITS", (str(tmp_path / "max"), str(tmp_path / "limit"), str(tmp_path / "none")))
    assert budget.machine.__wrapped__() == 123_000
