"""Small random problems with everything that a reference computation needs beside the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from projfree import Objective, as_data
from projfree.losses import Gamma, Loss, Poisson


@dataclass
class Problem:
    """An objective, its raw data, and one random parameter after the other."""

    f: Objective
    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    rng: np.random.Generator

    def w(self, size: float = 1.0) -> np.ndarray:
        return size * self.rng.standard_normal(self.f.shape)

    def b(self, size: float = 1.0) -> np.ndarray:
        return size * self.rng.standard_normal(self.f.outputs)


def _targets(loss: Loss, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if loss.coupled:
        y = (u + rng.gumbel(size=u.shape)).argmax(axis=1)
        y[: u.shape[1]] = np.arange(u.shape[1])  # every class is there
        return y
    y = u + 0.5 * rng.standard_normal(u.shape)
    if isinstance(loss, Poisson | Gamma):
        return np.exp(0.5 * y)
    if loss.labels:
        y = np.where(y > 0, 1.0, -1.0)
        y[0], y[1] = 1.0, -1.0
    return y


@pytest.fixture(scope="session")
def build():
    """``build(loss, outputs=0, intercept=False, weighted=False, n=30, d=4, seed=0)``; 0 outputs is a vector."""

    def make(loss, outputs=0, intercept=False, weighted=False, n=30, d=4, seed=0, offset=0.0) -> Problem:
        rng = np.random.default_rng(seed)
        shape = (d, outputs) if outputs else (d,)
        X = rng.standard_normal((n, d))
        y = _targets(loss, X @ rng.standard_normal(shape), rng)
        weight = rng.uniform(0.1, 2.0, n) if weighted else None
        s = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        f = Objective(loss, as_data(X + offset, y, weight), fit_intercept=intercept)
        return Problem(f, X + offset, y, s, rng)

    return make
