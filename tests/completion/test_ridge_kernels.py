"""Ridge regressions of many rows against dense normal equations."""

from __future__ import annotations

import numpy as np
import pytest

from projfree.completion.kernels import ridge_rows

COUNTS = [0, 1, 2, 3, 11, 12, 13, 17, 40]


def problem(seed, weighted, shared, kind):
    rng, k, n = np.random.default_rng(seed), 6, 50
    indptr = np.concatenate([[0], np.cumsum(COUNTS)])
    indices = np.concatenate([rng.choice(n, size, replace=False) for size in COUNTS]).astype(np.int32)
    total, rows = int(indptr[-1]), len(COUNTS)
    factors = rng.standard_normal((n, k))
    factors[:, 0] = 1.0
    arrays = {
        "target": rng.standard_normal(total),
        "base": 0.5,
        "theirs": rng.standard_normal(n),
        "weight": rng.random(total) * (rng.random(total) > 0.2) if weighted else np.zeros(0),
        "factors": factors,
        "ridge": rng.random(k) + 0.3,
        "scale": rng.random(rows) + 0.5,
        "free": 1,
        "shared": np.append(0.0, rng.random(k - 1)) if shared else np.zeros(k),
        "pull": rng.standard_normal((rows, k)) if shared else np.zeros((0, 0)),
    }
    given = {name: value if name == "free" else np.asarray(value, kind)[()] for name, value in arrays.items()}
    return indptr, indices, given


def expected(indptr, indices, g, i):
    at = slice(indptr[i], indptr[i + 1])
    if indptr[i] == indptr[i + 1]:
        return np.zeros(len(g["ridge"]))
    T, y = g["factors"][indices[at]], g["target"][at] - g["base"] - g["theirs"][indices[at]]
    s = g["weight"][at] if len(g["weight"]) else np.ones(len(y))
    penalty = g["ridge"] * np.where(np.arange(len(g["ridge"])) < g["free"], 1.0, g["scale"][i])
    A, b = T.T @ (s[:, None] * T) + np.diag(penalty + g["shared"]), T.T @ (s * y)
    b = b + g["pull"][i] if len(g["pull"]) else b
    return np.linalg.solve(A, b)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("kind", "tolerance"), [(np.float64, 1e-9), (np.float32, 2e-4)])
def test_rows_are_those_of_the_normal_equations(seed, weighted, shared, kind, tolerance):
    indptr, indices, g = problem(seed, weighted, shared, kind)
    out = np.random.default_rng(seed).standard_normal((len(COUNTS), len(g["ridge"]))).astype(kind)
    ridge_rows(indptr, indices, *g.values(), 30, out, 0, len(COUNTS))
    for i in range(len(COUNTS)):
        np.testing.assert_allclose(out[i], expected(indptr, indices, g, i), atol=tolerance, rtol=tolerance)
