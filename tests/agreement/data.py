"""Tables of data in every condition that a user may bring: wide, collinear, badly scaled, weighted with zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from agreement.exact import Array

from projfree import (
    BiWeight,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquaredSigmoid,
)

CONDITIONS = ("plain", "plain", "wide", "scaled", "collinear", "duplicated", "offset", "float32")


@dataclass(frozen=True, eq=False)
class Table:
    """Features (or places of observed entries), targets and weights."""

    condition: str
    X: Array
    y: Array
    weight: Array | None
    places: tuple[Array, Array] | None = None
    shape: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        weighted = "" if self.weight is None else " weighted"
        return f"{self.condition} {self.shape if self.places else self.X.shape} -> {self.y.shape[1:]}{weighted}"

    def mixed(self, loss: Loss) -> bool:
        """Whether every class, or a positive count, has weight in every column: an intercept has a finite minimum."""
        y = self.y if self.weight is None else self.y[self.weight > 0]
        if not loss.labels:
            return not isinstance(loss, Poisson) or bool(np.all(y.max(axis=0) > 0))
        if isinstance(loss, Softmax):
            return len(np.unique(y)) == len(np.unique(self.y)) == int(self.y.max()) + 1
        return bool(np.all(y.min(axis=0) < y.max(axis=0)))


def draw_table(loss: Loss, matrix: bool, rng: np.random.Generator, entries: bool = False) -> Table:
    """A table whose parameter is a matrix if asked for; with ``entries`` the places of some entries of one."""
    condition = "entries" if entries else str(rng.choice(CONDITIONS))
    n, d = int(rng.integers(5, 41)), int(rng.integers(1, 9))
    if condition == "wide":
        n = int(rng.integers(1, max(2, d)))
    X = _features(condition, n, d, rng)
    shape, places = (int(rng.integers(1, 6)), int(rng.integers(1, 6))), None
    if entries:
        n = int(rng.integers(1, 2 * shape[0] * shape[1] + 1))  # some places more than once
        places = (rng.integers(shape[0], size=n), rng.integers(shape[1], size=n))
    outputs = (int(rng.integers(1, 4)),) if (matrix and not entries) or (not entries and rng.uniform() < 0.2) else ()
    signal = _signal(None if entries else X, n, outputs, rng)
    return Table(condition, X, _targets(loss, signal, n, rng), _weights(n, rng), places, shape)


def _features(condition: str, n: int, d: int, rng: np.random.Generator) -> Array:
    X = rng.standard_normal((n, d))
    if condition == "scaled":
        X = X * 10.0 ** rng.uniform(-4, 4, size=d)
    elif condition == "collinear" and d > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-12, -3) * rng.standard_normal(n)
        X[:, d // 2] = X[:, 0]
    elif condition == "duplicated":
        X = X[rng.integers(max(1, n // 4), size=n)]
    elif condition == "offset":
        X = X + 10.0 ** rng.uniform(0, 4)
    return X.astype(np.float32) if condition == "float32" else X


def _signal(X: Array | None, n: int, outputs: tuple[int, ...], rng: np.random.Generator) -> Array:
    noise = rng.standard_normal((n, *outputs))
    if X is None:
        return noise
    u = X.astype(np.float64) @ rng.standard_normal((X.shape[1], *outputs))
    return np.asarray(u / max(float(np.abs(u).max()), 1e-300) * 2.0 + 10.0 ** rng.uniform(-6, 0.5) * noise)


def _targets(loss: Loss, signal: Array, n: int, rng: np.random.Generator) -> Array:
    if isinstance(loss, Softmax):
        classes = int(rng.integers(2, 4))
        y = rng.integers(classes, size=n)
        y[: min(n, classes)] = np.arange(min(n, classes))
        return y if y.max() > 0 else np.ones(n, dtype=int)
    if isinstance(loss, Poisson):
        return np.asarray(rng.poisson(np.exp(np.minimum(signal, 8.0) + rng.uniform(-2, 2))), dtype=np.float64)
    if isinstance(loss, Gamma):
        return np.exp(signal + rng.uniform(-5, 5))
    if isinstance(loss, Logistic | SquaredSigmoid | SquaredHinge):
        return np.where(signal > np.median(signal), 1.0, -1.0)
    assert isinstance(loss, Squared | Huber | BiWeight | Quantile)
    return np.asarray(signal * 10.0 ** rng.uniform(-2, 2) + rng.choice([0.0, 0.0, 100.0]))


def _weights(n: int, rng: np.random.Generator) -> Any:
    kind = rng.integers(3)
    if kind == 0:
        return None
    weight = rng.uniform(0.1, 2.0, size=n) if kind == 1 else 10.0 ** rng.uniform(-6, 3, size=n)
    weight[rng.uniform(size=n) < 0.2] = 0.0
    weight[int(rng.integers(n))] = 1.0
    return weight
