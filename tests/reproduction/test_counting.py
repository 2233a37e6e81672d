"""What the experiments count on is what they say: short cuts equal the long way."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from projfree import paper
from projfree.sets import LpBall, SchattenBall
from reproduction.counting import FWLS, FWPLR, OPTION_B, PA, OnEntries, OnGram, count
from reproduction.implementations import (
    Dense,
    by_singular_values,
    frobenius_oracle,
    loop_clip,
    paper_steps,
    threshold,
)
from reproduction.problems import LeastSquares
from reproduction.sgd import descend, project_lp
from reproduction.sources import Sample
from reproduction.stochastic import SampledRows, sampled
from reproduction.stochastic_rate import Stream


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) * np.arange(1, 6)
    return LeastSquares(Sample(X, X @ np.arange(5.0) + rng.standard_normal(300), "made up"))


@pytest.mark.parametrize("name", [PA, FWPLR, OPTION_B])
def test_the_gram_matrix_has_the_iterates_of_the_table(problem, name):
    case = OnGram(problem, 0.5)
    long = paper_steps(Dense(problem), case.ball.radius)[name]
    for a, b in zip(islice(case.variants()[name], 30), long, strict=False):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_the_exact_search_on_the_gram_matrix(problem):
    case = OnGram(problem, 0.9)
    (w,), f = islice(case.variants()[FWLS], 1), problem.form
    v = case.oracle(case.gradient(case.zero))
    values = [f(f.point(gamma * v)) for gamma in np.linspace(0, 1, 1001)]
    assert f(f.point(w)) <= min(values)


@pytest.mark.parametrize("name", [PA, FWPLR, OPTION_B])
def test_observed_entries_and_one_number_stand_for_the_matrix(name):
    """Completion on the Schatten-2 ball without the matrix has the losses of the run on it."""
    rng = np.random.default_rng(1)
    M, mask, radius = rng.standard_normal((6, 7)), rng.uniform(size=(6, 7)) < 0.4, 2.0
    W = rng.standard_normal((6, 7))
    W *= 0.5 * radius / np.linalg.norm(W)
    y, n = M[mask], int(mask.sum())
    short = OnEntries(y, radius, W[mask], float(np.linalg.norm(W[~mask])))

    def gradient(W):
        return 2.0 / n * mask * (W - M)

    long = {
        PA: paper.primal_averaging(gradient, frobenius_oracle(radius), W, paper.Averaged()),
        FWPLR: paper.frank_wolfe(gradient, frobenius_oracle(radius), W, paper.option_a),
        OPTION_B: paper.frank_wolfe(gradient, frobenius_oracle(radius), W, paper.option_b(2.0 / n)),
    }[name]
    for a, b in zip(islice(short.variants()[name], 30), long, strict=False):
        assert short.value(a) == pytest.approx(float(np.mean((b[mask] - y) ** 2)), rel=1e-9)


def test_the_papers_rule_on_a_sequence():
    assert count([101.0, 150.0, 150.5, 103.0, 101.5, 101.4], 100.0, 200.0, 10).at == 5
    assert count([150.0, 150.0], 100.0, 200.0, 10).at is None
    assert count([50.0, 3.0, 1.5, 1.0], 0.0, 100.0, 10, scale=100.0).at == 3
    assert len(count(iter([9.0] * 99), 1.0, 9.0, 7).values) == 7


# ------------------------------------------------------------------ SGD and streams


@pytest.mark.parametrize("p", [1.1, 1.5])
def test_the_compiled_projection(p):
    for seed in range(20):
        w = np.random.default_rng(seed).standard_normal(30)
        expected, found = LpBall(p, 2.0).project(w), w.copy()
        project_lp(found, p, 2.0, 0.0)
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_the_compiled_sgd_is_the_papers(problem, p):
    rows, ball = SampledRows(problem), LpBall(p, 1.0)
    order = np.random.default_rng(0).integers(0, rows.n, 50)
    kept, projections = descend(rows.X, rows.y, order, 1e-3, 0.0, p, 1.0, np.zeros(5), np.arange(1, 51))
    printed = paper.stochastic_gradient_descent(
        lambda w, i: rows.gradient(w, np.array([i])), ball.project, np.zeros(5), 1e-3, lambda t: int(order[t - 1])
    )
    for a, b in zip(kept, printed, strict=False):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert 0 < projections <= 50


def test_stochastic_pa_ends_on_all_rows(problem):
    """From t^4 >= 300 on the Gram matrix takes the place of the rows: the iterates are those of option B."""
    rows, ball = SampledRows(problem), problem.ball(2, 0.5)
    path = list(islice(sampled(rows, problem, ball, 0), 8))
    whole = paper.stochastic_primal_averaging(
        rows.gradient, rows.n, ball.lmo, np.zeros(5),
        lambda t, size: np.random.default_rng((0, t)).choice(rows.n, size, replace=False),
    )  # fmt: skip
    for a, b in zip(path, whole, strict=False):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_the_stream_has_the_distribution_of_fresh_rows(problem):
    """Mean and covariance of the mean gradient of 40 rows, against rows that are really drawn."""
    stream, w, rng = Stream(problem), np.array([1.0, -1.0, 0.5, 2.0, 0.0]), np.random.default_rng(0)
    short = np.array([stream.gradient(w, 40, rng) for _ in range(4_000)])
    root, delta, long = np.linalg.cholesky(stream.S), w - stream.w0, []
    for _ in range(4_000):
        X = rng.standard_normal((40, 5)) @ root.T
        long.append(2 / 40 * X.T @ (X @ delta - stream.noise * rng.standard_normal(40)))
    size = np.linalg.norm(2 * stream.S @ delta)
    np.testing.assert_allclose(short.mean(0), 2 * stream.S @ delta, atol=0.03 * size)
    np.testing.assert_allclose(short.mean(0), np.mean(long, axis=0), atol=0.03 * size)
    a, b = np.cov(short.T), np.cov(np.array(long).T)
    np.testing.assert_allclose(a, b, atol=0.12 * np.abs(b).max())


# ------------------------------------------------------------------ projections of the paper's kind, and maps


def test_plain_projections_are_projections():
    for seed in range(10):
        w = np.random.default_rng(seed).standard_normal(12)
        np.testing.assert_allclose(threshold(w, 1.0), LpBall(1, 1.0).project(w), atol=1e-12)
        np.testing.assert_allclose(loop_clip(w, 0.5), np.clip(w, -0.5, 0.5))
        W = w.reshape(3, 4)
        for p in (1.0, 2.0, np.inf):
            expected = np.asarray(SchattenBall(p, 1.0).project(W))
            np.testing.assert_allclose(by_singular_values(W, p, 1.0), expected, atol=1e-9)
    inside = np.full(12, 0.01)
    assert threshold(inside, 1.0) is inside
